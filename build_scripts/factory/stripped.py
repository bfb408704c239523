"""Upstream's wheel without what is NVIDIA's: the intermediate that every build of a release starts from.

It depends on upstream's file and on this factory only, not on patches or native code, so it is kept in the cache:
a wheel zip in canonical form whose members the finished wheel takes over without compressing them again.
"""

import hashlib
import json
import os
import re
import zlib
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Dict, List, Optional, Set

from .. import cache
from ..errors import FactoryError
from ..progress import bar, note, step
from ..releases import Nvidia, Release, UpstreamWheel
from . import device_code, elf, hidden, patchelf, upstream
from .wheel import LEVEL, WheelReader, WheelWriter

# Records what was taken out; the finished wheel carries it on.
REPORT = "stripped.json"
OPERATORS = "libmacatorch.so"
# Takes the place of functions of autograd's engine: it has to be the first library that their caller needs.
AUTOGRAD = "libmacatorch_autograd.so"
# Which library of upstream's loads which of ours. libtorch is what a C++ program links: through it the operators come
# with every way of using torch.
CARRIERS = {"torch/lib/libtorch.so": OPERATORS, "torch/lib/libtorch_python.so": AUTOGRAD}
# The C functions that our library defines in the place of one of upstream's (macatorch/codegen/c_shims.py): that
# library, and the header that lists them.
REPLACED = "torch/lib/libtorch_cuda.so"
C_SHIMS = "torch/include/torch/csrc/inductor/aoti_torch/generated/c_shim_cuda.h"
# auditwheel puts a part of the file's hash into the name of a library that it brings along.
HASHED = re.compile(r"^(lib\w+)[.-][0-9a-f]{8}(\.so\.[\d.]+)$")
# The modules whose text decides about the bytes.
DECISIVE = ("device_code.py", "elf.py", "hidden.py", "patchelf.py", "stripped.py", "wheel.py")


def key(wheel: UpstreamWheel, release: Release, nvidia: Nvidia) -> str:
    """What the result depends on."""
    digest = hashlib.sha256()
    for name in DECISIVE:
        digest.update(Path(__file__).with_name(name).read_bytes())
    facts = [wheel.sha256, release.cuda_major, nvidia.files, nvidia.libraries]
    facts += [patchelf.find()[1], zlib.ZLIB_RUNTIME_VERSION, LEVEL]
    digest.update(json.dumps(facts).encode())
    return digest.hexdigest()


def rpath_of(member: str, library: elf.ElfFile, cuda_major: int, folders: "set[str]") -> List[str]:
    """Where an ELF file of the wheel looks: the SDK first, then itself, then upstream's own folders in the wheel.

    Upstream's entries for NVIDIA's packages and for folders of its build machine go; so does what does not exist.
    """
    depth = len(PurePosixPath(member).parts) - 1
    entries = ["$ORIGIN/" + "../" * depth + f"mxmaca/lib/cuda{cuda_major}", "$ORIGIN"]
    here = PurePosixPath(member).parent
    for entry in library.rpath + library.runpath:
        if not entry.startswith("$ORIGIN/"):
            continue
        inside = os.path.normpath(str(here / entry[len("$ORIGIN/") :]))
        if inside in folders and entry not in entries:
            entries.append(entry)
    return entries


def own_names(needed: List[str], nvidia: Nvidia) -> Dict[str, str]:
    """For libraries of NVIDIA's that upstream brings along under names of its own: the names that the SDK has."""
    found = {}
    for name in needed:
        match = HASHED.match(name)
        own = f"{match.group(1)}{match.group(2)}" if match else name
        if own != name and any(fnmatch(own, pattern) for pattern in nvidia.libraries):
            found[name] = own
    return found


def replaced_functions(reader: WheelReader) -> Set[str]:
    """Functions of upstream's that ours take the place of; none in a release without AOTInductor's C functions."""
    text = reader.read(C_SHIMS).decode() if C_SHIMS in reader.members else ""
    return set(re.findall(r"^AOTI_TORCH_EXPORT AOTITorchError (\w+)\(", text, re.MULTILINE))


