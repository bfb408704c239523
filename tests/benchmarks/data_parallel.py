"""A training step of two ranks with DDP, of one thread each, beside the same step of one rank with two threads.

Both take the same images in a step. The ranks share the processors that the one has to itself, so what is above 1.00 is
what the all-reduce of the gradients costs that does not hide behind the backward pass.

    python tests/benchmarks/data_parallel.py [--images 16] [--rounds 7] [--json FILE]
"""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import tempfile
import time
from dataclasses import asdict
from typing import List

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F
from _measure import Ratio, Table, parser
from collectives import ratio
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


def model() -> nn.Module:
    """Return ResNet-18 on the rank's device, the same on every rank."""
    from torchvision.models import resnet18

    torch.manual_seed(0)
    made: nn.Module = resnet18(weights=None).cuda()
    return made


class Steps:
    """Training steps of one network on one batch."""

    def __init__(self, network: nn.Module, images: int) -> None:
        self.network = network
        self.images = torch.randn(images, 3, 224, 224).cuda()
        self.labels = torch.randint(0, 1000, (images,)).cuda()
        self.optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9)

    def seconds(self) -> float:
        """Time of one step, the device's work included."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.optimizer.zero_grad()
        F.cross_entropy(self.network(self.images), self.labels).backward()
        self.optimizer.step()
        torch.cuda.synchronize()
        return time.perf_counter() - start


def rank_main(rank: int, folder: str, images: int, rounds: int) -> None:
    """Measure in one rank; rank 0 writes the row into ``folder``."""
    torch.cuda.set_device(rank)
    torch.set_num_threads(1)
    dist.init_process_group("nccl", f"file://{folder}/meeting", datetime.timedelta(seconds=300), RANKS, rank)
    together = Steps(DistributedDataParallel(model(), device_ids=[rank]), images // RANKS)
    alone = Steps(model(), images)
    meet = torch.zeros(1, device="cuda")
    both: List[float] = []
    one: List[float] = []
    for number in range(rounds + 1):
        dist.all_reduce(meet)
        taken = together.seconds()
        dist.all_reduce(meet)
        # The others wait for rank 0 in the second sum.
        if rank == 0:
            torch.set_num_threads(RANKS)
            reference = alone.seconds()
            torch.set_num_threads(1)
            if number > 0:
                both.append(taken)
                one.append(reference)
        dist.all_reduce(meet)
        torch.cuda.synchronize()
    if rank == 0:
        row = ratio(f"DDP on {RANKS} ranks, to one with {RANKS} threads", "ResNet-18 step", both, one)
        pathlib.Path(folder, "row.json").write_text(json.dumps(asdict(row)))
    dist.destroy_process_group()


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--images", type=int, default=16, help="images of a step, on all ranks together")
    arguments = made.parse_args()
    os.environ.setdefault("MACA_DEVICE_COUNT", str(RANKS))
    table = Table(arguments, "two ranks / one", "of the one")
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(rank_main, (folder, arguments.images, arguments.rounds), nprocs=RANKS)
        table.add(Ratio(**json.loads(pathlib.Path(folder, "row.json").read_text())))
    table.close([])


if __name__ == "__main__":
    main()
