"""Two ranks with backend="nccl", as torchrun starts them."""

from typing import Callable

import pytest
import torch

if not torch.distributed.is_nccl_available():
    pytest.skip("this build has no NCCL", allow_module_level=True)


def test_ddp_averages_the_gradients_of_its_ranks(run_ranks: Callable[..., str]) -> None:
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


def test_operators_wait_for_collectives_of_a_device_that_is_not_current(run_ranks: Callable[..., str]) -> None:
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
