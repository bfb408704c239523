"""Layers: tar files with only what the image shall hold, in a fixed order, with fixed times."""

import hashlib
import stat
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..errors import FactoryError

# Raised when the same input gives other bytes.
FORMAT = 1
WHITEOUT, OPAQUE, RESERVED = ".wh.", ".wh..wh..opq", ".wh..wh."
# Of the extended headers only extended attributes are content.
KEPT_HEADERS = "SCHILY.xattr."
# Folders that the engine fills in a running container.
LIVE = ("dev", "proc", "sys", "run")
CHUNK = 1 << 20


class Entry(NamedTuple):
    """A member and the open layer that it comes from."""

    archive: tarfile.TarFile
    member: tarfile.TarInfo


def name_of(member: tarfile.TarInfo) -> str:
    """Without the leading ``./`` and the closing slash that some writers put; empty for the root itself."""
    name = str(PurePosixPath(member.name))
    return "" if name in (".", "/") else name.lstrip("/")


def _ancestors(name: str) -> Iterator[str]:
    parts = name.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


class Layer:
    """What one or more layers of an engine's image amount to when they lie on top of each other.

    ``whole``: they start from nothing. Others may add and replace; what they removed would be a leftover below them.
    """

    def __init__(self, paths: Sequence[Path], whole: bool) -> None:
        self.archives = [tarfile.open(str(path)) for path in paths]  # noqa: SIM115  closed by close()
        self.entries: Dict[str, Entry] = {}
        # What upper layers hide of lower ones: names, and everything below names.
        gone: Set[str] = set()
        below: Set[str] = set()
        for archive in reversed(self.archives):
            removed, replaced = self._add(archive, gone, below)
            if removed and not whole:
                raise FactoryError(f"The distribution's layers remove {min(removed)}, which the system's layer holds.")
            gone |= removed
            below |= removed | replaced

    def _add(self, archive: tarfile.TarFile, gone: Set[str], below: Set[str]) -> Tuple[Set[str], Set[str]]:
        """Take over what no upper layer has or hides. Returns the names that this layer removes from lower ones, and
        those that it makes something else of, such as an opaque folder or a file where a folder was."""
        removed: Set[str] = set()
        replaced: Set[str] = set()
        for member in archive:
            name = name_of(member)
            folder, _, last = name.rpartition("/")
            if last == OPAQUE:
                replaced.add(folder)
            elif last.startswith(WHITEOUT) and not last.startswith(RESERVED):
                removed.add(f"{folder}/{last[len(WHITEOUT) :]}".lstrip("/"))
            elif name and not last.startswith(RESERVED):
                if not member.isdir():
                    replaced.add(name)
                live = folder.split("/")[0] in LIVE
                hidden = name in gone or any(above in below for above in _ancestors(name))
                if not live and not hidden and name not in self.entries:
                    self.entries[name] = Entry(archive, member)
        return removed, replaced

    def write(self, path: Path, epoch: int) -> str:
        """Write the layer; no time in it is later than ``epoch``. Returns its digest, the config's diff_id."""
        content = self._content()
        with path.open("wb") as file:
            out = _Hashing(file)
            with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
                for name in sorted(self.entries, key=_order):
                    entry = self.entries[name]
                    info = _canonical(entry.member, name, epoch)
                    source, link = content.get(name, (None, None))
                    if link is not None:
                        info.type, info.linkname, info.size = tarfile.LNKTYPE, link, 0
                        archive.addfile(info)
                    elif source is not None:
                        info.type, info.linkname, info.size = tarfile.REGTYPE, "", source.size
                        archive.addfile(info, entry.archive.extractfile(source))
                    else:
                        archive.addfile(info)
        return out.digest

    def _content(self) -> "Dict[str, Tuple[Optional[tarfile.TarInfo], Optional[str]]]":
        """Each file's content, or the name that it is a hard link to: always the first in order that is left."""
        groups: Dict[Tuple[int, str], List[str]] = {}
        targets: Dict[Tuple[int, str], tarfile.TarInfo] = {}
        for name, (archive, member) in self.entries.items():
            if member.isreg():
                group = (id(archive), name)
                targets[group] = member
            elif member.islnk():
                target = archive.getmember(member.linkname)
                group = (id(archive), name_of(target))
                targets[group] = target
            else:
                continue
            groups.setdefault(group, []).append(name)
        result: Dict[str, Tuple[Optional[tarfile.TarInfo], Optional[str]]] = {}
        for group, names in groups.items():
            first, *others = sorted(names, key=_order)
            result[first] = (targets[group], None)
            for other in others:
                result[other] = (None, first)
        return result

    def close(self) -> None:
        for archive in self.archives:
            archive.close()

    def __enter__(self) -> "Layer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _order(name: str) -> List[str]:
    return name.split("/")


def _canonical(member: tarfile.TarInfo, name: str, epoch: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = member.type, member.linkname
    info.mode, info.uid, info.gid = member.mode & 0o7777, member.uid, member.gid
    info.devmajor, info.devminor = member.devmajor, member.devminor
    info.mtime = min(int(member.mtime), epoch)
    info.pax_headers = {key: value for key, value in member.pax_headers.items() if key.startswith(KEPT_HEADERS)}
    return info


class _Hashing:
    """A file to write that knows the sha256 of what went through."""

    def __init__(self, file: "IO[bytes]") -> None:
        self._file, self._digest = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    @property
    def digest(self) -> str:
        return f"sha256:{self._digest.hexdigest()}"


def pack_tree(root: Path, path: Path, epoch: int) -> None:
    """A folder as a layer. Device nodes and what lies in the folders of a running system are left out."""
    first: Dict[Tuple[int, int], str] = {}
    with tarfile.open(str(path), mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in sorted(root.rglob("*"), key=lambda file: file.relative_to(root).parts):
            name = file.relative_to(root).as_posix()
            kind = file.lstat().st_mode
            live = name.split("/")[0] in LIVE and "/" in name
            if live or not (stat.S_ISDIR(kind) or stat.S_ISLNK(kind) or stat.S_ISREG(kind)):
                continue
            info = _canonical(archive.gettarinfo(str(file), name), name, epoch)
            if not stat.S_ISREG(kind):
                archive.addfile(info)
                continue
            status = file.lstat()
            link = first.setdefault((status.st_dev, status.st_ino), name)
            if link != name:
                info.type, info.linkname = tarfile.LNKTYPE, link
                archive.addfile(info)
                continue
            info.type, info.linkname, info.size = tarfile.REGTYPE, "", status.st_size
            with file.open("rb") as content:
                archive.addfile(info, content)
