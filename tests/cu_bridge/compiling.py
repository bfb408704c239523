"""Running the installed cucc, for the tests of everything that it compiles."""

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Callable, Dict, Sequence

import pytest

Cucc = Callable[..., "subprocess.CompletedProcess[str]"]
# The orders in which MACA_SCHEDULE lets the threads of a block run.
SCHEDULES = ("forward", "reverse", "random:1", "random:2")


def clean_environment(**variables: str) -> Dict[str, str]:
    """Return the environment without what would change the device or the compiler, and with `variables`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MACA_", "NVCC_", "CUCC_"))}
    return {**kept, **variables}


def make_cucc(sdk: pathlib.Path) -> Cucc:
    """Return a function that runs the installed cucc; keywords are environment variables."""

    def run(*arguments: object, check: bool = True, **variables: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(sdk / "bin" / "cucc"), *map(str, arguments)]
        done = subprocess.run(command, env=clean_environment(**variables), capture_output=True, text=True, timeout=300)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    return run


def compile_against(
    sdk: pathlib.Path, major: int, source: pathlib.Path, libraries: Sequence[str], folder: pathlib.Path
) -> pathlib.Path:
    """Compile a C++ program against the SDK's headers and libraries of a CUDA major; skip without a compiler."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    shims = sdk / "lib" / f"cuda{major}"
    target = folder / source.stem
    # -rpath-link by -L: the shims find libmcruntime.so by their own RPATH at run time only.
    command = [compiler, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-DMXMACA_CUDA_MAJOR={major}"]
    command += [f"-I{sdk / 'include'}", str(source), "-o", str(target), f"-L{shims}"]
    command += [f"-Wl,-rpath,{shims}", f"-Wl,-rpath-link,{sdk / 'lib'}", "-pthread"]
    command += [f"-l:{max(shims.glob(library + '.so.*')).name}" for library in libraries]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return target


def run_program(program: pathlib.Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run what was compiled, for a minute at most."""
    environment = clean_environment(**variables)
    return subprocess.run([str(program), *arguments], env=environment, capture_output=True, text=True, timeout=60)
