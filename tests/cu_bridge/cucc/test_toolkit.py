"""The toolkit trees: a whole CUDA_HOME for each CUDA release, and the rule by which one is chosen."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Dict

import pytest
from compiling import Cucc

RELEASES = {12: "12.4", 13: "13.0"}
PROGRAM = """
#include <cuda_runtime.h>
#include <cstdio>
int main() {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return 1;
  std::printf("%d %d", version, CUDART_VERSION);
}
"""


@pytest.mark.parametrize("library", ["-lcudart", "-lcudart_static"])
def test_a_program_finds_its_release_in_the_tree(
    sdk: pathlib.Path, major: int, environment: Dict[str, str], tmp_path: pathlib.Path, library: str
) -> None:
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    home, source, program = sdk / f"cuda{major}", tmp_path / "version.cpp", tmp_path / "version"
    source.write_text(PROGRAM)
    command = [compiler, f"-I{home}/include", str(source), "-o", str(program), f"-L{home}/lib64", library]
    subprocess.run([*command, f"-Wl,-rpath,{home}/lib64"], check=True)
    shown = subprocess.run([str(program)], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    expected = RELEASES[major].replace(".", "0") + "0"
    assert shown.split() == [expected, expected]


def test_the_tree_is_what_build_tools_take_for_a_toolkit(sdk: pathlib.Path, major: int) -> None:
    home = sdk / f"cuda{major}"
    assert os.access(home / "bin" / "nvcc", os.X_OK) and (home / "nvvm" / "libdevice").is_dir()
    facts = json.loads((home / "version.json").read_text())
    assert facts["cuda"]["version"].rpartition(".")[0] == RELEASES[major]
    headers = {path.relative_to(sdk / "include") for path in (sdk / "include").rglob("*") if path.is_file()}
    forwarders = {path.relative_to(home / "include") for path in (home / "include").rglob("*") if path.is_file()}
    cccl = {pathlib.Path("cccl") / path for path in headers if path.parts[0] in ("cub", "cuda", "nv", "thrust")}
    assert forwarders == headers | (cccl if major >= 13 else set())
    libraries = [path.name for path in (sdk / "lib" / f"cuda{major}").iterdir()]
    archives = {path.name for path in (home / "lib64").glob("*_static.a")}
    assert archives >= {"libcublas_static.a", "libcufft_static.a", "libcusparse_static.a", "libcusolver_static.a"}
    for name in libraries:
        assert (home / "lib64" / name).is_file() and (home / "lib64" / f"{name.partition('.so')[0]}.so").is_file()


def test_a_header_that_is_packed_into_one_file_compiles(sdk: pathlib.Path, major: int, tmp_path: pathlib.Path) -> None:
    """KeOps puts a file of the toolkit's folder in the place of each #include of a quoted name, and copies the text."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    include = sdk / f"cuda{major}" / "include"
    text = (include / "cuda_fp16.h").read_text()
    while (quoted := re.search('#include *"([^"]*)"', text)) is not None:
        text = text[: quoted.start()] + (include / quoted[1]).read_text() + text[quoted.end() :]
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "cuda_fp16.h").write_text(text)
    source = tmp_path / "half.cpp"
    source.write_text(
        f"#include <cuda_fp16.h>\n#include <cuda_runtime.h>\nstatic_assert(CUDART_VERSION / 1000 == {major});\n"
        "__half one() { return __float2half(1.0f); }\n"
    )
    command = [compiler, "-std=c++17", f"-I{tmp_path / 'packed'}", f"-I{include}", "-c", str(source), "-o", os.devnull]
    subprocess.run(command, check=True)


OPENED = """
import ctypes, pathlib, subprocess, sys
names, real = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
for bare in sorted(names.glob("lib*.so")):
    versions = sorted(real.glob(bare.name + ".*"))
    opened, library = ctypes.CDLL(str(bare)), ctypes.CDLL(str(versions[-1]))
    listed = subprocess.run(["nm", "-D", "--defined-only", str(versions[-1])], stdout=subprocess.PIPE, text=True)
    functions = [line.split()[-1].split("@")[0] for line in listed.stdout.splitlines() if line.split()[-2] in "TW"]
    if not functions:
        continue  # a library of one name alone
    for name in functions:
        found = [ctypes.cast(getattr(each, name), ctypes.c_void_p).value for each in (opened, library)]
        assert found[0] == found[1], (bare, name)
    print(bare.name)
"""


