"""The SDK wheel, ``mxmaca``: the installed tree of cu_bridge, packed."""

import os
from pathlib import Path
from typing import Optional

from .. import cache, platforms
from ..errors import FactoryError
from ..factory import elf, metadata, native
from ..factory.wheel import WheelWriter
from ..platforms import Architecture
from ..progress import note, step
from ..releases import CHECKOUT, Sdk, sdk_version

# The SDK's metadata, beside its Python package; @VERSION@ stands for the version.
METADATA, ENTRY_POINTS = "METADATA.in", "entry_points.txt"


def tag(architecture: Architecture) -> str:
    return f"py3-none-linux_{architecture.name}"


def file_name(sdk: Sdk, version: str, architecture: Optional[Architecture] = None) -> str:
    """The wheel's name. ``architecture``: what it is for (default: this machine's), here and below."""
    return f"{sdk.name}-{version}-{tag(architecture or platforms.architecture())}.whl"


def build(sdk: Sdk, output: Path, checkout: Path = CHECKOUT, architecture: Optional[Architecture] = None) -> Path:
    """Build the SDK and pack it. Returns the wheel."""
    target = architecture or platforms.architecture()
    version = sdk_version(checkout)
    cache.sweep(output)
    tree = native.sdk(version, checkout, target)
    dist_info = f"{sdk.name}-{version}.dist-info"
    writer = WheelWriter(dist_info)
    for path in sorted(tree.rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        relative = path.relative_to(tree).as_posix()
        if relative.startswith("bin/"):
            writer.add_file(f"{sdk.name}-{version}.data/scripts/{relative[4:]}", path, executable=True)
        else:
            writer.add_file(relative, path, executable=_is_program(path))
    sources = checkout / "cu_bridge" / "python"
    text = (sources / METADATA).read_text(encoding="utf-8").replace("@VERSION@", version)
    if metadata.parse(text)["Name"] != sdk.name:
        raise FactoryError(f"cu_bridge/python/{METADATA} is not that of {sdk.name}.")
    writer.add_bytes(f"{dist_info}/METADATA", text.encode("utf-8"))
    if (sources / ENTRY_POINTS).is_file():
        writer.add_file(f"{dist_info}/{ENTRY_POINTS}", sources / ENTRY_POINTS, executable=False)
    writer.add_bytes(f"{dist_info}/WHEEL", metadata.wheel_file([tag(target)]).encode())
    writer.add_bytes(f"{dist_info}/top_level.txt", f"{sdk.name}\n".encode())
    return write_atomically(writer, output, file_name(sdk, version, target))


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return os.access(str(path), os.X_OK) or elf.is_elf(file.read(4))


def write_atomically(writer: WheelWriter, output: Path, name: str) -> Path:
    """Write the wheel beside its place, then move it there: it is complete or absent."""
    output.mkdir(parents=True, exist_ok=True)
    final = output / name
    with step(f"Packing {name}"), cache.part_file(final) as part:
        writer.write(part)
        cache.publish(part, final)
    note(f"  {final} ({final.stat().st_size / 1e6:.1f} MB)")
    return final
