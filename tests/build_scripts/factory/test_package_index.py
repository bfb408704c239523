"""What the index has, asked through pip: here a folder of small wheels, and no network."""

import hashlib
import os
import zipfile
from pathlib import Path
from typing import Callable, Sequence

import pytest
from packaging.version import Version

from build_scripts import releases
from build_scripts.commands import add_release
from build_scripts.errors import FactoryError
from build_scripts.factory import package_index
from build_scripts.factory.package_index import Missing

Make = Callable[..., Path]


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Puts a wheel into the folder that is pip's whole index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def make(
        name: str, version: str, tag: str = "cp311-cp311-manylinux_2_28_x86_64", requires: Sequence[str] = ()
    ) -> Path:
        path = folder / f"{name}-{version}-{tag}.whl"
        info = f"{name}-{version}.dist-info"
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {text}" for text in requires]
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
            file.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
            file.writestr(f"{info}/RECORD", "")
        return path

    return make


def test_a_wheel_is_found_with_its_file_size_hash_and_requirements(wheel: Make) -> None:
    path = wheel("torch", "2.99.0", requires=['triton~=3.9.0; platform_system == "Linux"', 'triton>=1; extra == "x"'])
    found = package_index.find("torch===2.99.0", "3.11", "x86_64")
    assert (found.project, found.version, found.file) == ("torch", "2.99.0", path.name)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert package_index.size_of(found) == path.stat().st_size
    wanted = found.requirement("triton")
    assert wanted is not None and str(wanted.specifier) == "~=3.9.0"
    assert found.requirement("numpy") is None


def test_a_constraint_of_this_machine_does_not_hide_a_release(
    wheel: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel("torch", "2.99.0")
    (tmp_path / "cap.txt").write_text("torch<2.50\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "cap.txt"))
    assert package_index.find("torch===2.99.0", "3.11", "x86_64").version == "2.99.0"


def test_a_local_build_of_a_version_is_another_version(wheel: Make) -> None:
    wheel("torch", "2.99.0+cpu")
    plain = wheel("torch", "2.99.0")
    assert package_index.find("torch===2.99.0", "3.11", "x86_64").file == plain.name


def test_what_is_missing_names_the_versions_that_there_are(wheel: Make) -> None:
    wheel("torch", "2.98.0")
    wheel("torch", "2.99.0")
    with pytest.raises(Missing) as caught:
        package_index.find("torch===3.0.0", "3.11", "x86_64")
    assert caught.value.versions == ["2.98.0", "2.99.0"]
    assert package_index.versions("torch", "3.11", "x86_64") == [Version("2.99.0"), Version("2.98.0")]


def test_a_companion_is_the_newest_that_takes_the_release(wheel: Make) -> None:
    for version in ("2.97.0", "2.98.0", "2.99.0"):
        wheel("torch", version)
    for version, torch in (("0.1.0", "==2.97.0"), ("0.2.0", "==2.98.0"), ("0.3.0", ">=2.99.0"), ("0.3.1", ">=2.99.0")):
        wheel("torchvision", version, requires=[f"torch{torch}"])

    def fitting(version: str) -> str:
        release = package_index.find(f"torch==={version}", "3.11", "x86_64")
        found = package_index.beside("torchvision", release, "3.11", "x86_64")
        return found.version if found is not None else "none"

    assert [fitting(v) for v in ("2.97.0", "2.98.0", "2.99.0")] == ["0.1.0", "0.2.0", "0.3.1"]
    wheel("torch", "2.96.0")
    assert fitting("2.96.0") == "none"


def test_a_release_that_does_not_exist_is_refused_with_the_newest_that_do(wheel: Make) -> None:
    wheel("torch", "2.98.0")
    with pytest.raises(FactoryError, match=r"no wheel of torch 2\.99\.0 for Python 3\.10, 3\.11") as caught:
        add_release.wheels_of("torch", "2.99.0", ["3.10", "3.11"])
    assert "2.98.0" in str(caught.value)


def test_a_release_without_a_wheel_for_the_architecture_is_refused_with_the_one_it_has(wheel: Make) -> None:
    wheel("torch", "2.99.0", "cp311-cp311-manylinux_2_28_aarch64")
    with pytest.raises(FactoryError, match=r"torch 2\.99\.0 has no wheel for x86_64; it has one for aarch64"):
        add_release.wheels_of("torch", "2.99.0", ["3.11"])


def test_each_python_that_has_a_wheel_gets_a_row(wheel: Make) -> None:
    wheel("torch", "2.99.0")
    wheel("torch", "2.99.0", "cp313-cp313-manylinux_2_28_x86_64")
    wheel("torch", "2.99.0", "cp314-cp314t-manylinux_2_28_x86_64")
    found = add_release.wheels_of("torch", "2.99.0", ["3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t"])
    assert list(found) == ["3.11", "3.13", "3.14t"]
    free = add_release.row("3.14t", found["3.14t"])
    assert (free.file, free.built_tag) == (
        "torch-2.99.0-cp314-cp314t-manylinux_2_28_x86_64.whl",
        "cp314-cp314t-linux_x86_64",
    )
    row = add_release.row("3.13", found["3.13"])
    assert (row.python_tag, row.architecture, row.file) == ("cp313", "x86_64", found["3.13"].file)


def test_other_processors_get_rows_where_upstreams_wheel_is_a_cuda_build(wheel: Make) -> None:
    """Wheels for the CPU alone name NVIDIA's projects as well, for the processor that they are not for."""
    table = releases.load()
    arm = "manylinux_2_28_aarch64"
    wheel("torch", "2.98.0", f"cp311-cp311-{arm}", ["nvidia-cublas-cu12; platform_machine == 'x86_64'", "sympy"])
    wheel("torch", "2.99.0", f"cp311-cp311-{arm}", ["cuda-toolkit==13.2; platform_system == 'Linux'"])
    assert add_release.other_processors("torch", "2.98.0", ["3.11"], table) == []
    found = add_release.other_processors("torch", "2.99.0", ["3.10", "3.11"], table)
    assert [(python, each.file) for python, each in found] == [("3.11", f"torch-2.99.0-cp311-cp311-{arm}.whl")]


def test_a_companion_that_is_new_gets_rows_for_each_processor_as_the_newest_is_treated(
    wheel: Make, tmp_path: Path
) -> None:
    table = releases.load()
    for machine in ("x86_64", "aarch64"):
        tag = f"cp311-cp311-manylinux_2_28_{machine}"
        wheel("torch", "2.99.0", tag, ["triton==3.99.0"])
        wheel("triton", "3.99.0", tag)
        wheel("torchvision", "0.99.0", tag, ["torch==2.99.0"])
    release = package_index.find("torch===2.99.0", "3.11", "x86_64")
    versions, rows = add_release.companions_of(release, "3.11", ["3.11"], ["x86_64", "aarch64"], table)
    assert versions == {"triton": "3.99.0", "torchvision": "0.99.0"}
    for name in (releases.TABLE.name, releases.COMPANIONS):
        text = releases.TABLE.with_name(name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text + "".join(rows if name == releases.COMPANIONS else []), encoding="utf-8")
    written = releases.load(tmp_path / releases.TABLE.name)
    for name, version in versions.items():
        new = written.companion(name, version)
        newest = max((c for c in table.companions if c.name == name), key=lambda c: Version(c.version))
        assert new is not None and (new.remove, new.wants_torch) == (newest.remove, newest.wants_torch)
        assert [w.architecture for w in new.wheels] == ["x86_64", "aarch64"]