@pytest.mark.parametrize("folder", ["lib64", "lib"])
def test_a_name_without_a_version_opens_the_library(
    sdk: pathlib.Path, major: int, environment: Dict[str, str], folder: str
) -> None:
    """Programs open `libcudart.so`, by its path or by LD_LIBRARY_PATH; it is the library that everything else has."""
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    real = sdk / "lib" / f"cuda{major}"
    names = sdk / f"cuda{major}" / "lib64" if folder == "lib64" else real
    command = [sys.executable, "-c", OPENED, str(names), str(real)]
    opened = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert {"libcudart.so", "libcublas.so", "libcuda.so", "libnvrtc.so", "libcupti.so", "libnccl.so"} <= set(opened)


def test_who_opens_cublas_finds_the_functions_of_cublaslt(
    sdk: pathlib.Path, major: int, environment: Dict[str, str]
) -> None:
    """NVIDIA's library needs the other one, and Triton's looks for them in a handle of it."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).cublasLtCreate"
    for name in ("libcublas.so", f"libcublas.so.{major}"):
        path = sdk / "lib" / f"cuda{major}" / name
        subprocess.run([sys.executable, "-c", code, str(path)], env=environment, check=True)


def test_a_copy_of_a_header_leads_to_the_header(
    sdk: pathlib.Path, cucc: Cucc, major: int, tmp_path: pathlib.Path
) -> None:
    include = sdk / f"cuda{major}" / "include"
    shutil.copy(include / "cooperative_groups.h", tmp_path)
    shutil.copytree(include / ("cccl/cuda" if major >= 13 else "cuda"), tmp_path / "cuda")
    (tmp_path / "copied.cu").write_text(
        "#include <cooperative_groups.h>\n#include <cuda/barrier>\n"
        "__global__ void k() { cooperative_groups::this_thread_block().sync(); }\n",
        encoding="utf-8",
    )
    cucc("-c", f"-I{tmp_path}", tmp_path / "copied.cu", "-o", tmp_path / "copied.o", CUCC_CUDA_MAJOR=str(major))


@pytest.mark.parametrize("header", ["cuda_gl_interop.h", "cudaGL.h", "npp.h", "nppi.h", "npps.h"])
def test_what_the_device_has_not_is_said_by_name(cucc: Cucc, tmp_path: pathlib.Path, header: str) -> None:
    (tmp_path / "asks.cu").write_text(f"#include <{header}>\n", encoding="utf-8")
    done = cucc("-c", tmp_path / "asks.cu", "-o", tmp_path / "asks.o", check=False)
    wanted = "NPP is not part of" if header.startswith("np") else "OpenGL interoperability is not there"
    assert done.returncode != 0 and wanted in done.stderr, done.stderr


def chosen_home(environment: Dict[str, str], cuda: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    clean = {k: v for k, v in environment.items() if k not in ("CUDA_HOME", "CUDA_PATH", "CUCC_PATH")}
    code = f"from mxmaca import toolkit; print(toolkit.cuda_home({cuda!r}))"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env={**clean, **variables}, capture_output=True, text=True, check=False)


def test_the_toolkit_is_found_beside_another_nvcc(
    sdk: pathlib.Path, environment: Dict[str, str], tmp_path: pathlib.Path
) -> None:
    other = tmp_path / "bin" / "nvcc"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    done = chosen_home(environment, "12.4", PATH=f"{other.parent}:{environment['PATH']}")
    assert done.stdout.strip() == str(sdk / "cuda12") and done.stderr == ""


def test_a_variable_that_names_the_sdk_wins(
    sdk: pathlib.Path, environment: Dict[str, str], tmp_path: pathlib.Path
) -> None:
    copy = tmp_path / "maca"
    (copy / "lib").mkdir(parents=True)
    (copy / "lib" / "libmcruntime.so").touch()
    shutil.copytree(sdk / "cuda13" / "bin", copy / "cuda13" / "bin")
    shutil.copytree(sdk / "tools", copy / "tools")
    for variable, value in (("CUDA_HOME", "cuda13"), ("CUDA_PATH", "tools/cu-bridge"), ("CUCC_PATH", ".")):
        done = chosen_home(environment, "13.0", **{variable: str(copy / value)})
        assert done.stdout.strip() == str(copy / "cuda13") and done.stderr == "", variable


def test_another_toolkit_in_a_variable_is_passed_over_and_named(
    sdk: pathlib.Path, environment: Dict[str, str], tmp_path: pathlib.Path
) -> None:
    done = chosen_home(environment, "13.0", CUDA_HOME=str(tmp_path))
    assert done.stdout.strip() == str(sdk / "cuda13")
    assert f"CUDA_HOME={tmp_path}" in done.stderr and "Unset CUDA_HOME" in done.stderr


def test_an_unknown_release_is_an_error(environment: Dict[str, str]) -> None:
    done = chosen_home(environment, "11.8")
    assert done.returncode == 1 and "no toolkit for CUDA 11" in done.stderr
