"""A reader of 64-bit little-endian ELF files: headers, dynamic section, versioned dynamic symbols.

Formats are those of the System V ABI, chapters 4 and 5, and of the GNU symbol versioning document.
Everything is read from a buffer (bytes or mmap), so that a library of a gigabyte costs only the pages looked at.
"""

import mmap
import struct
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set, Tuple, Union

from ..errors import FactoryError

Buffer = Union[bytes, bytearray, mmap.mmap]

MAGIC = b"\x7fELF"
PT_NULL, PT_LOAD, PT_DYNAMIC, PT_PHDR = 0, 1, 2, 6
SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHT_DYNSYM = 2, 3, 4, 8, 9, 11
SHF_WRITE, SHF_ALLOC, SHF_INFO_LINK = 1, 2, 0x40
SHN_UNDEF, SHN_LORESERVE = 0, 0xFF00
STB_WEAK = 2
DT_NULL, DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_SONAME, DT_RPATH, DT_RUNPATH = 0, 1, 5, 6, 14, 15, 29
DT_VERSYM, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = (
    0x6FFFFFF0,
    0x6FFFFFFC,
    0x6FFFFFFD,
    0x6FFFFFFE,
    0x6FFFFFFF,
)
VER_NDX_GLOBAL, VERSYM_HIDDEN = 1, 0x8000

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
DYNAMIC_ENTRY = struct.Struct("<qQ")
SYMBOL = struct.Struct("<IBBHQQ")


