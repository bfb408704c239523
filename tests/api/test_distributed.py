"""Two ranks with backend="nccl", as torchrun starts them."""

import os
import pathlib
import subprocess
import sys
import textwrap
from typing import Callable

import pytest
import torch

if not torch.distributed.is_nccl_available():
    pytest.skip("this build has no NCCL", allow_module_level=True)

PROLOGUE = """
import os, signal, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
"""


@pytest.fixture()
def run_ranks(tmp_path: pathlib.Path) -> Callable[[str], None]:
    """Return a function that runs code in two processes, which must end well."""

    def run(code: str) -> None:
        path = tmp_path / "rank.py"
        path.write_text(PROLOGUE + textwrap.dedent(code), encoding="utf-8")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(path)]
        variables = dict(os.environ, MACA_DEVICE_COUNT="2", OMP_NUM_THREADS="1")
        done = subprocess.run(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout

    return run


def test_ddp_averages_the_gradients_of_its_ranks(run_ranks: Callable[[str], None]) -> None:
    run_ranks(
        """
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl")
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).cuda()
        alone = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).cuda()
        alone.load_state_dict(model.state_dict())
        inputs = torch.randn(16, 8, device="cuda")  # the same on both ranks, of which each takes a half
        parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
        parallel(inputs[rank * 8 : rank * 8 + 8]).mean().backward()
        alone(inputs).mean().backward()
        for mine, whole in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(mine.grad, whole.grad)
            both = [torch.empty_like(mine.grad) for _ in range(2)]
            dist.all_gather(both, mine.grad)
            assert torch.equal(*both)
        dist.destroy_process_group()
        """
    )


def test_operators_wait_for_collectives_of_a_device_that_is_not_current(run_ranks: Callable[[str], None]) -> None:
    run_ranks(
        """
        dist.init_process_group("nccl")
        for _ in range(50):
            tensor = torch.tensor([rank + 1.0], device=f"cuda:{rank}")
            dist.all_reduce(tensor)
            assert tensor.item() == 3.0
        dist.destroy_process_group()
        """
    )
