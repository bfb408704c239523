"""The Makefile's own virtual environment, ``.venv``: made, brought up to date, and known to be whole.

    python3 build_scripts/tools.py [tools|image|dev]

Runs with any Python from 3.8 on, before anything is installed. Each level has a stamp, ``.venv/.<level>``, that says
what the level was installed from. Stamps are written last and removed first: an environment whose making or changing
was killed has none of them, and is made anew. pip would take a half-installed package for a whole one.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Sequence

CHECKOUT = Path(__file__).resolve().parent.parent
FOLDER = CHECKOUT / ".venv"
REQUIREMENTS = CHECKOUT / "requirements"
LOCK = ".lock"
# Each level with the file of its requirements, the levels that it comes on top of, and what the user reads.
LEVELS: Dict[str, "tuple[str, Sequence[str], str]"] = {
    "tools": ("factory.txt", (), "Installing the factory's tools …"),
    "image": ("image.txt", ("tools",), "Installing the tools of the container image …"),
    "dev": ("dev.txt", ("tools",), "Installing the test and lint tools …"),
}


class ToolsError(Exception):
    """What is wrong, in a sentence for the user."""


def stamp(level: str) -> Path:
    return FOLDER / f".{level}"


def wanted(level: str) -> str:
    """A level's stamp: the hash of its requirements with those they include, and the place, which scripts carry."""
    digest = hashlib.sha256()
    files: List[Path] = [REQUIREMENTS / LEVELS[level][0]]
    for path in files:
        text = path.read_text(encoding="utf-8")
        digest.update(text.encode())
        included = (line.split(None, 1)[1].strip() for line in text.splitlines() if line.startswith("-r "))
        files += [REQUIREMENTS / name for name in included if REQUIREMENTS / name not in files]
    return f"{digest.hexdigest()}\n{FOLDER}\n"


def is_whole(level: str) -> bool:
    """Whether nothing has to be done for that level."""
    return _read(stamp(level)) == wanted(level) and os.access(str(python()), os.X_OK)


def is_usable() -> bool:
    """Whether what is there was finished once, in this place, and can be brought up to date."""
    stamps = (_read(stamp(level)) for level in LEVELS)
    return any(text.endswith(f"\n{FOLDER}\n") for text in stamps) and os.access(str(python()), os.X_OK)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def python() -> Path:
    return FOLDER / "bin" / "python"


def locked() -> int:
    """The descriptor of the lock on ``.venv``, held. Children inherit it, so one that outlives us is waited for."""
    if not FOLDER.is_dir() and (FOLDER.exists() or FOLDER.is_symlink()):
        raise ToolsError(f"{FOLDER} is no folder; remove it")
    if FOLDER.is_symlink():
        raise ToolsError(f"{FOLDER} is a link, and the folder behind it would be emptied; remove the link")
    while True:
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / LOCK
        descriptor = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            print("Another make is at work in .venv; waiting for it …", file=sys.stderr, flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        # `make clean` took it away meanwhile.
        os.close(descriptor)


def run(command: Sequence[str], lock: int) -> bool:
    return subprocess.run(command, pass_fds=(lock,), stdin=subprocess.DEVNULL, check=False).returncode == 0


def make(lock: int) -> None:
    """An empty environment in place of what is there."""
    for level in LEVELS:
        if stamp(level).exists():
            stamp(level).unlink()
    left = [path for path in FOLDER.iterdir() if path.name != LOCK]
    if left:
        print("The environment .venv is not whole; it is made anew …", file=sys.stderr, flush=True)
    for path in left:
        shutil.rmtree(str(path)) if path.is_dir() and not path.is_symlink() else path.unlink()
    # An activated .venv has just been removed.
    interpreter = getattr(sys, "_base_executable", None) or sys.executable
    if not run([interpreter, "-m", "venv", str(FOLDER)], lock):
        raise ToolsError("cannot make .venv; install Python's venv module")


def install(level: str, lock: int) -> None:
    """Bring a level up to date. Until it is, no level counts: they share packages."""
    names = [other for other in LEVELS if other != level and is_whole(other)]
    kept = {name: wanted(name) for name in names}
    for name in LEVELS:
        if stamp(name).exists():
            stamp(name).unlink()
    file, _, title = LEVELS[level]
    print(title, file=sys.stderr, flush=True)
    pip = [str(python()), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if not run([*pip, "-r", str(REQUIREMENTS / file)], lock):
        raise ToolsError("pip could not install the tools; check the network and `python -m pip config list`")
    for name, text in {**kept, level: wanted(level)}.items():
        part = stamp(name).with_name(f".{name}.part")
        part.write_text(text)
        os.replace(str(part), str(stamp(name)))


def obtain(level: str) -> None:
    """Make ``.venv`` whole for that level. Where it is already, nothing is written."""
    if is_whole(level):
        return
    lock = locked()
    try:
        needed = [*LEVELS[level][1], level]
        if not is_usable():
            make(lock)
        for name in needed:
            if not is_whole(name):
                install(name, lock)
    finally:
        os.close(lock)


def main() -> int:
    level = sys.argv[1] if len(sys.argv) == 2 else "tools"
    if level not in LEVELS:
        print(f"usage: {sys.argv[0]} [{'|'.join(LEVELS)}]", file=sys.stderr)
        return 2
    try:
        obtain(level)
    except ToolsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
