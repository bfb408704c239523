"""Programs include, link and run; what headers declare is exported; nothing loads a BLAS before it is needed."""

import pathlib
import re
import shutil
import subprocess
import sys
from typing import Callable, Dict

import pytest
from library_calls import find_openblas

HEADERS = {
    "cublas_v2.h": "libcublas",
    "cublas.h": "libcublas",
    "cublasXt.h": "libcublas",
    "cublasLt.h": "libcublasLt",
    "curand.h": "libcurand",
    "cufftXt.h": "libcufft",
    "cusolverDn.h": "libcusolver",
    "cusolverSp_LOWLEVEL_PREVIEW.h": "libcusolver",
    "cusolverRf.h": "libcusolver",
    "cusparse.h": "libcusparse",
    "cudnn.h": "libcudnn",
}


def test_a_program_of_all_libraries_runs(run_program: Callable[..., object]) -> None:
    run_program("libraries.cpp", "libcudart", *HEADERS.values(), MACA_BLAS_LIBRARY=find_openblas())


def test_device_states_give_the_numbers_of_the_hosts_generators(run_program: Callable[..., object]) -> None:
    run_program("quasi_random.cpp", "libcudart", "libcurand")


def test_the_first_interface_of_cublas_computes_and_keeps_its_errors(run_program: Callable[..., object]) -> None:
    run_program("libraries/first_cublas.cpp", "libcudart", "libcublas", MACA_BLAS_LIBRARY=find_openblas())


@pytest.mark.parametrize("header", HEADERS)
def test_headers_are_c_and_what_they_declare_is_exported(sdk: pathlib.Path, major: int, header: str) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    command = [compiler, "-x", "c", "-E", "-P", f"-DMXMACA_CUDA_MAJOR={major}", f"-I{sdk / 'include'}", "-"]
    text = subprocess.run(command, input=f"#include <{header}>\n", check=True, capture_output=True, text=True).stdout
    name = HEADERS[header]
    prefix = name[3:]
    declared = set(re.findall(rf"\b({prefix}\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*;", text))
    library = max((sdk / "lib" / f"cuda{major}").glob(name + ".so.*"))
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True)
    exported = {line.split()[-1].partition("@")[0] for line in symbols.stdout.splitlines()}
    own = {each for each in declared if not each.startswith("cublasLt") or name == "libcublasLt"}
    inline = {each for each in own if re.search(rf"static inline [^;{{]*\b{each}\b", text)}
    assert len(own) > 8 and own - inline <= exported


def run_python(code: str, environment: Dict[str, str], **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True)


CALL = """
import ctypes, pathlib, sys
library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else PATH)
loaded = lambda: "openblas" in pathlib.Path("/proc/self/maps").read_text()
handle, one = ctypes.c_void_p(), ctypes.c_float(1)
assert library.cublasCreate_v2(ctypes.byref(handle)) == 0
before = loaded()
x = (ctypes.c_float * 4)(1, 2, 3, 4)
status = library.cublasSaxpy_v2(handle, 4, ctypes.byref(one), x, 1, x, 1)
print(status, before, loaded(), list(x))
"""


def test_openblas_is_loaded_by_the_first_computation(
    sdk: pathlib.Path, major: int, environment: Dict[str, str]
) -> None:
    library = next((sdk / "lib" / f"cuda{major}").glob("libcublas.so.*"))
    code = CALL.replace("PATH", repr(str(library)))
    done = run_python(code, environment, MACA_BLAS_LIBRARY=find_openblas())
    assert done.stdout.split("[")[0].split() == ["0", "False", "True"], done.stdout + done.stderr
    assert "[2.0, 4.0, 6.0, 8.0]" in done.stdout


def test_a_missing_openblas_is_said_with_its_remedy(sdk: pathlib.Path, environment: Dict[str, str]) -> None:
    library = next((sdk / "lib" / "cuda13").glob("libcublas.so.*"))
    code = CALL.replace("PATH", repr(str(library)))
    done = run_python(code, environment, MACA_BLAS_LIBRARY="/nowhere/libblas.so")
    assert done.stdout.startswith("1 False False [1.0"), done.stdout + done.stderr  # NOT_INITIALIZED, nothing written
    assert "pip install scipy-openblas64" in done.stderr and "/nowhere/libblas.so" in done.stderr
