"""Downloads and native builds that outlive a build, kept outside the checkout.

Everything is stored under a name that says what it holds (a content hash), appears by an atomic rename, and is
therefore complete or absent, whatever interrupted the writer.
"""

import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Tuple

from .errors import FactoryError
from .progress import bar, note

CHUNK = 1 << 22
_held: List[int] = []


def root() -> Path:
    """``$MACATORCH_CACHE``, else ``macatorch`` in the user's cache folder. Created where it is missing."""
    chosen = os.environ.get("MACATORCH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = Path(chosen).expanduser() if chosen else Path(base) / "macatorch"
    path = path.resolve()
    path.mkdir(parents=True, exist_ok=True)
    return path


def folder(*parts: str) -> Path:
    path = root().joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def lock(name: str, shared: bool = False) -> Iterator[None]:
    """Keep other builds away from what ``name`` stands for; wait while one of them holds it.

    ``shared``: several may hold it at once, but nobody who asks for it alone.
    The kernel releases the lock when its holder dies, so nothing has to be cleaned up after a kill -9.
    """
    path = folder("locks") / f"{name}.lock"
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with path.open("w") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"Another build is using {name}; waiting for it …")
            fcntl.flock(file, kind)
        _held.append(file.fileno())
        try:
            yield
        finally:
            _held.remove(file.fileno())


def held_locks() -> Tuple[int, ...]:
    """File descriptors of the locks held, for children that must keep them when this process dies."""
    return tuple(_held)


@contextmanager
def work_folder(name: str) -> Iterator[Path]:
    """An empty folder for intermediate files. The caller holds a lock of that name: what is there is a dead build's."""
    path = root() / "work" / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def sha256_of(path: Path, title: Optional[str] = None) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file, bar(title or path.name, path.stat().st_size) as progress:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            digest.update(chunk)
            progress.advance(len(chunk))
    return digest.hexdigest()


def tree_digest(folder_: Path, ignore: Iterable[str] = ("__pycache__", ".pytest_cache", ".mypy_cache")) -> str:
    """A hash of every file below a folder: relative names, contents, execute bits."""
    ignored = set(ignore)
    digest = hashlib.sha256()
    for path in sorted(folder_.rglob("*")):
        relative = path.relative_to(folder_)
        if ignored.intersection(relative.parts) or not path.is_file():
            continue
        executable = os.access(str(path), os.X_OK)
        digest.update(f"{relative.as_posix()}\0{executable}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def publish(temporary: Path, final: Path) -> None:
    """Make a finished file or folder appear under its name in one step, also after a power cut."""
    if temporary.is_file():
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
    elif final.exists():
        shutil.rmtree(final)
    os.replace(str(temporary), str(final))


def require_space(path: Path, needed: int, purpose: str) -> None:
    """Refuse early what would run out of space in the middle."""
    probe = path
    while not probe.exists():
        probe = probe.parent
    free = shutil.disk_usage(str(probe)).free
    if free < needed:
        raise FactoryError(
            f"{purpose} needs {needed / 1e9:.1f} GB below {path}, but only {free / 1e9:.1f} GB are free.",
            "Free some space, or choose another disk: MACATORCH_CACHE for downloads and builds, --output for wheels.",
        )
