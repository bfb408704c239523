"""Where the SDK is that this compiler belongs to, and which CUDA release it speaks."""

import os
import re
from pathlib import Path
from typing import Optional

from .errors import CuccError

# As mxmaca_cuda_version.h has them: release, build number.
RELEASES = {12: ("12.4", 131), 13: ("13.0", 88)}
NEWEST = max(RELEASES)


def root() -> Path:
    """The folder `mxmaca` (or `${MACA_PATH}`) that this package lies in."""
    return Path(__file__).resolve().parent.parent


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
