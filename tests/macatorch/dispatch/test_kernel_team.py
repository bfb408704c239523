"""Compiled kernels and the CPU's operators share threads: those of OpenMP."""

import os
import pathlib
import subprocess
import sys
from typing import Dict

import pytest

pytest.importorskip("triton", reason="needs the triton wheel")

# In a process of its own: threads of the runtime stay once they are there.
PROGRAM = """
import pathlib
import torch
import triton
import triton.language as tl

@triton.jit
def double(source, target, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at) * 2)

x = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
out = torch.zeros_like(x)
for count in 3, 1, 2:
    torch.set_num_threads(count)
    out.zero_()
    double[(x.numel() // 1024,)](x, out, BLOCK=1024)
    assert torch.equal(out, x * 2)
names = [name.read_text().strip() for name in pathlib.Path("/proc/self/task").glob("*/comm")]
print(names.count("mc-blocks"))
"""


@pytest.mark.parametrize(("variables", "threads"), [({}, 0), ({"MACA_NUM_THREADS": "2"}, 1)])
def test_kernels_run_on_the_threads_of_the_operators(
    tmp_path: pathlib.Path, variables: Dict[str, str], threads: int
) -> None:
    """Unless they have a number of threads of their own: then the runtime has made the others."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "MACA_NUM_THREADS"}
    environment.update(variables, OMP_NUM_THREADS="2")
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    # Triton 3.9 warns of a default that will change.
    assert (done.returncode, done.stdout.strip()) == (0, str(threads)), done.stdout + done.stderr
