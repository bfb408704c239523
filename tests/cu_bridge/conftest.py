"""Fixtures of the SDK's tests: the built SDK, and programs compiled against it.

The SDK is `$MXMACA_PREFIX/mxmaca` (what `cmake --install --prefix` left), else the installed package.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
from typing import Callable, Dict, Optional

import pytest

HERE = pathlib.Path(__file__).resolve().parent
MAJORS = (12, 13)
sys.path.insert(0, str(HERE))  # modules that several tests share
import compiling  # noqa: E402


def find_sdk() -> Optional[pathlib.Path]:
    """Return the folder of the SDK, or None."""
    prefix = os.environ.get("MXMACA_PREFIX")
    if prefix:
        return (pathlib.Path(prefix) / "mxmaca").resolve()
    spec = importlib.util.find_spec("mxmaca")
    return pathlib.Path(spec.origin).parent if spec and spec.origin else None


@pytest.fixture(scope="session")
def sdk() -> pathlib.Path:
    """Return the folder of the SDK."""
    path = find_sdk()
    if path is None or not (path / "lib" / "libmcruntime.so").exists():
        pytest.fail("No SDK: install the mxmaca wheel, or set MXMACA_PREFIX to where cmake --install put it.")
    return path


@pytest.fixture(scope="session")
def cucc(sdk: pathlib.Path) -> "compiling.Cucc":
    """Return a function that runs the installed cucc."""
    return compiling.make_cucc(sdk)


@pytest.fixture()
def environment(sdk: pathlib.Path, tmp_path: pathlib.Path) -> Dict[str, str]:
    """Return an environment in which the test has the simulated devices to itself."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("MACA_")}
    variables.pop("CUDA_VISIBLE_DEVICES", None)
    state = tmp_path / "state"
    state.mkdir()
    variables.update(MACA_STATE_DIR=str(state), PYTHONPATH=str(sdk.parent))
    return variables


@pytest.fixture()
def run_python(environment: Dict[str, str]) -> Callable[..., str]:
    """Return a function that runs Python code in a process of its own, with `ffi` and `lib`, and returns its output."""
    prologue = "from mxmaca import runtime\nffi, lib = runtime.ffi(), runtime.lib()\n"

    def run(code: str, **variables: str) -> str:
        command = [sys.executable, "-c", prologue + code]
        done = subprocess.run(
            command,
            env={**environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.fixture(params=MAJORS, ids=["cuda12", "cuda13"])
def major(request: pytest.FixtureRequest) -> int:
    """Return a CUDA major release; a test that asks for it runs for each."""
    return int(request.param)


@pytest.fixture()
def compile_program(sdk: pathlib.Path, major: int, tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Return a function that compiles a C++ source of programs/ against the SDK's headers and libraries."""

    def compile_source(name: str, *libraries: str) -> pathlib.Path:
        return compiling.compile_against(sdk, major, HERE / "programs" / name, libraries, tmp_path)

    return compile_source


@pytest.fixture()
def run_program(
    compile_program: Callable[..., pathlib.Path], environment: Dict[str, str]
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Return a function that compiles and runs a program; what it checks itself must hold (exit status 0)."""

    def run(name: str, *libraries: str, arguments: tuple = (), **variables: str) -> "subprocess.CompletedProcess[str]":
        program = compile_program(name, *(libraries or ("libcudart",)))
        done = subprocess.run(
            [str(program), *arguments],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run
