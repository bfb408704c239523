"""The torch wheel: the stripped upstream wheel with patches, operators and metadata of ours."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set

from .. import cache, platforms
from ..errors import FactoryError
from ..factory import device_code, metadata, native, patchelf, patches, stripped
from ..factory.wheel import WheelReader, WheelWriter
from ..progress import step
from ..releases import CHECKOUT, Release, Table, UpstreamWheel, sdk_version
from . import sdk_wheel

# What was built from what; `verify` checks the wheel against it.
MANIFEST = "maca.json"
# Python packages of ours that travel at the wheel's top level, with their place in the checkout, and whether torch
# cannot start without them.
PACKAGES = {"macatorch": ("macatorch/macatorch", True), "maca_tools": ("macatorch/maca_tools", False)}
OURS = {library: f"torch/lib/{library}" for library in stripped.CARRIERS.values()}


def file_name(release: Release, wheel: UpstreamWheel, version: str) -> str:
    tag = wheel.built_tag
    return f"torch-{metadata.torch_version(release, version)}-{tag}.whl"


def build(
    table: Table,
    release: Release,
    wheel: UpstreamWheel,
    output: Path,
    given: Optional[Path],
    checkout: Path = CHECKOUT,
    fast: Sequence[str] = native.FAST,
) -> Path:
    """Build the wheel. Everything that can be refused cheaply is refused before the download.

    ``fast``: the parts of csrc/fast that it has.
    """
    version = sdk_version(checkout)
    series = patches.load(checkout / "patches" / release.patches, version)
    packages = _packages(checkout)
    target = platforms.architecture(wheel.architecture)
    native.toolchain(target)
    patchelf.find()
    cache.sweep(output)
    base = stripped.obtain(wheel, release, table.nvidia, given)
    sdk_tree = native.sdk(version, checkout, target)
    with WheelReader(base) as reader:
        with step(f"Applying {len(series)} patches to torch {release.torch}"):
            changed = patches.apply(
                series, lambda name: reader.read(name) if name in reader.members else None, release.patches
            )
        libraries = native.operators(release, reader, sdk_tree, checkout, fast, target)
        name = file_name(release, wheel, version)
        with cache.lock(f"wheel-{name}"), cache.work_folder(f"wheel-{name}") as work:
            writer = WheelWriter(f"torch-{metadata.torch_version(release, version)}.dist-info")
            manifest = {**_manifest(release, wheel, version, series, changed, reader), "fast": list(fast)}
            _add_upstream(writer, reader, changed)
            _add_ours(writer, libraries, packages, release, work)
            _add_metadata(
                writer, reader, table, release, wheel, version, manifest, {name.split("/")[0] for name in packages}
            )
            cache.require_space(output, int(base.stat().st_size * 1.1), f"Writing {name}")
            return sdk_wheel.write_atomically(writer, output, name)


def leave_libraries(
    table: Table,
    release: Release,
    wheel: UpstreamWheel,
    given: Optional[Path],
    folder: Path,
    fast: Sequence[str],
    checkout: Path = CHECKOUT,
) -> None:
    """Leave our libraries of a release in ``folder``, built with these parts of csrc/fast.

    Their search paths are those of the wheel: they can stand in the place of its libraries.
    """
    target = platforms.architecture(wheel.architecture)
    sdk_tree = native.sdk(sdk_version(checkout), checkout, target)
    with WheelReader(stripped.obtain(wheel, release, table.nvidia, given)) as reader:
        built = native.operators(release, reader, sdk_tree, checkout, fast, target)
    folder.mkdir(parents=True)
    for name in OURS:
        shutil.copyfile(str(built / name), str(folder / name))
        patchelf.edit(folder / name, _search_path(release))


def _search_path(release: Release) -> List[str]:
    sdk = "$ORIGIN/../../mxmaca/lib"
    # The runtime lies above the folder of a CUDA major: a C++ program finds it here, Python has loaded it before.
    return [f"{sdk}/cuda{release.cuda_major}", sdk, "$ORIGIN"]


def _packages(checkout: Path) -> Dict[str, Path]:
    """The files of our Python packages, by their name in the wheel."""
    files: Dict[str, Path] = {}
    for package, (place, required) in PACKAGES.items():
        folder = checkout / place
        if not (folder / "__init__.py").is_file():
            if not required:
                continue
            raise FactoryError(f"{place}/__init__.py is missing.", "Run the command in a complete checkout.")
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[f"{package}/{path.relative_to(folder).as_posix()}"] = path
    return files


def _manifest(
    release: Release,
    wheel: UpstreamWheel,
    version: str,
    series: List[patches.Patch],
    changed: Dict[str, Optional[bytes]],
    reader: WheelReader,
) -> Dict[str, Any]:
    report = json.loads(reader.read(f"{reader.dist_info}/{stripped.REPORT}"))
    return {
        "torch": release.torch,
        "cuda": release.cuda,
        "sdk": version,
        "upstream": {"file": wheel.file, "sha256": wheel.sha256},
        "patches": [{"name": patch.name, "sha256": patch.sha256} for patch in series],
        "patched_files": {
            name: None if content is None else hashlib.sha256(content).hexdigest()
            for name, content in sorted(changed.items())
        },
        **report,
    }


def _add_upstream(writer: WheelWriter, reader: WheelReader, changed: Dict[str, Optional[bytes]]) -> None:
    record = reader.record()
    for name in reader.members:
        if name in changed or name.startswith(f"{reader.dist_info}/"):
            continue
        writer.add_from(reader, name, name, record[name][0])
    for name, content in changed.items():
        if content is not None:
            writer.add_bytes(name, content)


def _add_ours(writer: WheelWriter, libraries: Path, packages: Dict[str, Path], release: Release, work: Path) -> None:
    for name, place in OURS.items():
        library = work / name
        device_code.cut(libraries / name, library, name)
        patchelf.edit(library, _search_path(release))
        writer.add_file(place, library, executable=True)
    for name, path in packages.items():
        writer.add_file(name, path)


def _top_level(reader: WheelReader) -> Set[str]:
    """The packages of upstream's wheel. Not every wheel of upstream's lists them."""
    listed = f"{reader.dist_info}/top_level.txt"
    if listed in reader.members:
        return set(reader.read(listed).decode().split())
    return {name.split("/")[0] for name in reader.members if name.count("/") == 1 and name.endswith("/__init__.py")}


def _add_metadata(
    writer: WheelWriter,
    reader: WheelReader,
    table: Table,
    release: Release,
    wheel: UpstreamWheel,
    version: str,
    manifest: Dict[str, Any],
    packages: Set[str],
) -> None:
    record = reader.record()
    tag = wheel.built_tag
    text = reader.read(f"{reader.dist_info}/METADATA").decode("utf-8")
    top_level = sorted(_top_level(reader) | packages)
    ours = {
        "METADATA": metadata.rewrite(text, release, table, version),
        "WHEEL": metadata.wheel_file([tag]),
        "top_level.txt": "".join(f"{name}\n" for name in top_level),
        MANIFEST: json.dumps(manifest, indent=1, sort_keys=True) + "\n",
    }
    for name in reader.members:
        if name.startswith(f"{reader.dist_info}/"):
            rest = name.split("/", 1)[1]
            if rest not in ours and rest not in ("RECORD", stripped.REPORT):
                writer.add_from(reader, name, f"{writer.dist_info}/{rest}", record[name][0])
    for rest, content in ours.items():
        writer.add_bytes(f"{writer.dist_info}/{rest}", content.encode("utf-8"))
