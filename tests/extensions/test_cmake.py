"""CMake configures, builds and runs CUDA projects with the SDK's toolkit."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import release_facts
import torch
from building import HERE, build_folder, environment, run

import mxmaca

STANDARD = release_facts.cpp_standard()[-2:]
# A project that speaks CUDA alone, with CMake's own idea of the compiler.
PLAIN = """
cmake_minimum_required(VERSION 3.18)
project(plain LANGUAGES CUDA)
find_package(CUDAToolkit REQUIRED)
add_executable(plain plain.cu)
message(STATUS "toolkit ${CUDAToolkit_VERSION} compiler ${CMAKE_CUDA_COMPILER_ID} ${CMAKE_CUDA_COMPILER_VERSION}")
"""
PROGRAM = """
#include <cstdio>
__global__ void fill(int* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 3; }
int main() {
  int *device, host[8];
  cudaMalloc(&device, sizeof host);
  fill<<<2, 4>>>(device);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  int sum = 0;
  for (int value : host) sum += value;
  std::printf("%d\\n", sum);
}
"""


@pytest.fixture(scope="module")
def cmake() -> str:
    beside = Path(sys.executable).parent / "cmake"
    found = str(beside) if beside.exists() else shutil.which("cmake")
    if found is None:
        pytest.skip("cmake is not installed")
    return found


def test_cmakes_cuda_language_takes_cucc(cmake: str, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(PLAIN)
    (tmp_path / "plain.cu").write_text(PROGRAM)
    home = mxmaca.root() / f"cuda{torch.version.cuda.split('.')[0]}"
    configure = [cmake, "-S", ".", "-B", "build", f"-DCMAKE_CUDA_COMPILER={home}/bin/nvcc"]
    done = run([*configure, "-DCMAKE_CUDA_ARCHITECTURES=80"], tmp_path)
    assert done.returncode == 0, done.stdout
    # One toolkit is for all minor versions of a major one.
    toolkit = json.loads((home / "version.json").read_text())["cuda"]["version"]
    assert f"toolkit {toolkit[:4]}" in done.stdout and "compiler NVIDIA" in done.stdout
    built = run([cmake, "--build", "build"], tmp_path)
    assert built.returncode == 0, built.stdout
    assert run(["build/plain"], tmp_path).stdout == "24\n"


def test_cmake_maca_builds_a_program_on_libtorch(cmake: str, tmp_path: Path) -> None:
    folder = build_folder("libtorch", HERE / "libtorch")
    if not (folder / ".complete").exists():
        command = [str(mxmaca.root() / "tools" / "cmake_maca"), "-S", str(HERE / "libtorch"), "-B", "build"]
        search = {"PATH": f"{Path(cmake).parent}{os.pathsep}{os.environ['PATH']}"}
        done = run([*command, f"-DSTANDARD={STANDARD}", "-DCMAKE_CXX_FLAGS=-O0"], folder, **search)
        assert done.returncode == 0, done.stdout
        done = run([cmake, "--build", "build"], folder)
        assert done.returncode == 0, done.stdout
        (folder / ".complete").touch()
    done = subprocess.run([str(folder / "build" / "saxpy")], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
