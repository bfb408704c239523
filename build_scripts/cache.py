"""Downloads and native builds that outlive a build, kept outside the checkout.

Note: whole, or made anew
~~~~~~~~~~~~~~~~~~~~~~~~~
An entry is stored under a name that says what it was made of, and appears by an atomic rename: a writer that is killed
leaves no half of it. Disks and power cuts damage what was complete once, so `keep` lists the sha256 of every file
beside the entry, and `whole` reads the entry again before each use. There is no short cut by size or time: a damaged
sector changes neither. It takes 0.7 s for a stripped wheel of 148 MB. Upstream's wheels are checked against the table
of releases, and only when they are read: where the stripped wheel is whole, they are not.

What a killed build leaves lies in `work`, under the name of the lock that it held; whoever gets the lock next, or
sweeps, removes it.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from .errors import FactoryError
from .progress import bar, note

CHUNK = 1 << 22
# What using a folder leaves in it.
IGNORED = ("__pycache__", ".pytest_cache", ".mypy_cache")
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
    The kernel releases the lock when its holder dies, so nothing has to be cleaned up after a kill -9. Programs that
    write what the lock protects must keep it when we die: `children.run` hands it on.
    """
    with _lock_file(name).open("w") as file:
        _flock(file.fileno(), shared, name)
        _held.append(file.fileno())
        try:
            yield
        finally:
            _held.remove(file.fileno())


def _lock_file(name: str) -> Path:
    return folder("locks") / f"{name}.lock"


def _flock(descriptor: int, shared: bool, name: str) -> None:
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        note(f"Another build is using {name}; waiting for it …")
        fcntl.flock(descriptor, kind)


def held_locks() -> Tuple[int, ...]:
    """File descriptors of the locks held, for children that must keep them when this process dies."""
    return tuple(_held)


@contextmanager
def work_folder(name: str) -> Iterator[Path]:
    """An empty folder for intermediate files. The caller holds the lock of that name: what is there is a dead one's."""
    path = root() / "work" / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def part_file(final: Path) -> Iterator[Path]:
    """A file beside ``final``, to be written and then published under that name. Other writers of ``final`` wait.

    The lock is on the file itself: builds with different caches may write to one folder. Left behind, it is removed.
    """
    part = final.with_name(f".{final.name}.part")
    while True:
        descriptor = os.open(str(part), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _flock(descriptor, False, final.name)
            # Whoever held it may have published or removed it meanwhile.
            if _is_open_as(descriptor, part):
                try:
                    yield part
                finally:
                    with suppress(FileNotFoundError):
                        if _is_open_as(descriptor, part):
                            part.unlink()
                return
        finally:
            os.close(descriptor)


def _is_open_as(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def sweep(output: Optional[Path] = None) -> None:
    """Remove what killed builds left: intermediate folders whose lock is free, entries on their way out, and parts of
    wheels in ``output``."""
    for path in sorted(root().glob("work/*")):
        with _lock_file(path.name).open("w") as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    for path in root().glob("trash/*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in sorted(output.glob(".*.whl.part")) if output else ():
        if path.is_symlink():
            continue
        with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_open_as(file.fileno(), path):
                path.unlink()


def sha256_of(path: Path, title: Optional[str] = None) -> str:
    size = path.stat().st_size
    if size <= CHUNK:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    with path.open("rb") as file, bar(title or path.name, size) as progress:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            digest.update(chunk)
            progress.advance(len(chunk))
    return digest.hexdigest()


def tree_digest(folder_: Path, ignore: Iterable[str] = IGNORED) -> str:
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
    """Make a finished file or folder appear under its name in one step; a file also after a power cut."""
    if temporary.is_file():
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
    else:
        discard(final)
    os.replace(str(temporary), str(final))


def discard(path: Path) -> None:
    """Remove a file or folder in one step: a folder that is half removed would pass for a whole one."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        aside = tempfile.mkdtemp(dir=str(folder("trash")))
        os.replace(str(path), os.path.join(aside, path.name))
        shutil.rmtree(aside, ignore_errors=True)


def _note_of(entry: Path) -> Path:
    return entry.with_name(f"{entry.name}.sha256")


def contents(entry: Path, ignore: Sequence[str] = IGNORED) -> Dict[str, str]:
    """What a file or folder holds: relative name → sha256 and, for a program, ``x``. A file's own name is ``.``."""
    paths = [entry] if entry.is_file() else sorted(path for path in entry.rglob("*") if path.is_file())
    found = {}
    for path in paths:
        relative = path.relative_to(entry)
        if not set(ignore).intersection(relative.parts):
            found[relative.as_posix()] = sha256_of(path) + (" x" if os.access(str(path), os.X_OK) else " -")
    return found


def keep(made: Path, entry: Path) -> None:
    """Move a finished file or folder into the cache, with the digests by which `whole` knows it again."""
    drop(entry)
    noted = _note_of(made)
    noted.write_text(json.dumps(contents(made), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    # The digests first: alone they are nothing, and an entry without them is made anew.
    publish(noted, _note_of(entry))
    publish(made, entry)


def whole(entry: Path, may_grow: bool = False) -> bool:
    """Whether the entry is there and is what was kept. One that is not is named and removed: it has to be made anew.

    ``may_grow``: files that came into the folder later do not count; tests leave some.
    """
    if not entry.exists():
        return False
    try:
        wanted: Dict[str, str] = json.loads(_note_of(entry).read_text(encoding="utf-8"))
        found = contents(entry)
        names = set(wanted) if may_grow else {*wanted, *found}
        wrong = sorted(name for name in names if wanted.get(name) != found.get(name))
        problem = f"is damaged at {', '.join(wrong[:3])}" if entry.is_dir() else "is damaged"
    except (OSError, ValueError, AttributeError):
        wrong, problem = ["?"], "has no list of sha256 beside it, or cannot be read"
    if not wrong:
        return True
    note(f"{entry} {problem}; it is removed and made anew.")
    drop(entry)
    return False


def drop(entry: Path) -> None:
    """Take an entry out of the cache."""
    discard(entry)
    with suppress(FileNotFoundError):
        _note_of(entry).unlink()


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
