"""The device library's parts that need no kernel: number formats, mathematics, random generators, compiled by g++."""

import os
import pathlib
import shutil
import subprocess
from typing import List

import pytest

HERE = pathlib.Path(__file__).resolve().parents[1]
INCLUDE = HERE.parents[1] / "cu_bridge" / "include"


def run(tmp_path: pathlib.Path, program: str, *arguments: str, flags: List[str]) -> None:
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
        f"-I{INCLUDE}",
        *flags,
        str(source),
        "-o",
        str(target),
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([str(target), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


# With the machine's own instructions too: a compiler that fuses a product and a sum must not reach the intrinsics.
@pytest.mark.parametrize("flags", [["-O1"], ["-O2", "-march=native"]], ids=["plain", "native"])
def test_half_and_bfloat16_round_once(tmp_path: pathlib.Path, flags: List[str]) -> None:
    run(tmp_path, "narrow_float", flags=flags)


@pytest.mark.parametrize("flags", [["-O1"], ["-O2", "-march=native"]], ids=["plain", "native"])
def test_mathematics_and_intrinsics_are_within_their_bounds(tmp_path: pathlib.Path, flags: List[str]) -> None:
    run(tmp_path, "device_math", str(HERE / "data" / "math_reference.txt"), flags=flags)


def test_random_generators_give_the_published_numbers(tmp_path: pathlib.Path) -> None:
    run(tmp_path, "device_random", flags=["-O1"])
