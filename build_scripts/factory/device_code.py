"""Cutting NVIDIA device code, and what only a linker reads, out of an ELF library.

Note: the cut
~~~~~~~~~~~~~
``.nv_fatbin`` and ``__nv_relfatbin`` hold nine tenths of upstream's CUDA libraries, and nothing of them can run here.
Host code still points into them (``.nvFatBinSegment``, relocations), so no virtual address may move. A PT_LOAD
segment that holds such a section is therefore split around it:

    before   |<------ PT_LOAD: p_filesz = p_memsz ------------------>|
             | .rodata | .nv_fatbin                     | .eh_frame  |
    after    |<- PT_LOAD: p_filesz ->|<- p_memsz runs on ->|<- PT_LOAD ->|
             | .rodata | (SHT_NOBITS: zeros, no file)   | .eh_frame  |

The loader backs the gap with pages of zeros that cost nothing until they are read. The tail keeps its address; its
file offset falls by whole pages, since the loader demands that address and offset agree modulo the page size. What is
left of the section (less than a page) stays in the file as zeros. Program headers grow in place, into the room that
patchelf left behind the table; where there is none the build stops.

Static symbol tables and debug sections go in the same pass, as ``strip --strip-unneeded`` would remove them. Doing it
here makes the result depend on this file alone, not on the binutils of the machine.
"""

import shutil
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, List, Tuple

from ..errors import FactoryError
from . import elf
from .elf import ElfFile, Section, Segment

DEVICE_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
# The header of a fat binary: magic 0xBA55ED50, version 1, header size 16. The size of what follows comes after it.
FATBIN_HEADER = struct.pack("<IHH", 0xBA55ED50, 1, 16)
FATBIN_ALIGNMENT = 8
COPY_CHUNK = 1 << 24


@dataclass
class CutResult:
    """What a cut took away: the device sections with their sizes, and the bytes by which the file became smaller."""

    device_sections: Dict[str, int]
    removed: int


@dataclass
class Hole:
    """A range of the file that goes away. ``zero_from``: where the part begins that stays, as zeros."""

    start: int
    end: int


def device_sections(library: ElfFile) -> List[Section]:
    """The sections that still hold device code in the file: by their name, or because nothing else is in them."""
    return [s for s in library.sections if s.file_size and (s.name in DEVICE_SECTIONS or _is_fat(library, s))]


