"""NCCL's collectives on device tensors beside Gloo's on CPU tensors, with the same ranks, sizes and moments.

python tests/benchmarks/collectives.py [--ranks 2 4] [--most 268435456]

A row is the time of NCCL in units of Gloo's, and the share of what the memory allows: the bytes that an all-reduce has
to move at least, over the rate of a copy on all ranks at once.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import tempfile
import time
from typing import Callable, List

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing


def timed(work: Callable[[], object], calls: int) -> float:
    """Seconds of one call, the device's work included."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def rank_main(rank: int, ranks: int, meeting: str, most: int) -> None:
    """Measure in one rank; rank 0 prints."""
    torch.cuda.set_device(rank)
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=300)
    dist.init_process_group("cpu:gloo,cuda:nccl", f"file://{meeting}", limit, ranks, rank)
    if rank == 0:
        print(f"{ranks} ranks\n{'bytes':>12} {'nccl us':>12} {'gloo us':>12} {'ratio':>8} {'of memory':>10}")
    nbytes = 1024
    while nbytes <= most:
        host = torch.ones(nbytes // 4)
        device = host.cuda()
        other = torch.empty_like(host)
        calls = max(2, min(200, (16 << 20) // nbytes))
        sides: List[List[float]] = [[], [], []]
        for _ in range(5):
            dist.barrier()
            sides[0].append(timed(lambda device=device: dist.all_reduce(device, dist.ReduceOp.MAX), calls))
            sides[1].append(timed(lambda host=host: dist.all_reduce(host, dist.ReduceOp.MAX), calls))
            sides[2].append(timed(lambda host=host, other=other: other.copy_(host), calls))
        nccl, gloo, copy = map(statistics.median, sides)
        # Each rank reads its part of all ranks' elements, writes it, and fetches the other parts.
        moved = (1 + (ranks - 1) / ranks) * copy
        if rank == 0:
            row = f"{nbytes:12} {nccl * 1e6:12.1f} {gloo * 1e6:12.1f} {nccl / gloo:8.3f} {moved / nccl:10.2f}"
            print(row, flush=True)
        nbytes *= 4
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--most", type=int, default=256 << 20, help="bytes of the largest tensor")
    arguments = parser.parse_args()
    os.environ.setdefault("MACA_DEVICE_COUNT", str(max(arguments.ranks)))
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.spawn(rank_main, (ranks, os.path.join(folder, "meeting"), arguments.most), nprocs=ranks)


if __name__ == "__main__":
    main()
