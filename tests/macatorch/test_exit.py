"""A program that ends with a backward ends like any other."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAMS = {
    "backward": "x = leaf(); (x * 2).sum().backward()",
    "grad": "x = leaf(); found = torch.autograd.grad((x * 2).sum(), x)",
    "second order": "x = leaf(); found = torch.autograd.grad((x * x).sum(), x, create_graph=True)",
    "custom function": "x = leaf(); Own.apply(x).sum().backward()",
    "in threads": """
        def work():
            x = leaf()
            kept.append(torch.autograd.grad((x * 2).sum(), x))
        kept = []
        for thread in [threading.Thread(target=work) for _ in range(4)]:
            thread.start()
        """,
}
# Python's lock changes hands only where it is given away: so the engine's thread still wants it when the program ends.
BEFORE = """
    import sys, threading, torch
    sys.setswitchinterval(1000)
    def leaf():
        return torch.ones(4, device="cuda", requires_grad=True)
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value.clone()
        @staticmethod
        def backward(ctx, grad):
            return grad
    """


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_program_that_ends_with_a_backward_does_not_abort(program: str, threads: str) -> None:
    code = textwrap.dedent(BEFORE) + textwrap.dedent(PROGRAMS[program])
    # Where one thread computes, every pass runs in the engine's thread.
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_a_program_without_a_backward_does_not_wait() -> None:
    code = "import time, macatorch.engine_threads as e; t = time.monotonic(); e.settle(); print(time.monotonic() - t)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert float(done.stdout) < 0.5
