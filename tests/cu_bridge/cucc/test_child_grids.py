"""Launches from device code (dynamic parallelism), which relocatable device code may make."""

import pathlib
import subprocess

import pytest
from compiling import SCHEDULES, Cucc, clean_environment

CHILD_GRIDS = pathlib.Path(__file__).parents[1] / "kernels" / "relocatable" / "child_grids.cu"


def run(program: pathlib.Path, folder: pathlib.Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run what was compiled, for a minute at most."""
    environment = clean_environment(MACA_STATE_DIR=str(folder), **variables)
    return subprocess.run([str(program)], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("options", [("-O1",), ("-g", "-G")], ids=["loops", "for debuggers"])
def test_child_grids_run_in_stream_order_when_their_parent_has_ended(
    cucc: Cucc, options: "tuple[str, ...]", tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "child_grids"
    cucc("-std=c++17", "-rdc=true", *options, CHILD_GRIDS, "-o", program, "-lcudadevrt")
    for schedule in SCHEDULES[:3]:
        done = run(program, tmp_path, MACA_SCHEDULE=schedule)
        assert done.returncode == 0, f"{schedule}: {done.stdout}\n{done.stderr}\nexit status {done.returncode}"
        # What hardware says to the device code alone is said once.
        assert done.stderr.count("was not launched from device code: 0 x 1 x 1 blocks") == 1, done.stderr


def test_kernels_of_other_files_can_be_launched_from_device_code(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.cu").write_text(
        "#include <cstdio>\n__global__ void far(int* out, int value);\n"
        "__global__ void near(int* out) { far<<<2, 2>>>(out, 3); far<<<1, 1>>>(out, 10); }\n"
        "int main() { int* x; cudaMallocManaged(&x, 4); *x = 0; near<<<2, 1>>>(x);\n"
        '  cudaError_t error = cudaDeviceSynchronize(); std::printf("%s %d\\n", cudaGetErrorName(error), *x); }\n'
    )
    (tmp_path / "b.cu").write_text("__global__ void far(int* out, int value) { atomicAdd(out, value); }\n")
    for name in "ab":
        cucc("-dc", tmp_path / f"{name}.cu", "-o", tmp_path / f"{name}.o")
    cucc(tmp_path / "a.o", tmp_path / "b.o", "-o", tmp_path / "program")
    done = run(tmp_path / "program", tmp_path)
    assert done.stdout == "cudaSuccess 44\n", done


@pytest.mark.parametrize("wait", ["", "cudaDeviceSynchronize();"])
def test_what_a_child_grid_does_wrong_is_the_launchs_error(cucc: Cucc, wait: str, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "wrong.cu"
    source.write_text(
        "#include <cassert>\n#include <cstdio>\n__global__ void wrong(int* x) { assert(*x == 2); }\n"
        f"__global__ void outer(int* x) {{ wrong<<<1, 1>>>(x); {wait} }}\n"
        "int main() { int* x; cudaMalloc(&x, 4); outer<<<1, 1>>>(x); cudaError_t error = cudaDeviceSynchronize();\n"
        '  std::printf("%s: %s\\n", cudaGetErrorName(error), cudaGetErrorString(error)); }\n'
    )
    cucc("-rdc=true", source, "-o", tmp_path / "program")
    done = run(tmp_path / "program", tmp_path)
    assert done.stdout.startswith("cudaErrorAssert: ") and "wrong(int*)" in done.stdout, done


def test_device_code_that_is_not_relocatable_may_not_launch(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "nested.cu"
    source.write_text("__global__ void k(int* x) {\n  if (*x)\n    k<<<1, 1>>>(x);\n}\nint main() {}\n")
    done = cucc("-c", source, "-o", tmp_path / "out.o", check=False)
    assert done.returncode != 0 and "nested.cu:3: error: a launch from device code" in done.stderr, done.stderr
    assert "-rdc=true" in done.stderr
    # In a function it is only known when it runs.
    source.write_text(
        "#include <cstdio>\n__global__ void k(int* x) { *x = 1; }\n__device__ void f(int* x) { k<<<1, 1>>>(x); }\n"
        "__global__ void outer(int* x) { f(x); }\n"
        "int main() { int* x; cudaMalloc(&x, 4); outer<<<1, 1>>>(x);\n"
        '  std::printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize())); }\n'
    )
    cucc(source, "-o", tmp_path / "program")
    done = run(tmp_path / "program", tmp_path)
    assert "outer(int*)" in done.stdout and "without -rdc=true" in done.stdout, done
