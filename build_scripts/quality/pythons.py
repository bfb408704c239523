"""Finding the interpreter of a Python version."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List

from packaging.version import InvalidVersion, Version

from .. import python_names
from ..errors import FactoryError


def _candidates(version: str) -> Iterator[str]:
    """Where Python ``version`` may be: this one, PATH, pyenv."""
    if python_names.running() == version:
        yield sys.executable
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    root = os.environ.get("PYENV_ROOT") or os.path.join(os.path.expanduser("~"), ".pyenv")
    # pyenv writes 3.14.0 and 3.14.0t.
    pattern = f"{python_names.number(version)}.*"
    found: List[Path] = sorted(Path(root, "versions").glob(f"{pattern}/bin/python"), key=_patch_level, reverse=True)
    yield from map(str, found)


def _patch_level(path: Path) -> Version:
    try:
        return Version(python_names.number(path.parent.parent.name))
    except InvalidVersion:
        return Version("0")


def works(program: str, version: str) -> bool:
    """Whether it starts, is of that version and can make virtual environments. A shim of pyenv's may do none of it."""
    mark = f"{python_names.FREE_THREADED!r} * bool(sysconfig.get_config_var('Py_GIL_DISABLED'))"
    code = f"import ensurepip, sys, sysconfig, venv; print('%d.%d' % sys.version_info[:2] + {mark})"
    try:
        done = subprocess.run(
            [program, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def _ways(version: str) -> str:
    # Debian packages builds with the global lock alone.
    packaged = "" if version.endswith(python_names.FREE_THREADED) else f"apt install python{version}-venv, or "
    return f"{packaged}pyenv install {version}"


def find(version: str) -> str:
    """A working interpreter of that version. Raises FactoryError where there is none."""
    for candidate in _candidates(version):
        if works(candidate, version):
            return candidate
    raise FactoryError(
        f"No Python {version} with venv and pip on this machine (looked at PATH and pyenv).",
        f"Install it ({_ways(version)}), or choose another with PYTHON=…",
    )
