"""What every test of the installed wheel shares. Without a device these tests fail: that is what they are here for."""

import os
import pathlib
import subprocess
import sys
import textwrap
from typing import Callable, Dict, Iterator, Optional

import pytest

# Every variable that changes an answer; a test that wants one sets it.
_VARIABLES = (
    "PYTORCH_DEFAULT_NCHW",
    "PYTORCH_DEFAULT_NDHWC",
    "PYTORCH_DEFAULT_NLC",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "PYTORCH_ALLOW_CUDA_CUDNN_TF32",
    "MACA_DEVICE_COUNT",
    "MACA_DEVICE_PROFILE",
    "CUDA_VISIBLE_DEVICES",
)
Script = Callable[..., str]


Done = subprocess.CompletedProcess  # of str

RANK_PROLOGUE = """
import os, signal, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
"""


def run_script(code: str, env: Optional[Dict[str, str]] = None, check: bool = True) -> "Done[str]":
    """Run Python code in a fresh process whose only settings are `env`."""
    environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    environment.update(env or {})
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    if check and done.returncode != 0:
        pytest.fail(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done


@pytest.fixture(scope="session")
def process() -> Callable[..., "Done[str]"]:
    """`process(code, env, check)`: what became of the code in a fresh process."""
    return run_script


@pytest.fixture
def run_ranks(tmp_path: pathlib.Path) -> Callable[..., str]:
    """Return a function that runs code in `ranks` processes as torchrun starts them, which must end well: what they
    print. The code has `rank`, `torch` and `dist`."""

    def run(code: str, ranks: int = 2, env: Optional[Dict[str, str]] = None) -> str:
        path = tmp_path / "rank.py"
        path.write_text(RANK_PROLOGUE + textwrap.dedent(code), encoding="utf-8")
        launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        done = subprocess.run(
            [sys.executable, "-m", *launcher, str(path)],
            env=dict(os.environ, MACA_DEVICE_COUNT=str(ranks), OMP_NUM_THREADS="1", **(env or {})),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.fixture
def script() -> Script:
    """`script(code, env)`: what the code prints in a fresh process, stripped."""
    return lambda code, env=None: run_script(code, env).stdout.strip()


@pytest.fixture(autouse=True)
def _seeded_and_alive(request: pytest.FixtureRequest) -> Iterator[None]:
    import torch

    torch.manual_seed(0)
    yield
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        # As on hardware, nothing works after a failed launch: what follows would tell nothing.
        first_line = str(error).splitlines()[0]
        pytest.exit(f"{request.node.name} left the device failed: {first_line}", returncode=1)
