"""Compiled kernels and the CPU's operators share threads: those of OpenMP."""

import pathlib
from typing import Set

import pytest
import torch

triton = pytest.importorskip("triton", reason="needs the triton wheel")
tl = pytest.importorskip("triton.language", reason="needs the triton wheel")


@triton.jit
def double(source, target, BLOCK: tl.constexpr):
    """One block of twice the source."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at) * 2)


def thread_names() -> Set[str]:
    """Return what the process's threads are called."""
    return {name.read_text().strip() for name in pathlib.Path("/proc/self/task").glob("*/comm")}


def test_kernels_run_on_the_threads_of_the_operators() -> None:
    threads = torch.get_num_threads()
    x = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
    out = torch.zeros_like(x)
    try:
        for count in (3, 1, 2):
            torch.set_num_threads(count)
            out.zero_()
            double[(x.numel() // 1024,)](x, out, BLOCK=1024)
            assert torch.equal(out, x * 2)
    finally:
        torch.set_num_threads(threads)
    assert "mc-blocks" not in thread_names()
