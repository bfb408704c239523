"""Wheels as files: reading them with suspicion, writing them canonically.

Note: canonical wheels
~~~~~~~~~~~~~~~~~~~~~~
The same members give the same bytes: members sorted with the dist-info folder last, one fixed time, two modes (0644,
0755), RECORD in the same order, every member deflated at one level in chunks of one size. Chunks are compressed in
parallel, each primed with the 32 KiB before it, and joined at byte boundaries (RFC 1951, as pigz does), so the result
does not depend on how many processors there are.
"""

import base64
import csv
import hashlib
import io
import os
import stat
import struct
import zipfile
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Deque, Dict, Iterator, List, Optional, Tuple, Union

from ..errors import FactoryError
from ..progress import bar

LEVEL = 6
CHUNK = 1 << 22
WINDOW = 1 << 15
# 1980-01-01 00:00, the first moment that a zip file can name.
DOS_DATE, DOS_TIME = 0x21, 0
VERSION_MADE_BY, VERSION_NEEDED, UTF8_NAMES = (3 << 8) | 20, 20, 0x800
LOCAL_HEADER = struct.Struct("<IHHHHHIIIHH")
CENTRAL_HEADER = struct.Struct("<IHHHHHHIIIHHHHHII")
END_RECORD = struct.Struct("<IHHHHIIH")
ZIP_LIMIT = (1 << 32) - 1


def record_hash(digest: bytes) -> str:
    """A sha256 as RECORD writes it."""
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


# ---- reading ---------------------------------------------------------------------------------------------------------


def check_member(info: zipfile.ZipInfo, wheel: str) -> None:
    """Refuse what could reach outside the folder that a wheel is unpacked into."""
    name = info.filename
    parts = PurePosixPath(name).parts
    mode = info.external_attr >> 16
    reasons = {
        "an absolute path": name.startswith("/") or name[1:2] == ":",
        "a path out of the wheel": ".." in parts,
        "a backslash": "\\" in name or "\\" in info.orig_filename,
        "a control character": any(ord(character) < 32 for character in info.orig_filename),
        "an empty name": not parts,
        "a link": stat.S_ISLNK(mode),
        "no regular file": bool(stat.S_IFMT(mode))
        and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)),
        "encrypted": bool(info.flag_bits & 1),
    }
    for reason, applies in reasons.items():
        if applies:
            raise FactoryError(
                f"{wheel} is refused: its member {info.orig_filename!r} is {reason}.", "It is no wheel of upstream's."
            )


class WheelReader:
    """A wheel whose members were all found harmless."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(str(path))
        except FileNotFoundError:
            raise FactoryError(f"{path} does not exist.") from None
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise FactoryError(
                f"{path.name} is no wheel, or is truncated: {error}", "Fetch or build it again."
            ) from error
        try:
            self.members: Dict[str, zipfile.ZipInfo] = {}
            for info in self._zip.infolist():
                check_member(info, path.name)
                if info.is_dir():
                    continue
                if info.filename in self.members:
                    raise FactoryError(f"{path.name} is refused: it has the member {info.filename!r} twice.")
                self.members[info.filename] = info
        except FactoryError:
            self._zip.close()
            raise

    def __enter__(self) -> "WheelReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        try:
            return self._zip.read(name)
        except KeyError:
            raise FactoryError(f"{self.path.name} has no member {name}.") from None
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise FactoryError(f"{self.path.name} is damaged at {name}: {error}", "Fetch or build it again.") from error

    def extract(self, name: str, target: Path) -> Path:
        """Write one member to the file ``target``."""
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._zip.open(name) as source, target.open("wb") as out:
                for chunk in iter(lambda: source.read(CHUNK), b""):
                    out.write(chunk)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise FactoryError(f"{self.path.name} is damaged at {name}: {error}", "Fetch or build it again.") from error
        if is_executable(self.members[name]):
            target.chmod(0o755)
        return target

    def head(self, name: str, size: int = 4) -> bytes:
        with self._zip.open(name) as source:
            return source.read(size)

    def compressed(self, name: str) -> Iterator[bytes]:
        """The member's bytes as they lie in the file, still compressed."""
        info = self.members[name]
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            header = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
            file.seek(header[9] + header[10], os.SEEK_CUR)
            left = info.compress_size
            while left:
                chunk = file.read(min(CHUNK, left))
                if not chunk:
                    raise FactoryError(f"{self.path.name} is truncated at {name}.")
                left -= len(chunk)
                yield chunk

    @cached_property
    def dist_info(self) -> str:
        found = {name.split("/")[0] for name in self.members if name.split("/")[0].endswith(".dist-info")}
        if len(found) != 1:
            raise FactoryError(f"{self.path.name} is no wheel: it has {len(found)} .dist-info folders.")
        return found.pop()

    def record(self) -> Dict[str, Tuple[str, int]]:
        """RECORD: member → (hash, size)."""
        text = io.StringIO(self.read(f"{self.dist_info}/RECORD").decode("utf-8"), newline="")
        return {name: (digest, int(size)) for name, digest, size in csv.reader(text) if digest}


