"""The triton wheel: upstream's front end and compiler library, without what is NVIDIA's, with our backend."""

import hashlib
import json
import zlib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Dict, List, Optional

from .. import cache
from ..errors import FactoryError
from ..factory import device_code, elf, metadata, patches, upstream
from ..factory.wheel import LEVEL, WheelReader, WheelWriter
from ..progress import bar, step
from ..releases import CHECKOUT, Companion, Table, UpstreamWheel, sdk_version
from . import companion_wheel, sdk_wheel

NAME = "triton"
MANIFEST = "maca.json"
# Where the backend's sources are, and the place of upstream's that they take.
SOURCES, BACKEND = "cu_bridge/triton", "triton/backends/nvidia"
# Triton finds upstream's backends by these files; without them the wheel would import and compile nothing.
ESSENTIAL = ("__init__.py", "compiler.py", "driver.py", "lowering/__init__.py")
# The modules whose text decides about the bytes of the intermediate.
DECISIVE = ("factory/device_code.py", "factory/elf.py", "products/triton_wheel.py", "factory/wheel.py")


def build(
    table: Table,
    companion: Companion,
    torch: UpstreamWheel,
    output: Path,
    given: Optional[Path],
    checkout: Path = CHECKOUT,
) -> Path:
    """Build the wheel that goes beside one of torch. What can be refused cheaply is refused before the download."""
    version = sdk_version(checkout)
    wheel = companion.beside(torch)
    backend = backend_files(checkout)
    folder = checkout / "patches" / f"{NAME}-{companion.version}"
    series = patches.load(folder, version) if folder.is_dir() else []
    base = _obtain(companion, wheel, given)
    name = companion_wheel.file_name(table, companion, torch, version)
    with cache.lock(f"wheel-{name}"), WheelReader(base) as reader:
        changed = patches.apply(series, lambda path: reader.read(path) if path in reader.members else None, folder.name)
        writer = WheelWriter(f"{NAME}-{metadata.local_version(companion.version, version)}.dist-info")
        record = reader.record()
        for member in reader.members:
            if member not in changed and not member.startswith(f"{reader.dist_info}/"):
                writer.add_from(reader, member, member, record[member][0])
        for member, content in changed.items():
            if content is not None:
                writer.add_bytes(member, content)
        for member, path in backend.items():
            writer.add_file(member, path)
        manifest = {
            "name": NAME,
            "version": companion.version,
            "sdk": version,
            "upstream": {"file": wheel.file, "sha256": wheel.sha256},
            "patches": [{"name": patch.name, "sha256": patch.sha256} for patch in series],
            "backend": {m: hashlib.sha256(path.read_bytes()).hexdigest() for m, path in sorted(backend.items())},
            "removed": json.loads(reader.read(f"{reader.dist_info}/{MANIFEST}"))["removed"],
        }
        _add_metadata(writer, reader, table, companion, wheel, version, manifest)
        cache.require_space(output, int(base.stat().st_size * 1.1), f"Writing {name}")
        return sdk_wheel.write_atomically(writer, output, name)


def backend_files(checkout: Path) -> Dict[str, Path]:
    """The files of our backend, by their name in the wheel."""
    folder = checkout / SOURCES
    for name in ESSENTIAL:
        if not (folder / name).is_file():
            raise FactoryError(f"{SOURCES}/{name} is missing.", "Run the command in a complete checkout.")
    return {
        f"{BACKEND}/{path.relative_to(folder).as_posix()}": path
        for path in sorted(folder.rglob("*.py"))
        if "__pycache__" not in path.parts
    }


def _key(companion: Companion, wheel: UpstreamWheel) -> str:
    digest = hashlib.sha256()
    for name in DECISIVE:
        digest.update((Path(__file__).parents[1] / name).read_bytes())
    digest.update(json.dumps([wheel.sha256, companion.remove, zlib.ZLIB_RUNTIME_VERSION, LEVEL]).encode())
    return digest.hexdigest()


def _obtain(companion: Companion, wheel: UpstreamWheel, given: Optional[Path]) -> Path:
    """Upstream's wheel without what is removed and without static symbols, from the cache or made now.

    ``given`` counts where it is a folder with the file: it may be a wheel of torch.
    """
    kept = cache.folder("stripped") / f"{wheel.file[: -len('.whl')]}-{_key(companion, wheel)[:16]}.zip"
    lock = f"stripped-{wheel.sha256[:16]}"
    with cache.lock(lock):
        if not cache.whole(kept):
            there = given is not None and given.is_dir() and (given / wheel.file).is_file()
            source = upstream.obtain(wheel, given if there else None)
            with cache.work_folder(lock) as work:
                made = work / "stripped.zip"
                _strip(source, companion, wheel, work, made)
                cache.keep(made, kept)
            for old in kept.parent.glob(f"{wheel.file[: -len('.whl')]}-*.zip"):
                if old != kept:
                    cache.drop(old)
    return kept


def _strip(source: Path, companion: Companion, wheel: UpstreamWheel, work: Path, target: Path) -> None:
    with WheelReader(source) as reader:
        if reader.dist_info != f"{companion.name}-{companion.version}.dist-info":
            raise FactoryError(f"{wheel.file} is a foreign wheel: it holds {reader.dist_info}.")
        total = sum(info.file_size for info in reader.members.values())
        cache.require_space(work, total, f"Unpacking {wheel.file}")
        writer = WheelWriter(reader.dist_info)
        removed: List[str] = []
        with step(f"Taking NVIDIA's tools out of {wheel.file}"), bar("unpacking", total) as progress:
            for number, (name, info) in enumerate(sorted(reader.members.items())):
                progress.advance(info.file_size)
                if name == f"{reader.dist_info}/RECORD":
                    continue
                if any(fnmatch(name, pattern) for pattern in companion.remove):
                    removed.append(name)
                elif elf.is_elf(reader.head(name)):
                    raw, result = work / "raw", work / f"{number}"
                    device_code.cut(reader.extract(name, raw), result, name)
                    raw.unlink()
                    writer.add_file(name, result, executable=True)
                else:
                    writer.add_bytes(name, reader.read(name), bool((info.external_attr >> 16) & 0o111))
        if not any(name.startswith(f"{BACKEND}/") for name in removed):
            raise FactoryError(f"{wheel.file} has no {BACKEND}: there is nothing whose place ours could take.")
        writer.add_bytes(f"{reader.dist_info}/{MANIFEST}", json.dumps({"removed": removed}).encode())
        with step("Packing what is left"):
            writer.write(target)


def _add_metadata(
    writer: WheelWriter,
    reader: WheelReader,
    table: Table,
    companion: Companion,
    wheel: UpstreamWheel,
    version: str,
    manifest: Dict[str, Any],
) -> None:
    text = reader.read(f"{reader.dist_info}/METADATA").decode("utf-8")
    tag = wheel.built_tag
    ours = {
        "METADATA": metadata.rewrite_companion(text, companion.version, table, version),
        "WHEEL": metadata.wheel_file([tag]),
        MANIFEST: json.dumps(manifest, indent=1, sort_keys=True) + "\n",
    }
    record = reader.record()
    for name in reader.members:
        if name.startswith(f"{reader.dist_info}/"):
            rest = name.split("/", 1)[1]
            if rest not in ours and rest != "RECORD":
                writer.add_from(reader, name, f"{writer.dist_info}/{rest}", record[name][0])
    for rest, content in ours.items():
        writer.add_bytes(f"{writer.dist_info}/{rest}", content.encode("utf-8"))