def obtain(wheel: UpstreamWheel, release: Release, nvidia: Nvidia, given: Optional[Path]) -> Path:
    """The stripped wheel, from the cache or made now. Only then is upstream's read, and ``given`` with it."""
    name = key(wheel, release, nvidia)
    kept = cache.folder("stripped") / f"{wheel.file[: -len('.whl')]}-{name[:16]}.zip"
    lock = f"stripped-{wheel.sha256[:16]}"
    with cache.lock(lock):
        if not cache.whole(kept):
            source = upstream.obtain(wheel, given)
            with cache.work_folder(lock) as work:
                made = work / "stripped.zip"
                _make(source, wheel, release, nvidia, work, made)
                cache.keep(made, kept)
            # A new version of the factory leaves the old intermediate of the same wheel behind.
            for old in kept.parent.glob(f"{wheel.file[: -len('.whl')]}-*.zip"):
                if old != kept:
                    cache.drop(old)
    return kept


def _make(source: Path, wheel: UpstreamWheel, release: Release, nvidia: Nvidia, work: Path, target: Path) -> None:
    with WheelReader(source) as reader:
        if reader.dist_info != f"torch-{release.torch}.dist-info":
            raise FactoryError(f"{wheel.file} is a foreign wheel: it holds {reader.dist_info}.")
        total = sum(info.file_size for info in reader.members.values())
        cache.require_space(work, total, f"Unpacking {wheel.file}")
        writer = WheelWriter(reader.dist_info)
        folders = {str(parent) for name in reader.members for parent in PurePosixPath(name).parents}
        report: Dict[str, Any] = {"device_code": {}, "removed": []}
        with step(f"Cutting device code out of {wheel.file}"), bar("unpacking", total) as progress:
            for name, info in sorted(reader.members.items()):
                progress.advance(info.file_size)
                if name == f"{reader.dist_info}/RECORD":
                    continue
                if any(fnmatch(name, pattern) for pattern in nvidia.files):
                    report["removed"].append(name)
                elif elf.is_elf(reader.head(name)):
                    path = _process(reader, name, release, nvidia, folders, work, report)
                    writer.add_file(name, path, executable=True)
                else:
                    writer.add_bytes(name, reader.read(name), bool((info.external_attr >> 16) & 0o111))
        if not report["device_code"]:
            raise FactoryError(
                f"{wheel.file} holds no device code: it is not the CUDA build.", "Check the file name in releases.toml."
            )
        for carrier, library in CARRIERS.items():
            if carrier not in reader.members:
                raise FactoryError(f"{wheel.file} has no {carrier}; nothing could load {library}.")
        for name in report["removed"]:
            note(f"  left out: {name}")
        writer.add_bytes(f"{reader.dist_info}/{REPORT}", json.dumps(report, indent=1, sort_keys=True).encode())
        with step("Packing what is left"):
            writer.write(target)


def _process(
    reader: WheelReader,
    name: str,
    release: Release,
    nvidia: Nvidia,
    folders: "set[str]",
    work: Path,
    report: Dict[str, Any],
) -> Path:
    """One ELF file: device code and static symbols out, library search ours."""
    raw, result = work / "raw", work / "tree" / name
    reader.extract(name, raw)
    result.parent.mkdir(parents=True, exist_ok=True)
    outcome = device_code.cut(raw, result, name)
    if outcome.device_sections:
        report["device_code"][name] = {"sections": outcome.device_sections, "removed": outcome.removed}
    with elf.open_elf(result, name) as library:
        rpath = rpath_of(name, library, release.cuda_major, folders)
        needed = library.needed
    patchelf.edit(result, rpath, [CARRIERS[name]] if name in CARRIERS else [], own_names(needed, nvidia))
    if name == REPLACED:
        hidden.hide(result, replaced_functions(reader))
    raw.unlink()
    return result