def is_executable(info: zipfile.ZipInfo) -> bool:
    return bool((info.external_attr >> 16) & 0o111)


# ---- writing ---------------------------------------------------------------------------------------------------------


@dataclass
class _Reused:
    """A member taken over from another wheel of this factory's without compressing it again."""

    reader: WheelReader
    name: str
    digest: str


@dataclass
class _Member:
    name: str
    content: Union[bytes, Path, _Reused]
    executable: bool

    @property
    def size(self) -> int:
        if isinstance(self.content, _Reused):
            return self.content.reader.members[self.content.name].file_size
        return self.content.stat().st_size if isinstance(self.content, Path) else len(self.content)


@dataclass
class _Written:
    """What the central directory and RECORD say about a member."""

    name: str
    executable: bool
    offset: int
    crc: int = 0
    size: int = 0
    compressed: int = 0
    digest: str = ""
    hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def header_fields(self) -> Tuple[int, ...]:
        return (
            UTF8_NAMES,
            zipfile.ZIP_DEFLATED,
            DOS_TIME,
            DOS_DATE,
            self.crc,
            self.compressed,
            self.size,
            len(self.name.encode()),
        )


def _deflate(data: bytes, before: bytes, last: bool) -> bytes:
    args = (LEVEL, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY)
    compressor = zlib.compressobj(*args, before) if before else zlib.compressobj(*args)
    return compressor.compress(data) + compressor.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)