@dataclass
class Segment:
    """A program header."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int

    def pack(self) -> bytes:
        return PROGRAM_HEADER.pack(
            self.type, self.flags, self.offset, self.vaddr, self.paddr, self.filesz, self.memsz, self.align
        )


@dataclass
class Section:
    """A section header, with its name looked up."""

    name: str
    name_offset: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entsize: int

    @property
    def file_size(self) -> int:
        return 0 if self.type == SHT_NOBITS else self.size

    def pack(self) -> bytes:
        return SECTION_HEADER.pack(
            self.name_offset,
            self.type,
            self.flags,
            self.addr,
            self.offset,
            self.size,
            self.link,
            self.info,
            self.align,
            self.entsize,
        )


@dataclass(frozen=True, order=True)
class VersionedSymbol:
    """A dynamic symbol as the linker sees it. ``library`` is the SONAME that the needed version is bound to."""

    name: str
    version: Optional[str] = None
    library: Optional[str] = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name


def is_elf(head: Union[bytes, bytearray]) -> bool:
    return head[:4] == MAGIC


class ElfFile:
    """The headers of one ELF file, and what the dynamic linker reads from it."""

    def __init__(self, data: Buffer, name: str) -> None:
        self.data = data
        self.name = name
        if len(data) < FILE_HEADER.size or not is_elf(data[:4]):
            raise FactoryError(f"{name} is no ELF file.")
        if data[4] != 2 or data[5] != 1:
            raise FactoryError(f"{name} is no 64-bit little-endian ELF file.")
        (
            self.ident,
            self.type,
            self.machine,
            self.version,
            self.entry,
            self.phoff,
            self.shoff,
            self.flags,
            self.ehsize,
            self.phentsize,
            self.phnum,
            self.shentsize,
            self.shnum,
            self.shstrndx,
        ) = FILE_HEADER.unpack_from(data)
        table_ends = (self.phoff + self.phnum * PROGRAM_HEADER.size, self.shoff + self.shnum * SECTION_HEADER.size)
        if max(table_ends) > len(data):
            raise FactoryError(f"{name} is truncated: its header tables lie beyond its end.")
        self.segments: List[Segment] = [
            Segment(*PROGRAM_HEADER.unpack_from(data, self.phoff + i * PROGRAM_HEADER.size)) for i in range(self.phnum)
        ]
        self.sections: List[Section] = self._read_sections()
        self._dynamic: Optional[List[Tuple[int, int]]] = None

    def _read_sections(self) -> List[Section]:
        headers = [
            SECTION_HEADER.unpack_from(self.data, self.shoff + i * SECTION_HEADER.size) for i in range(self.shnum)
        ]
        names = headers[self.shstrndx][4] if headers else 0
        return [Section(self._string(names + h[0]), *h) for h in headers]

    def _string(self, offset: int) -> str:
        end = self.data.find(b"\0", offset)
        return bytes(self.data[offset:end]).decode("utf-8", "surrogateescape")

    def section(self, name: str) -> Optional[Section]:
        return next((s for s in self.sections if s.name == name), None)

    def offset_of(self, vaddr: int) -> int:
        """The place in the file of what the program sees at ``vaddr``."""
        for segment in self.segments:
            if segment.type == PT_LOAD and segment.vaddr <= vaddr < segment.vaddr + segment.filesz:
                return vaddr - segment.vaddr + segment.offset
        raise FactoryError(f"{self.name}: address {vaddr:#x} is in no part of the file.")

    @property
    def dynamic(self) -> List[Tuple[int, int]]:
        """The dynamic section's entries (tag, value), without the closing DT_NULL."""
        if self._dynamic is None:
            self._dynamic = []
            segment = next((s for s in self.segments if s.type == PT_DYNAMIC), None)
            if segment is not None:
                for i in range(segment.filesz // DYNAMIC_ENTRY.size):
                    tag, value = DYNAMIC_ENTRY.unpack_from(self.data, segment.offset + i * DYNAMIC_ENTRY.size)
                    if tag == DT_NULL:
                        break
                    self._dynamic.append((tag, value))
        return self._dynamic

    def _tag(self, wanted: int) -> Optional[int]:
        return next((value for tag, value in self.dynamic if tag == wanted), None)

    def _dynamic_strings(self, wanted: int) -> List[str]:
        table = self._tag(DT_STRTAB)
        if table is None:
            return []
        base = self.offset_of(table)
        return [self._string(base + value) for tag, value in self.dynamic if tag == wanted]

    @property
    def needed(self) -> List[str]:
        return self._dynamic_strings(DT_NEEDED)

    @property
    def soname(self) -> Optional[str]:
        return next(iter(self._dynamic_strings(DT_SONAME)), None)

    @property
    def rpath(self) -> List[str]:
        """The entries of DT_RPATH, which beats LD_LIBRARY_PATH."""
        return [entry for text in self._dynamic_strings(DT_RPATH) for entry in text.split(":")]

    @property
    def runpath(self) -> List[str]:
        return [entry for text in self._dynamic_strings(DT_RUNPATH) for entry in text.split(":")]

    def _version_names(self) -> Tuple[Dict[int, Tuple[str, str]], Dict[int, str]]:
        """Version index → (version, library) for what is needed, and → version for what is defined."""
        strings = self._tag(DT_STRTAB)
        base = self.offset_of(strings) if strings is not None else 0
        needed: Dict[int, Tuple[str, str]] = {}
        defined: Dict[int, str] = {}
        table = self._tag(DT_VERNEED)
        if table is not None:
            at = self.offset_of(table)
            for _ in range(self._tag(DT_VERNEEDNUM) or 0):
                _, count, library, aux, following = struct.unpack_from("<HHIII", self.data, at)
                entry = at + aux
                for _ in range(count):
                    _, _, index, name, following_aux = struct.unpack_from("<IHHII", self.data, entry)
                    needed[index & ~VERSYM_HIDDEN] = (self._string(base + name), self._string(base + library))
                    entry += following_aux
                at += following
        table = self._tag(DT_VERDEF)
        if table is not None:
            at = self.offset_of(table)
            for _ in range(self._tag(DT_VERDEFNUM) or 0):
                _, _, index, _, _, aux, following = struct.unpack_from("<HHHHIII", self.data, at)
                (name,) = struct.unpack_from("<I", self.data, at + aux)
                defined[index & ~VERSYM_HIDDEN] = self._string(base + name)
                at += following
        return needed, defined

    def needed_versions(self) -> List[str]:
        """The symbol versions that other libraries must have, whether or not a symbol still uses one."""
        return sorted({version for version, _ in self._version_names()[0].values()})

    def _dynamic_symbols(self) -> Iterator[Tuple[str, int, int, int]]:
        """Each dynamic symbol: name, info, section index, version index."""
        table = next((s for s in self.sections if s.type == SHT_DYNSYM), None)
        if table is None:
            return
        strings = self.sections[table.link]
        count = table.size // SYMBOL.size
        versions = self._tag(DT_VERSYM)
        if versions is None:
            indices: Tuple[int, ...] = (VER_NDX_GLOBAL,) * count
        else:
            indices = struct.unpack_from(f"<{count}H", self.data, self.offset_of(versions))
        names = bytes(self.data[strings.offset : strings.offset + strings.size])
        symbols = SYMBOL.iter_unpack(bytes(self.data[table.offset : table.offset + table.size]))
        for (name, info, _, section, _, _), index in zip(symbols, indices):
            yield names[name : names.index(b"\0", name)].decode("utf-8", "surrogateescape"), info, section, index

    def undefined_symbols(self, weak: bool = True) -> List[VersionedSymbol]:
        """What other libraries must provide. ``weak=False`` leaves out what may stay unresolved."""
        needed, _ = self._version_names()
        found = []
        for name, info, section, index in self._dynamic_symbols():
            if section != SHN_UNDEF or not name or (not weak and info >> 4 == STB_WEAK):
                continue
            version, library = needed.get(index & ~VERSYM_HIDDEN, (None, None))
            found.append(VersionedSymbol(name, version, library))
        return found

    def defined_symbols(self) -> Set[VersionedSymbol]:
        """What this library provides to others, with its version where it has one."""
        _, defined = self._version_names()
        found = set()
        for name, info, section, index in self._dynamic_symbols():
            if section != SHN_UNDEF and name and info >> 4:
                index &= ~VERSYM_HIDDEN
                found.add(VersionedSymbol(name, defined.get(index) if index > VER_NDX_GLOBAL else None))
        return found


@contextmanager
def open_elf(path: Path, name: Optional[str] = None) -> Iterator[ElfFile]:
    """Read the headers of a file on disk without reading the file."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise FactoryError(f"{name or path} is empty.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield ElfFile(data, name or str(path))
