"""The triton wheel: NVIDIA's tools go, our backend comes, twice the same bytes; nothing is left by halves."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Dict

import pytest

from build_scripts import releases
from build_scripts.errors import FactoryError
from build_scripts.factory.wheel import WheelReader
from build_scripts.products import triton_wheel, verify

from ..small import compile_library, compiler, write_zip

NAME = "triton-3.2.0-cp310-cp310-manylinux_2_17_x86_64.whl"
METADATA = "Metadata-Version: 2.1\nName: triton\nVersion: 3.2.0\nRequires-Dist: lit ; extra == 'build'\n"


@pytest.fixture
def members(tmp_path: Path) -> Dict[str, bytes]:
    """Return the members of a small wheel of upstream's."""
    if not compiler():
        pytest.skip("needs a C compiler")
    library = compile_library(
        tmp_path / "library",
        "libtriton.so",
        "static int hidden(void) { return 1; }\nint shown(void) { return hidden(); }",
        "-g",
    ).read_bytes()
    return {
        "triton/__init__.py": b"__version__ = '3.2.0'\n",
        "triton/_C/libtriton.so": library,
        "triton/backends/nvidia/compiler.py": b"upstream\n",
        "triton/backends/nvidia/driver.c": b"upstream\n",
        "triton/backends/nvidia/bin/ptxas": b"#!/bin/sh\n",
        "triton/backends/nvidia/lib/libdevice.10.bc": b"BC\xc0\xde",
        "triton-3.2.0.dist-info/METADATA": METADATA.encode(),
        "triton-3.2.0.dist-info/WHEEL": b"Wheel-Version: 1.0\n",
    }


def row(table: releases.Table, wheel: Path, version: str = "3.2.0") -> releases.Companion:
    """Return the table's row for this file instead of upstream's."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    known = table.companion("triton", "3.2.0")
    assert known is not None
    upstream = releases.UpstreamWheel(version, "3.10", wheel.name, wheel.stat().st_size, digest, "triton")
    return dataclasses.replace(known, version=version, wheels=(upstream,))


def beside(table: releases.Table, python: str) -> releases.UpstreamWheel:
    """Return a torch wheel for a Python."""
    return dataclasses.replace(table.release("2.6.0").wheel_for("3.10", "x86_64"), python=python)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return the checkout without the release's patches: they are for files that the small wheel does not have."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "cu_bridge").symlink_to(releases.CHECKOUT / "cu_bridge")
    return folder


@pytest.fixture
def built(table: releases.Table, members: Dict[str, bytes], tmp_path: Path, cache_folder: Path, checkout: Path) -> Path:
    """Return the wheel that becomes of it."""
    given = write_zip(tmp_path / NAME, members)
    return triton_wheel.build(table, row(table, given), beside(table, "3.10"), tmp_path / "out", given.parent, checkout)


def test_only_our_backend_is_in_the_wheel(built: Path, members: Dict[str, bytes]) -> None:
    """Upstream's backend, NVIDIA's programs and bitcode are gone; everything else stays, without debug information."""
    with WheelReader(built) as reader:
        backend = [name for name in reader.members if name.startswith(triton_wheel.BACKEND)]
        assert sorted(backend) == sorted(triton_wheel.backend_files(releases.CHECKOUT))
        assert reader.read("triton/backends/nvidia/compiler.py") != b"upstream\n"
        assert reader.read("triton/__init__.py") == members["triton/__init__.py"]
        library = reader.read("triton/_C/libtriton.so")
        assert b"shown" in library and b"hidden" not in library


def test_the_wheel_is_sound_and_says_what_is_wrong_otherwise(
    built: Path, table: releases.Table, tmp_path: Path
) -> None:
    """`verify` finds nothing in it, and names what was taken out or changed."""
    assert verify.verify(built, table) == []
    with WheelReader(built) as reader:
        contents = {name: reader.read(name) for name in reader.members}
    del contents["triton/backends/nvidia/driver.py"]
    contents["triton/backends/nvidia/compiler.py"] = b"other\n"
    contents["triton/backends/nvidia/bin/ptxas"] = b"\x7f"
    (tmp_path / "changed").mkdir()
    failures = verify.verify(write_zip(tmp_path / "changed" / built.name, contents), table)
    for said in ("driver.py is missing", "compiler.py is not as it was built", "bin/ptxas is upstream's"):
        assert any(said in failure for failure in failures), failures


def test_two_builds_give_the_same_bytes(
    built: Path, table: releases.Table, members: Dict[str, bytes], tmp_path: Path, checkout: Path
) -> None:
    """Nothing of the time or the folder is in it."""
    given = tmp_path / NAME
    again = triton_wheel.build(
        table, row(table, given), beside(table, "3.10"), tmp_path / "again", given.parent, checkout
    )
    assert again.read_bytes() == built.read_bytes()


def test_a_foreign_wheel_is_refused(table: releases.Table, members: Dict[str, bytes], tmp_path: Path) -> None:
    """A file of another version, and a Python without a row, leave nothing behind."""
    given = write_zip(tmp_path / NAME, members)
    with pytest.raises(FactoryError, match="is a foreign wheel"):
        triton_wheel.build(table, row(table, given, "3.3.0"), beside(table, "3.10"), tmp_path / "out", given.parent)
    with pytest.raises(FactoryError, match="no wheel for Python 3.14"):
        triton_wheel.build(table, row(table, given), beside(table, "3.14"), tmp_path / "out", given.parent)
    assert not list(tmp_path.glob("out/*.whl"))
