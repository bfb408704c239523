"""The device library's parts that need no kernel: number formats, mathematics, random generators, compiled by g++."""

import os
import pathlib
import shutil
import subprocess
from typing import List

import pytest

HERE = pathlib.Path(__file__).resolve().parents[1]


def run(include: pathlib.Path, tmp_path: pathlib.Path, program: str, *arguments: str, flags: List[str]) -> None:
    """Compile one of programs/ with warnings as errors, run it, and fail with what it printed."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or pytest.fail("no g++")
    target = tmp_path / program
    source = HERE / "programs" / f"{program}.cpp"
    command = [
        compiler,
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{include}",
        *flags,
        str(source),
        "-o",
        str(target),
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([str(target), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture()
def include(sdk: pathlib.Path, major: int) -> pathlib.Path:
    """Return the SDK's folder of headers for one CUDA release: a checkout lacks the headers that the build writes."""
    return sdk / f"cuda{major}" / "include"


# With the machine's own instructions too: a compiler that fuses a product and a sum must not reach the intrinsics.
@pytest.mark.parametrize("flags", [["-O1"], ["-O2", "-march=native"]], ids=["plain", "native"])
def test_half_and_bfloat16_round_once(include: pathlib.Path, tmp_path: pathlib.Path, flags: List[str]) -> None:
    run(include, tmp_path, "narrow_float", flags=flags)


@pytest.mark.parametrize("flags", [["-O1"], ["-O2", "-march=native"]], ids=["plain", "native"])
def test_mathematics_and_intrinsics_are_within_their_bounds(
    include: pathlib.Path, tmp_path: pathlib.Path, flags: List[str]
) -> None:
    run(include, tmp_path, "device_math", str(HERE / "data" / "math_reference.txt"), flags=flags)


def test_random_generators_give_the_published_numbers(include: pathlib.Path, tmp_path: pathlib.Path) -> None:
    run(include, tmp_path, "device_random", flags=["-O1"])
