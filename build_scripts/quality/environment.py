"""Virtual environments that hold the built wheels, kept between runs.

An environment carries two stamps, written last: what it was made of, and which wheels it holds. A changed wheel is
installed over the old one; anything else that changed makes a new environment. The stamps go before anything changes,
so an environment whose making or changing was killed has none, and is made anew.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, Optional, Sequence

from .. import cache, children
from ..errors import FactoryError
from ..progress import step
from ..releases import REQUIREMENTS, Release, UpstreamWheel
from . import pythons

STAMP = ".stamp.json"
COMPANIONS = ("torchaudio", "torchvision")  # those that the release has


def _run(command: Sequence[str], purpose: str) -> None:
    # A constraint of this machine may cap torch; the wheels here are given as files, and are what is to be installed.
    variables = {**os.environ, "PIP_CONSTRAINT": os.devnull}
    done = children.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=variables)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise FactoryError(
            f"{purpose} failed: " + "\n    ".join(lines[-6:]),
            "Check the network and `python -m pip config list`, then run the command again.",
        )


def _digest(paths: Sequence[Path]) -> str:
    return hashlib.sha256("".join(cache.sha256_of(path) for path in paths).encode()).hexdigest()


def _read_stamp(folder: Path) -> Dict[str, str]:
    try:
        return dict(json.loads((folder / STAMP).read_text()))
    except (OSError, ValueError):
        return {}


def obtain(
    name: str,
    python: str,
    wheels: Sequence[Path],
    requirements: Sequence[Path],
    bare: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> Path:
    """The interpreter of an environment with these wheels, the requirement files, ``beside``: further requirements, and
    ``bare``: packages without their own requirements, which would bring another torch."""
    interpreter = pythons.find(python)
    parts = [interpreter, [path.read_text() for path in requirements], list(bare), *beside]
    made_of = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    folder = cache.folder("environments") / name
    program = folder / "bin" / "python"
    with cache.lock(f"environment-{name}"):
        stamp = _read_stamp(folder)
        wanted = {"made_of": made_of, "wheels": _digest(wheels)}
        if stamp == wanted and program.exists():
            return program
        pip = [str(program), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        files = [str(path) for path in wheels]
        if stamp.get("made_of") == made_of and program.exists():
            with cache.lock(_use(folder)), step(f"Installing the new wheels into {name}"):
                (folder / STAMP).unlink()
                _run([*pip, "--force-reinstall", "--no-deps", *files], "Installing the wheels")
        else:
            with cache.lock(_use(folder)), step(f"Making the environment {name} with Python {python}"):
                cache.discard(folder)
                _run([interpreter, "-m", "venv", str(folder)], "Making a virtual environment")
            with step("Installing the wheels and what they need"):
                _run(
                    pip
                    + files
                    + list(beside)
                    + [word for path in requirements for word in ("--requirement", str(path))],
                    "Installing the wheels",
                )
                if bare:
                    _run([*pip, "--no-deps", *bare], "Installing " + ", ".join(bare))
        part = folder / f"{STAMP}.part"
        part.write_text(json.dumps(wanted))
        cache.publish(part, folder / STAMP)
    return program


def for_tests(
    prefix: str, release: Release, wheel: UpstreamWheel, wheels: Sequence[Path], more: Sequence[str] = ()
) -> Path:
    """The interpreter of an environment with all that the tests of the installed wheels need. ``more``: names of
    further requirement files."""
    # Those that are built here are among the wheels.
    built = {path.name.split("-")[0] for path in wheels}
    names = [name for name in COMPANIONS if name in release.companions and name not in built]
    companions = [f"{name}=={release.companions[name]}" for name in names]
    # Both files by name: a change in either makes a new environment.
    requirements = [REQUIREMENTS / name for name in ("demo.txt", "test.txt", *more)]
    name = f"{prefix}-{release.torch}-{wheel.python_tag}"
    return obtain(name, wheel.python, wheels, requirements, companions, release.beside)


def overlay(program: Path, libraries: Path, folder: Path) -> Path:
    """A copy of an environment's torch in ``folder``, of links but for these libraries of torch/lib; for PYTHONPATH."""
    command = [str(program), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    # A library looks for others beside the path that it was loaded by, which the links have here.
    inner = folder / "torch" / "lib"
    inner.mkdir(parents=True)
    for beside in ("mxmaca", "torchgen"):
        (folder / beside).symlink_to(site / beside)
    for source in (site / "torch").iterdir():
        if source.name != inner.name:
            (inner.parent / source.name).symlink_to(source)
    for source in (site / "torch" / "lib").iterdir():
        own = libraries / source.name
        (inner / source.name).symlink_to(own if own.is_file() else source)
    return folder


def _use(folder: Path) -> str:
    """The lock that keeps an environment as it is while something runs in it."""
    return f"use-{folder.name}"


def run(
    command: Sequence[str],
    cwd: Path,
    environment: Optional[Dict[str, str]] = None,
    line: Optional[Callable[[str], None]] = None,
) -> int:
    """Run a program of an environment. ``command[0]`` is the environment's Python.

    Its output goes to the terminal, or line by line to ``line``. Returns its exit status.
    """
    sys.stdout.flush()
    with cache.lock(_use(Path(command[0]).parent.parent), shared=True):
        if line is None:
            return subprocess.run(command, cwd=str(cwd), env=environment, check=False).returncode
        with subprocess.Popen(
            command,
            cwd=str(cwd),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for text in process.stdout:
                line(text.rstrip("\n"))
        return process.returncode
