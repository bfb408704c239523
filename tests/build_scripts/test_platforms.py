"""Processors and systems: what is chosen by --arch, built for it, and refused."""

import os
import subprocess
from pathlib import Path
from typing import Tuple

import pytest

from build_scripts import platforms, releases
from build_scripts.commands import bundle, options
from build_scripts.errors import FactoryError
from build_scripts.factory import elf, native
from build_scripts.factory.wheel import WheelReader
from build_scripts.products import distribution
from build_scripts.quality import emulation

from . import small
from .small import CHECKOUT, SmallRelease

FOREIGN = next(known for known in platforms.architectures() if known.is_foreign)


def test_a_processor_that_nothing_is_built_for_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(FactoryError, match=r"Wheels are not built for riscv64") as caught:
        platforms.architecture("riscv64")
    assert "x86_64, aarch64" in str(caught.value) and "--arch" in str(caught.value)


@pytest.mark.parametrize(
    "version, there",
    [
        ("GLIBC_2.2.5", True),
        ("GLIBC_2.28", True),
        ("GLIBC_2.29", False),
        ("GLIBC_2.100", False),
        ("GLIBC_PRIVATE", False),
        ("GLIBC_ABI_DT_RELR", False),
        ("GLIBCXX_3.4.24", True),
        ("GLIBCXX_3.4.30", False),
        ("CXXABI_1.3.11", True),
        ("CXXABI_1.3.13", False),
        ("CXXABI_TM_1", True),
        ("GCC_7.0.0", True),
        ("GCC_12.0.0", False),
        ("libcudart.so.12", True),
        ("MC_1", True),
    ],
)
def test_versions_of_symbols_are_compared_as_numbers(version: str, there: bool) -> None:
    assert platforms.oldest_system().has(version) is there


def test_every_wheel_of_the_table_is_for_a_known_processor_and_has_its_companions(table: releases.Table) -> None:
    for release in table.releases:
        for wheel in release.wheels:
            assert wheel.platforms[0].endswith(platforms.architecture(wheel.architecture).name)
            named = distribution.names(table, release, wheel)
            suffixes = (f"_{wheel.architecture}.whl", "-py3-none-any.whl")
            assert all(path.name.endswith(suffixes) for path in named.wheels)


def test_a_release_without_cuda_wheels_for_a_processor_is_refused_with_those_it_has(table: releases.Table) -> None:
    with pytest.raises(FactoryError, match=r"torch 2\.6\.0 has no wheel for aarch64") as caught:
        table.release("2.6.0").wheel_for("3.10", "aarch64")
    assert "It has wheels for x86_64" in str(caught.value) and "not CUDA builds" in str(caught.value)
    with pytest.raises(FactoryError, match=r"No release has a wheel for Python 3\.9 on aarch64"):
        table.newest_for("3.9", "aarch64")
    assert table.release("2.12.1").wheel_for("3.11", "aarch64").file.endswith("_aarch64.whl")


def test_a_missing_cross_compiler_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FactoryError, match=f"No C\\+\\+ compiler for {FOREIGN.name}") as caught:
        native.toolchain(FOREIGN)
    assert f"apt install {FOREIGN.package}" in str(caught.value)
    with pytest.raises(FactoryError, match=f"No emulator for {FOREIGN.name}"):
        emulation.emulator(FOREIGN)
    with pytest.raises(FactoryError, match="apt-get is missing"):
        emulation.system(FOREIGN)


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_what_would_run_the_wheels_refuses_those_of_another_processor(command: str, tmp_path: Path) -> None:
    arguments = [command, "--arch", FOREIGN.name, "--output", str(tmp_path)]
    done = subprocess.run(
        [small.sys.executable, "-m", "build_scripts", *arguments],
        cwd=str(CHECKOUT),
        env=dict(os.environ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert f"Wheels for {FOREIGN.name} do not run on this machine" in done.stderr


@pytest.fixture
def foreign_release(tmp_path: Path) -> SmallRelease:
    """A small release whose wheel is for another processor."""
    if not small.compiler(FOREIGN.name) or not native.shutil.which(f"{FOREIGN.triplet}-g++"):
        pytest.skip(f"needs {FOREIGN.package}")
    return small.small_release(tmp_path, FOREIGN.name)


def _machines(wheel: Path) -> "Tuple[set[int], str]":
    with WheelReader(wheel) as reader:
        elves = [reader.read(name) for name in reader.members if elf.is_elf(reader.head(name))]
        tags = reader.read(f"{reader.dist_info}/WHEEL").decode()
    return {elf.ElfFile(content, "library").machine for content in elves}, tags


def test_wheels_for_another_processor_are_built_and_verified(foreign_release: SmallRelease) -> None:
    done = foreign_release.build()
    assert done.returncode == 0, done.stderr
    for wheel in (foreign_release.built, foreign_release.sdk):
        machines, tags = _machines(wheel)
        assert machines == {FOREIGN.machine}
        assert f"linux_{FOREIGN.name}\n" in tags
    done = foreign_release.run("verify", str(foreign_release.built), str(foreign_release.sdk))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wheel_of_another_processor_than_its_tag_says_is_found(foreign_release: SmallRelease) -> None:
    assert foreign_release.build().returncode == 0
    own = platforms.architecture().name
    renamed = foreign_release.sdk.with_name(foreign_release.sdk.name.replace(FOREIGN.name, own))
    foreign_release.sdk.rename(renamed)
    done = foreign_release.run("verify", str(renamed))
    assert done.returncode == 1
    assert f"is for another processor than {own}: e_machine {FOREIGN.machine}" in done.stdout


def test_a_bundle_says_what_processor_it_is_for(table: releases.Table) -> None:
    release = table.release("2.12.1")
    named = bundle.Bundle(release, release.wheel_for("3.11", "aarch64"), "1.0.0")
    assert named.name == "maca-pytorch2.12-py311-1.0.0-aarch64"


def test_the_processor_of_this_machine_is_the_default() -> None:
    parser = options.argparse.ArgumentParser()
    options.add_release(parser)
    _, _, wheel = options.chosen(parser.parse_args(["--torch", "2.12.1", "--python", "3.11"]))
    assert wheel.architecture == platforms.architecture().name
