"""Programs of several ranks, each compiled once for a CUDA major."""

import pathlib
import subprocess
from typing import Callable, Dict, Tuple

import compiling
import pytest

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"


@pytest.fixture(scope="session")
def compiled(sdk: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], pathlib.Path]:
    """Return a function that compiles a program of programs/ for a CUDA major, the first time it is asked for it."""
    known: Dict[Tuple[str, int], pathlib.Path] = {}

    def compile_once(name: str, major: int) -> pathlib.Path:
        if (name, major) not in known:
            folder = tmp_path_factory.mktemp("nccl")
            libraries = ("libnccl", "libcudart")
            known[name, major] = compiling.compile_against(sdk, major, PROGRAMS / name, libraries, folder)
        return known[name, major]

    return compile_once


@pytest.fixture()
def run_ranks(
    compiled: Callable[[str, int], pathlib.Path], environment: Dict[str, str], major: int
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Return a function that runs a program; what its ranks check must hold (exit status 0)."""

    def run(name: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        command = [str(compiled(name, major)), *arguments]
        done = subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run