def _is_fat(library: ElfFile, section: Section) -> bool:
    """Whether a section is fat binaries from end to end: a large code model puts some into ``.lrodata``."""
    at, end = section.offset, section.offset + section.size
    if section.flags & elf.SHF_WRITE or library.data[at : at + len(FATBIN_HEADER)] != FATBIN_HEADER:
        return False
    while at < end and library.data[at : at + len(FATBIN_HEADER)] == FATBIN_HEADER:
        (size,) = struct.unpack_from("<Q", library.data, at + len(FATBIN_HEADER))
        at += len(FATBIN_HEADER) + 8 + -(-size // FATBIN_ALIGNMENT) * FATBIN_ALIGNMENT
    return at >= end


def strippable_sections(library: ElfFile) -> List[Section]:
    """Sections that no loader reads: static symbols and debug information."""
    names_table = library.shstrndx
    dynamic_strings = {s.link for s in library.sections if s.type == elf.SHT_DYNSYM}
    found = []
    for index, section in enumerate(library.sections):
        if index in (0, names_table) or index in dynamic_strings or section.flags & elf.SHF_ALLOC:
            continue
        if section.type in (elf.SHT_SYMTAB, elf.SHT_STRTAB) or section.name.startswith((".debug", ".zdebug")):
            found.append(section)
    return found


def cut(source: Path, target: Path, name: str) -> CutResult:
    """Write ``source`` without device code and static symbols to ``target``. Returns what was removed.

    Raises FactoryError where the file's layout does not allow it; ``target`` is then not to be used.
    """
    with elf.open_elf(source, name) as library:
        device = device_sections(library)
        stripped = strippable_sections(library)
        if not device and not stripped:
            shutil.copyfile(str(source), str(target))
            return CutResult({}, 0)
        plan = _Plan(library, device, stripped)
        with target.open("wb") as out:
            plan.write(out)
        return CutResult({s.name: s.size for s in device}, len(library.data) - target.stat().st_size)


class _Plan:
    """The new layout of one file: holes, segments, sections."""

    def __init__(self, library: ElfFile, device: List[Section], stripped: List[Section]) -> None:
        self.library = library
        self.zeros: List[Tuple[int, int]] = []
        self.page = max((s.align for s in library.segments if s.type == elf.PT_LOAD), default=0x1000)
        self.holes: List[Hole] = []
        for section in device:
            self._check_alone(section)
            self._add_hole(section.offset, section.offset + section.size, zero_rest=True)
        # Neighbouring tables make one hole, so that only one remainder of a page stays behind.
        for start, end in _merge([(s.offset, s.offset + s.size) for s in stripped], slack=64):
            self._add_hole(start, end, zero_rest=True)
        self.holes.sort(key=lambda hole: hole.start)
        self.segments = self._split_segments(device)
        self.sections, self.section_numbers = self._new_sections(device, stripped)
        self._check_room()

    def _check_alone(self, section: Section) -> None:
        end = section.offset + section.size
        for other in self.library.sections:
            if (
                other is not section
                and other.file_size
                and other.offset < end
                and section.offset < other.offset + other.size
            ):
                raise FactoryError(
                    f"{self.library.name}: sections {section.name} and {other.name} overlap; it cannot be cut."
                )
        if section.flags & elf.SHF_WRITE:
            raise FactoryError(f"{self.library.name}: section {section.name} is writable; it cannot be cut.")

    def _add_hole(self, start: int, end: int, zero_rest: bool) -> None:
        pages = (end - start) // self.page
        if pages:
            self.holes.append(Hole(start, start + pages * self.page))
        if zero_rest:
            self.zeros.append((start + pages * self.page, end))

    def moved(self, offset: int) -> int:
        """The new file offset of what was at ``offset``; inside a hole, of the place where the hole closes."""
        shift = 0
        for hole in self.holes:
            if offset >= hole.end:
                shift += hole.end - hole.start
            elif offset > hole.start:
                shift += offset - hole.start
        return offset - shift

    def _split_segments(self, device: List[Section]) -> List[Segment]:
        result: List[Segment] = []
        for segment in self.library.segments:
            inside = sorted(
                (
                    s
                    for s in device
                    if segment.offset <= s.offset and s.offset + s.size <= segment.offset + segment.filesz
                ),
                key=lambda s: s.offset,
            )
            if segment.type != elf.PT_LOAD:
                if inside:
                    raise FactoryError(f"{self.library.name}: device code lies in a segment of type {segment.type:#x}.")
                result.append(replace(segment, offset=self.moved(segment.offset)))
                continue
            result += self._split(segment, inside)
        return result

    def _split(self, segment: Segment, inside: List[Section]) -> List[Segment]:
        parts = []
        start, end, memory_end = segment.offset, segment.offset + segment.filesz, segment.vaddr + segment.memsz
        for section in inside:
            section_end = section.offset + section.size
            vaddr = segment.vaddr + start - segment.offset
            parts.append(
                replace(
                    segment,
                    offset=self.moved(start),
                    vaddr=vaddr,
                    paddr=segment.paddr + start - segment.offset,
                    filesz=section.offset - start,
                    memsz=section_end - start,
                )
            )
            start = section_end
        if start < end or not inside:
            vaddr = segment.vaddr + start - segment.offset
            parts.append(
                replace(
                    segment,
                    offset=self.moved(start),
                    vaddr=vaddr,
                    paddr=segment.paddr + start - segment.offset,
                    filesz=end - start,
                    memsz=memory_end - vaddr,
                )
            )
        return parts

    def _new_sections(self, device: List[Section], stripped: List[Section]) -> Tuple[List[Section], Dict[int, int]]:
        kept = [(i, s) for i, s in enumerate(self.library.sections) if not any(s is gone for gone in stripped)]
        numbers = {old: new for new, (old, _) in enumerate(kept)}
        result = []
        for _, section in kept:
            changed = replace(section, offset=self.moved(section.offset), link=numbers.get(section.link, 0))
            if section.type in (elf.SHT_REL, elf.SHT_RELA) or section.flags & elf.SHF_INFO_LINK:
                changed.info = numbers.get(section.info, 0)
            if any(section is cut_away for cut_away in device):
                changed.type = elf.SHT_NOBITS
            result.append(changed)
        return result, numbers

    def _check_room(self) -> None:
        library = self.library
        table_end = library.phoff + len(self.segments) * elf.PROGRAM_HEADER.size
        old_end = library.phoff + library.phnum * elf.PROGRAM_HEADER.size
        first = min((s.offset for s in library.sections if s.file_size and s.offset >= old_end), default=table_end)
        if table_end > first:
            raise FactoryError(
                f"{library.name}: no room for {len(self.segments) - library.phnum} more program headers.",
                "Upstream's wheels have passed through patchelf, which leaves that room; this file has not.",
            )
        for segment in self.segments:
            if segment.type == elf.PT_PHDR:
                segment.filesz = segment.memsz = len(self.segments) * elf.PROGRAM_HEADER.size
            if segment.type == elf.PT_LOAD and segment.align > 1 and (segment.offset - segment.vaddr) % segment.align:
                raise FactoryError(f"{library.name}: a segment at {segment.vaddr:#x} would lose its alignment.")

    def write(self, out) -> None:  # type: ignore[no-untyped-def]
        library = self.library
        position = 0
        for hole in self.holes + [Hole(len(library.data), len(library.data))]:
            while position < hole.start:
                chunk = library.data[position : min(position + COPY_CHUNK, hole.start)]
                out.write(chunk)
                position += len(chunk)
            position = hole.end
        for start, end in self.zeros:
            out.seek(self.moved(start))
            out.write(bytes(end - start))
        self._write_symbol_numbers(out)
        out.seek(self.moved(library.shoff))
        out.write(b"".join(section.pack() for section in self.sections))
        gone = len(library.sections) - len(self.sections)
        out.write(bytes(gone * elf.SECTION_HEADER.size))
        out.seek(library.phoff)
        out.write(b"".join(segment.pack() for segment in self.segments))
        out.seek(0)
        out.write(
            elf.FILE_HEADER.pack(
                library.ident,
                library.type,
                library.machine,
                library.version,
                library.entry,
                library.phoff,
                self.moved(library.shoff),
                library.flags,
                library.ehsize,
                library.phentsize,
                len(self.segments),
                library.shentsize,
                len(self.sections),
                self.section_numbers[library.shstrndx],
            )
        )

    def _write_symbol_numbers(self, out) -> None:  # type: ignore[no-untyped-def]
        """Dynamic symbols name the section that they are in by its number, which may have changed."""
        if all(old == new for old, new in self.section_numbers.items()):
            return
        for section in self.library.sections:
            if section.type != elf.SHT_DYNSYM:
                continue
            table = bytearray(self.library.data[section.offset : section.offset + section.size])
            for at in range(0, len(table), elf.SYMBOL.size):
                (old,) = struct.unpack_from("<H", table, at + 6)
                if elf.SHN_UNDEF < old < elf.SHN_LORESERVE:
                    struct.pack_into("<H", table, at + 6, self.section_numbers.get(old, 0xFFF1))
            out.seek(self.moved(section.offset))
            out.write(table)


def _merge(ranges: List[Tuple[int, int]], slack: int) -> List[Tuple[int, int]]:
    merged: List[Tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start - merged[-1][1] <= slack and start >= merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def fatbin_offsets(library: ElfFile) -> List[int]:
    """Where in the file a fat binary's header stands; none in a library that was cut."""
    found, at = [], library.data.find(FATBIN_HEADER)
    while at >= 0:
        found.append(at)
        at = library.data.find(FATBIN_HEADER, at + 1)
    return found
