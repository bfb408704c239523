"""Where the SDK is that this compiler belongs to, and which CUDA release it speaks."""

import os
import re
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from .errors import CuccError


def root() -> Path:
    """The folder `mxmaca` (or `${MACA_PATH}`) that this package lies in."""
    return Path(__file__).resolve().parent.parent


def facts(table: str) -> Dict[str, List[str]]:
    """The rows of a table of the SDK's folder `facts`: the other columns by the first one."""
    lines = (root() / "facts" / table).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if not line.startswith("#")]
    return {row[0]: row[1:] for row in rows}


def limit(name: str) -> int:
    """What the device allows, in bytes where it is memory; `limits.txt` has the names."""
    text = facts("limits.txt")[name][0]
    return int(text[:-3]) << 10 if text.endswith("KiB") else int(text)


def _releases() -> Dict[int, Tuple[str, int]]:
    found = (version.rpartition(".") for version in facts("versions.txt")["mxmaca_cuda_version.h"][3:])
    return {int(release.partition(".")[0]): (release, int(build)) for release, _, build in found}


# By CUDA's major number: release, and the compiler's build number.
RELEASES = _releases()
NEWEST = max(RELEASES)


def cuda_major() -> int:
    """The CUDA release to compile for: CUCC_CUDA_MAJOR, else that of the torch installed beside, else the newest."""
    for name in ("CUCC_CUDA_MAJOR", "MXMACA_CUDA_MAJOR"):
        chosen = os.environ.get(name)
        if chosen:
            if not chosen.isdigit() or int(chosen) not in RELEASES:
                known = " or ".join(str(major) for major in RELEASES)
                raise CuccError(f"cucc: error: {name} is '{chosen}'; it must be {known}")
            return int(chosen)
    return _torch_major() or NEWEST


def _torch_major() -> Optional[int]:
    version = root().parent / "torch" / "version.py"
    try:
        found = re.search(r"^cuda\s*(?::[^=]*)?=\s*['\"](\d+)\.", version.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return int(found.group(1)) if found and int(found.group(1)) in RELEASES else None


def include() -> Path:
    return root() / "include"


def libraries(major: int) -> Path:
    return root() / "lib" / f"cuda{major}"


def tree(major: int) -> Path:
    """The CUDA_HOME of that release."""
    return root() / f"cuda{major}"


def version_text(major: int) -> str:
    """What `--version` says; build systems read the release from its last lines."""
    release, build = RELEASES[major]
    sdk = (root() / "VERSION").read_text(encoding="utf-8").strip()
    return (
        # CMake takes what begins so for a compiler with nvcc's options.
        "nvcc: NVIDIA (R) Cuda compiler driver: its command line, answered by cucc of the MXMACA SDK "
        f"{sdk} for the simulated device\n"
        f"Cuda compilation tools, release {release}, V{release}.{build}\n"
    )
