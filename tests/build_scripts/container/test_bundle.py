"""The bundle: what lies in it, that it is the same each time, and that it installs without a network."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import List

import pytest

from build_scripts import releases
from build_scripts.container import bundle
from build_scripts.errors import FactoryError

from ..small import write_zip

pytest.importorskip("cyclonedx", reason="needs requirements/image.txt")
PYTHON = ".".join(map(str, sys.version_info[:2]))
TAG = "cp" + PYTHON.replace(".", "")
EPOCH = 1_700_000_000


def wheel(folder: Path, name: str, version: str, requires: str = "") -> Path:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nLicense: MIT\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    members = {
        f"{name}.py": f"version = '{version}'\n".encode(),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/LICENSE": b"Do as you like.\n",
    }
    return write_zip(folder / f"{name}-{version}-py3-none-any.whl", members)


@pytest.fixture
def wheels(tmp_path: Path) -> List[Path]:
    folder = tmp_path / "given"
    folder.mkdir()
    return [wheel(folder, "torch", "9.9.0+maca1.0.0", "part_of_it"), wheel(folder, "part_of_it", "1.5")]


@pytest.fixture
def product() -> bundle.Bundle:
    file = f"torch-9.9.0-{TAG}-{TAG}-manylinux1_x86_64.whl"
    upstream = releases.UpstreamWheel("9.9.0", PYTHON, file, 1, "0" * 64)
    return bundle.Bundle(releases.Release("9.9.0", "12.4", 0, "9.9.0", {}, (upstream,), PYTHON), upstream, "1.0.0")


def pack(folder: Path, product: bundle.Bundle, wheels: List[Path]) -> Path:
    folder.mkdir()
    return bundle.write(folder, product, "9.9.0+maca1.0.0", wheels, EPOCH)[-1]


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(str(archive)) as tar:
        tar.extractall(str(folder))
    return folder / archive.name[: -len(".tar.xz")]


def test_the_same_wheels_make_the_same_archive(tmp_path: Path, product: bundle.Bundle, wheels: List[Path]) -> None:
    first = pack(tmp_path / "a", product, wheels)
    assert first.name == f"maca-pytorch9.9-py{PYTHON.replace('.', '')}-1.0.0-x86_64.tar.xz"
    assert first.read_bytes() == pack(tmp_path / "b", product, wheels[::-1]).read_bytes()
    digest = hashlib.sha256(first.read_bytes()).hexdigest()
    assert (tmp_path / "a" / f"{first.name}.sha256").read_text() == f"{digest}  {first.name}\n"


def test_it_lists_its_contents_and_their_licences(tmp_path: Path, product: bundle.Bundle, wheels: List[Path]) -> None:
    folder = unpacked(pack(tmp_path / "a", product, wheels), tmp_path / "out")
    listed = json.loads((folder / "contents.cdx.json").read_text())
    assert {part["name"]: part["hashes"][0]["content"] for part in listed["components"]} == {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in zip(["torch", "part_of_it"], wheels)
    }
    assert (folder / "licenses" / "part-of-it" / "LICENSE").read_text() == "Do as you like.\n"


def install(folder: Path, target: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    # Settings that would send pip elsewhere or hold torch at another version: none of them counts.
    settings = {"PIP_INDEX_URL": "http://localhost:1/simple", "PIP_CONSTRAINT": str(folder / "none.txt")}
    command = [str(folder / "install.sh"), "--target", str(target)]
    environment = {**os.environ, **settings, "PYTHON": sys.executable, **variables}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_it_installs_without_a_network(tmp_path: Path, product: bundle.Bundle, wheels: List[Path]) -> None:
    folder = unpacked(pack(tmp_path / "a", product, wheels), tmp_path / "out")
    done = install(folder, tmp_path / "site")
    assert done.returncode == 0, done.stdout
    assert {"torch.py", "part_of_it.py"} <= {path.name for path in (tmp_path / "site").iterdir()}


def test_a_damaged_wheel_is_not_installed(tmp_path: Path, product: bundle.Bundle, wheels: List[Path]) -> None:
    folder = unpacked(pack(tmp_path / "a", product, wheels), tmp_path / "out")
    with next((folder / "wheels").glob("part*")).open("ab") as file:
        file.write(b"\0")
    done = install(folder, tmp_path / "site")
    assert done.returncode != 0 and "DO NOT MATCH THE HASHES" in done.stdout
    assert not (tmp_path / "site" / "torch.py").exists()


def test_another_python_is_refused_by_name(tmp_path: Path, product: bundle.Bundle, wheels: List[Path]) -> None:
    other = product._replace(wheel=releases.UpstreamWheel("9.9.0", "3.99", product.wheel.file, 1, "0" * 64))
    folder = unpacked(pack(tmp_path / "a", other, wheels), tmp_path / "out")
    done = install(folder, tmp_path / "site")
    assert done.returncode == 1 and f"is Python {PYTHON}, and these wheels are for 3.99" in done.stdout
    free = product._replace(wheel=releases.UpstreamWheel("9.9.0", f"{PYTHON}t", product.wheel.file, 1, "0" * 64))
    without_lock = install(unpacked(pack(tmp_path / "b", free, wheels), tmp_path / "free"), tmp_path / "site")
    assert f"is Python {PYTHON}, and these wheels are for {PYTHON}t" in without_lock.stdout
    done = install(folder, tmp_path / "site", PYTHON=str(tmp_path / "none"))
    assert done.returncode == 1 and "does not run. Name a Python 3.99" in done.stdout


def test_two_wheels_of_one_project_are_refused(tmp_path: Path, product: bundle.Bundle, wheels: List[Path]) -> None:
    second = wheel(wheels[0].parent, "part_of_it", "1.6")
    with pytest.raises(FactoryError, match="two wheels of part-of-it"):
        pack(tmp_path / "a", product, [*wheels, second])
    assert list((tmp_path / "a").iterdir()) == []