class WheelWriter:
    """Collects members, then writes them all at once."""

    def __init__(self, dist_info: str) -> None:
        self.dist_info = dist_info
        self._members: Dict[str, _Member] = {}

    def _add(self, member: _Member) -> None:
        if member.name in self._members:
            raise FactoryError(f"The wheel would have the member {member.name} twice.")
        self._members[member.name] = member

    def add_bytes(self, name: str, content: bytes, executable: bool = False) -> None:
        self._add(_Member(name, content, executable))

    def add_file(self, name: str, path: Path, executable: Optional[bool] = None) -> None:
        self._add(_Member(name, path, os.access(str(path), os.X_OK) if executable is None else executable))

    def add_from(self, reader: WheelReader, source: str, name: str, digest: str) -> None:
        """Take a member of a wheel that this class wrote, as it is; ``digest`` is its hash in that wheel's RECORD."""
        self._add(_Member(name, _Reused(reader, source, digest), is_executable(reader.members[source])))

    def write(self, path: Path) -> None:
        """Write the wheel to ``path``, with a RECORD of everything in it."""
        record_name = f"{self.dist_info}/RECORD"
        members = sorted(self._members.values(), key=lambda m: (m.name.startswith(f"{self.dist_info}/"), m.name))
        written: List[_Written] = []
        total = sum(member.size for member in members)
        workers = os.cpu_count() or 1
        with path.open("wb") as out, ThreadPoolExecutor(workers) as pool, bar("packing", total) as progress:
            pending: Deque[Tuple[_Written, int, bool, Future[bytes]]] = deque()
            for member in members:
                entry = _Written(member.name, member.executable, 0)
                if isinstance(member.content, _Reused):
                    self._drain(out, pending, 0)
                    self._copy(out, entry, member.content)
                    progress.advance(member.size)
                    written.append(entry)
                    continue
                written.append(entry)
                for index, (data, before, last) in enumerate(_chunks(member.content)):
                    entry.crc = zlib.crc32(data, entry.crc)
                    entry.hash.update(data)
                    entry.size += len(data)
                    pending.append((entry, index, last, pool.submit(_deflate, data, before, last)))
                    self._drain(out, pending, 2 * workers)
                    progress.advance(len(data))
            self._drain(out, pending, 0)
            record = io.StringIO()
            rows = csv.writer(record, lineterminator="\n")
            rows.writerows([*((w.name, w.digest, w.size) for w in written), (record_name, "", "")])
            entry = _Written(record_name, False, out.tell())
            body = record.getvalue().encode("utf-8")
            entry.crc, entry.size = zlib.crc32(body), len(body)
            pending.append((entry, 0, True, pool.submit(_deflate, body, b"", True)))
            self._drain(out, pending, 0)
            written.append(entry)
            self._finish(out, written)

    @staticmethod
    def _drain(out: IO[bytes], pending: "Deque[Tuple[_Written, int, bool, Future[bytes]]]", leave: int) -> None:
        """Write what is compressed, in order, until no more than ``leave`` chunks are under way."""
        while len(pending) > leave:
            entry, index, last, future = pending.popleft()
            if index == 0:
                entry.offset = out.tell()
                out.write(bytes(LOCAL_HEADER.size) + entry.name.encode())
            data = future.result()
            out.write(data)
            entry.compressed += len(data)
            if last:
                entry.digest = record_hash(entry.hash.digest())
                _write_local_header(out, entry)

    @staticmethod
    def _copy(out: IO[bytes], entry: _Written, source: _Reused) -> None:
        info = source.reader.members[source.name]
        entry.offset, entry.crc, entry.size, entry.digest = out.tell(), info.CRC, info.file_size, source.digest
        out.write(bytes(LOCAL_HEADER.size) + entry.name.encode())
        for chunk in source.reader.compressed(source.name):
            out.write(chunk)
            entry.compressed += len(chunk)
        _write_local_header(out, entry)

    @staticmethod
    def _finish(out: IO[bytes], written: List[_Written]) -> None:
        start = out.tell()
        for entry in written:
            mode = stat.S_IFREG | (0o755 if entry.executable else 0o644)
            out.write(
                CENTRAL_HEADER.pack(
                    0x02014B50,
                    VERSION_MADE_BY,
                    VERSION_NEEDED,
                    *entry.header_fields(),
                    0,
                    0,
                    0,
                    0,
                    mode << 16,
                    entry.offset,
                )
            )
            out.write(entry.name.encode())
        end = out.tell()
        if end > ZIP_LIMIT or len(written) > 0xFFFF:
            raise FactoryError(
                f"The wheel has {end} bytes in {len(written)} members, more than a plain zip file can hold."
            )
        out.write(END_RECORD.pack(0x06054B50, 0, 0, len(written), len(written), end - start, start, 0))


def _write_local_header(out: IO[bytes], entry: _Written) -> None:
    if max(entry.size, entry.compressed) > ZIP_LIMIT:
        raise FactoryError(f"{entry.name} has {entry.size} bytes, more than a plain zip file can hold.")
    end = out.tell()
    out.seek(entry.offset)
    out.write(LOCAL_HEADER.pack(0x04034B50, VERSION_NEEDED, *entry.header_fields(), 0))
    out.seek(end)


def _chunks(content: Union[bytes, Path]) -> Iterator[Tuple[bytes, bytes, bool]]:
    """The content in chunks: (chunk, what stands before it, whether it is the last)."""
    before = b""
    if isinstance(content, bytes):
        for start in range(0, max(len(content), 1), CHUNK):
            data = content[start : start + CHUNK]
            yield data, before, start + CHUNK >= len(content)
            before = data[-WINDOW:]
        return
    with content.open("rb") as file:
        data = file.read(CHUNK)
        while True:
            following = file.read(CHUNK)
            yield data, before, not following
            if not following:
                return
            before, data = data[-WINDOW:], following
