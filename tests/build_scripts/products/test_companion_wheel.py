"""Wheels of packages that require torch: what is NVIDIA's goes, what is left finds the SDK and our torch."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Callable, Dict

import pytest

from build_scripts import releases
from build_scripts.errors import FactoryError
from build_scripts.factory import device_code, elf, metadata, stripped
from build_scripts.factory.wheel import WheelReader
from build_scripts.products import companion_wheel

from ..small import compile_library, write_zip

NAME = "torchvision-0.21.0-cp310-cp310-manylinux1_x86_64.whl"
CUDART = "libcudart.41118559.so.12"
METADATA = (
    "Metadata-Version: 2.1\nName: torchvision\nVersion: 0.21.0\nRequires-Dist: numpy\nRequires-Dist: torch ({torch})\n"
)


@pytest.fixture
def members(tmp_path: Path, device_library: Callable[..., Path]) -> Dict[str, bytes]:
    """A small wheel of upstream's: a library with device code, and one that needs a copy of NVIDIA's."""
    folder = tmp_path / "libraries"
    cudart = compile_library(folder, CUDART, "int cudaGetLastError(void) { return 0; }")
    image = compile_library(
        folder, "image.so", "int cudaGetLastError(void); int last(void) { return cudaGetLastError(); }", f"-l:{CUDART}"
    )
    return {
        "torchvision/version.py": b"__version__ = '0.21.0+cu124'\ngit_version = '7'\n",
        "torchvision/_C.so": device_library("_C.so").read_bytes(),
        "torchvision/image.so": image.read_bytes(),
        f"torchvision.libs/{CUDART}": cudart.read_bytes(),
        "torchvision-0.21.0.dist-info/METADATA": METADATA.format(torch="==2.6.0").encode(),
        "torchvision-0.21.0.dist-info/WHEEL": b"Wheel-Version: 1.0\n",
    }


def build(table: releases.Table, members: Dict[str, bytes], folder: Path, output: str = "out") -> Path:
    folder.mkdir(exist_ok=True)
    given = write_zip(folder / NAME, members)
    known = table.companion("torchvision", "0.21.0")
    assert known is not None
    digest = hashlib.sha256(given.read_bytes()).hexdigest()
    wheel = releases.UpstreamWheel("0.21.0", "3.10", NAME, given.stat().st_size, digest, "torchvision")
    row = dataclasses.replace(known, wheels=(wheel,))
    release = table.release("2.6.0")
    return companion_wheel.build(table, release, row, release.wheel_for("3.10", "x86_64"), folder / output, folder)


def test_nothing_of_nvidias_is_left_and_the_sdk_is_found(
    table: releases.Table, members: Dict[str, bytes], tmp_path: Path
) -> None:
    built = build(table, members, tmp_path / "given")
    version = releases.sdk_version()
    assert built.name == f"torchvision-0.21.0+maca{version}-cp310-cp310-linux_x86_64.whl"
    with WheelReader(built) as reader:
        assert f"torchvision.libs/{CUDART}" not in reader.members
        manifest = json.loads(reader.read(f"{reader.dist_info}/maca.json"))
        assert manifest["removed"] == [f"torchvision.libs/{CUDART}"]
        assert list(manifest["device_code"]) == ["torchvision/_C.so"]
        for name in ("torchvision/_C.so", "torchvision/image.so"):
            with elf.open_elf(reader.extract(name, tmp_path / Path(name).name)) as library:
                assert device_code.device_sections(library) == []
                assert device_code.fatbin_offsets(library) == []
                assert library.rpath[:2] == ["$ORIGIN/../mxmaca/lib/cuda12", "$ORIGIN"]
                assert CUDART not in library.needed
                assert ("libcudart.so.12" in library.needed) == (name == "torchvision/image.so")
        assert reader.read("torchvision/version.py").startswith(f"__version__ = '0.21.0+maca{version}'\n".encode())
        required = [str(r) for r in metadata.requirements(reader.read(f"{reader.dist_info}/METADATA").decode())]
    assert required == ["numpy", f"torch==2.6.0+maca{version}", f"mxmaca=={version}"]


def test_the_same_input_gives_the_same_bytes(table: releases.Table, members: Dict[str, bytes], tmp_path: Path) -> None:
    one, other = (build(table, members, tmp_path / "given", output) for output in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_a_companion_of_another_release_is_refused(
    table: releases.Table, members: Dict[str, bytes], tmp_path: Path
) -> None:
    members["torchvision-0.21.0.dist-info/METADATA"] = METADATA.format(torch="==2.5.0").encode()
    with pytest.raises(FactoryError, match=r"requires torch==2\.5\.0, the table has torch 2\.6\.0"):
        build(table, members, tmp_path / "given")
    assert not list((tmp_path / "given").glob("out/*"))


def test_every_companion_of_the_table_fits_its_releases(table: releases.Table) -> None:
    for release in table.releases:
        for companion in table.built_companions(release):
            for wheel in release.wheels if companion.source is None else ():
                assert companion.beside(wheel).file.startswith(f"{companion.name}-{companion.version}-")


def test_a_library_that_upstream_brings_along_is_asked_for_by_its_own_name(table: releases.Table) -> None:
    needed = ["libcusparseLt-f80c68d1.so.0", "libcudart.41118559.so.12", "libgomp-a34b3233.so.1", "libcudart.so.12"]
    assert stripped.own_names(needed, table.nvidia) == {
        "libcusparseLt-f80c68d1.so.0": "libcusparseLt.so.0",
        "libcudart.41118559.so.12": "libcudart.so.12",
    }


def test_one_version_beside_two_releases_is_a_wheel_for_each(
    table: releases.Table, members: Dict[str, bytes], tmp_path: Path
) -> None:
    """Each requires its torch, also where upstream's says nothing of one; the label tells them apart."""
    version = releases.sdk_version()
    second = dataclasses.replace(table.release("2.6.0"), torch="2.6.9")
    both = dataclasses.replace(table, releases=(*table.releases, second))
    head = members["torchvision-0.21.0.dist-info/METADATA"].decode()
    lines = [line for line in head.split("\n") if not line.startswith("Requires-Dist: torch")]
    members["torchvision-0.21.0.dist-info/METADATA"] = "\n".join(lines).encode()
    built = build(both, members, tmp_path / "given")
    own = f"0.21.0+maca{version}.torch2.6.0"
    assert built.name == f"torchvision-{own}-cp310-cp310-linux_x86_64.whl"
    with WheelReader(built) as reader:
        text = reader.read(f"{reader.dist_info}/METADATA").decode()
        assert metadata.parse(text)["Version"] == own
        assert f"torch==2.6.0+maca{version}" in [str(r) for r in metadata.requirements(text)]
        assert reader.read("torchvision/version.py").startswith(f"__version__ = '{own}'\n".encode())
