"""Wheels of packages that require torch: upstream's, with NVIDIA's libraries and device code out.

Their operators find the kernels that are left through macatorch (Foreign.cpp): an operator whose CUDA kernel is gone
goes to its CPU kernel, and one without fails with the kernel's name.
"""

import json
import re
import struct
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Dict, List, Optional

from .. import cache
from ..errors import FactoryError
from ..factory import device_code, elf, metadata, patchelf, stripped, upstream
from ..factory.wheel import WheelReader, WheelWriter
from ..progress import step
from ..releases import CHECKOUT, Companion, Release, Table, UpstreamWheel, sdk_version
from . import sdk_wheel

MANIFEST = "maca.json"
PT_NOTE = 4
# Where the file header of a 64-bit ELF file has the number of program headers.
PHNUM_OFFSET = 56


def file_name(table: Table, companion: Companion, torch: UpstreamWheel, version: str) -> str:
    own = metadata.companion_version(table, companion, torch.version, version)
    return f"{companion.name}-{own}-{companion.beside(torch).built_tag}.whl"


def build(
    table: Table,
    release: Release,
    companion: Companion,
    torch: UpstreamWheel,
    output: Path,
    given: Optional[Path],
    checkout: Path = CHECKOUT,
) -> Path:
    """Build the wheel that goes beside one of torch. ``given`` counts where it is a folder with upstream's file."""
    version = sdk_version(checkout)
    wheel = companion.beside(torch)
    patchelf.find()
    there = given is not None and given.is_dir() and (given / wheel.file).is_file()
    source = upstream.obtain(wheel, given if there else None)
    name = file_name(table, companion, torch, version)
    own = metadata.companion_version(table, companion, release.torch, version)
    with cache.lock(f"wheel-{name}"), cache.work_folder(f"wheel-{name}") as work, WheelReader(source) as reader:
        if reader.dist_info != f"{companion.name}-{companion.version}.dist-info":
            raise FactoryError(f"{wheel.file} is a foreign wheel: it holds {reader.dist_info}.")
        cache.require_space(work, sum(info.file_size for info in reader.members.values()), f"Unpacking {wheel.file}")
        writer = WheelWriter(f"{companion.name}-{own}.dist-info")
        manifest: Dict[str, Any] = {
            "name": companion.name,
            "version": companion.version,
            "torch": release.torch,
            "cuda": release.cuda,
            "sdk": version,
            "upstream": {"file": wheel.file, "sha256": wheel.sha256},
            "device_code": {},
            "removed": [],
        }
        with step(f"Taking what is NVIDIA's out of {wheel.file}"):
            _add_members(writer, reader, companion, release, table, work, manifest)
        _add_metadata(writer, reader, table, release, companion, wheel, own, manifest)
        return sdk_wheel.write_atomically(writer, output, name)


def _add_members(
    writer: WheelWriter,
    reader: WheelReader,
    companion: Companion,
    release: Release,
    table: Table,
    work: Path,
    manifest: Dict[str, Any],
) -> None:
    folders = {str(parent) for name in reader.members for parent in PurePosixPath(name).parents}
    for number, (name, info) in enumerate(sorted(reader.members.items())):
        if name.startswith(f"{reader.dist_info}/"):
            continue
        if any(fnmatch(name, pattern) for pattern in companion.remove):
            manifest["removed"].append(name)
        elif elf.is_elf(reader.head(name)):
            raw, result = reader.extract(name, work / "raw"), work / f"{number}"
            drop_notes(raw, name)
            outcome = device_code.cut(raw, result, name)
            with elf.open_elf(result, name) as library:
                rpath = stripped.rpath_of(name, library, release.cuda_major, folders)
                needed = library.needed
            patchelf.edit(result, rpath, replace_needed=stripped.own_names(needed, table.nvidia))
            raw.unlink()
            if outcome.device_sections:
                manifest["device_code"][name] = {"sections": outcome.device_sections, "removed": outcome.removed}
            writer.add_file(name, result, executable=True)
        else:
            content = reader.read(name)
            if name == f"{companion.name}/version.py":
                own = metadata.companion_version(table, companion, release.torch, manifest["sdk"])
                content = _labelled(content, companion, own, reader.path.name)
            writer.add_bytes(name, content, bool((info.external_attr >> 16) & 0o111))


def _labelled(content: bytes, companion: Companion, own: str, where: str) -> bytes:
    """The module of the version with our label in the place of upstream's, which names a CUDA release."""
    text, count = re.subn(r"(?m)^__version__ = (['\"]).*?\1$", f"__version__ = '{own}'", content.decode("utf-8"))
    if count != 1:
        raise FactoryError(f"{where}: {companion.name}/version.py assigns no __version__ that could be ours.")
    return text.encode("utf-8")


def drop_notes(path: Path, name: str) -> None:
    """Take the program headers of notes out of a library with device code: the cut needs the room of one.

    The linker left no room behind the table, and no loader needs these notes; they stay as sections.
    """
    with elf.open_elf(path, name) as library:
        if not device_code.device_sections(library):
            return
        kept = [segment for segment in library.segments if segment.type != PT_NOTE]
        place, old = library.phoff, library.phnum
    packed = b"".join(segment.pack() for segment in kept)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(packed + bytes((old - len(kept)) * elf.PROGRAM_HEADER.size))
        file.seek(PHNUM_OFFSET)
        file.write(struct.pack("<H", len(kept)))


def _add_metadata(
    writer: WheelWriter,
    reader: WheelReader,
    table: Table,
    release: Release,
    companion: Companion,
    wheel: UpstreamWheel,
    own: str,
    manifest: Dict[str, Any],
) -> None:
    text = reader.read(f"{reader.dist_info}/METADATA").decode("utf-8")
    tag = wheel.built_tag
    ours = {
        "METADATA": metadata.rewrite_companion(text, companion.version, table, manifest["sdk"], release, own),
        "WHEEL": metadata.wheel_file([tag]),
        MANIFEST: json.dumps(manifest, indent=1, sort_keys=True) + "\n",
    }
    for name in reader.members:
        if name.startswith(f"{reader.dist_info}/"):
            rest = name.split("/", 1)[1]
            if rest not in ours and rest != "RECORD":
                writer.add_bytes(f"{writer.dist_info}/{rest}", reader.read(name))
    for rest, content in ours.items():
        writer.add_bytes(f"{writer.dist_info}/{rest}", content.encode("utf-8"))


def failures(companion: Companion, members: List[str], manifest: Dict[str, Any], requires: List[str]) -> List[str]:
    """What is wrong with the contents of a finished wheel, beside what holds for all wheels."""
    found = [f"{name} is NVIDIA's" for name in members if any(fnmatch(name, pattern) for pattern in companion.remove)]
    wanted = f"torch=={metadata.local_version(manifest['torch'], manifest['sdk'])}"
    if wanted not in requires:
        found.append(f"it does not require {wanted}")
    return found
