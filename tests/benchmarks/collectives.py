"""NCCL's collectives on device tensors beside Gloo's on CPU tensors, with the same ranks, sizes and moments.

python tests/benchmarks/collectives.py [--ranks 2 4] [--most 268435456] [--rounds N] [--json FILE]

A row is the time of NCCL's all-reduce in units of Gloo's. A second row, from 64 MiB on, is its time in units of what
the memory needs: the bytes that an all-reduce has to move at least, over the rate of a copy on all ranks at once.
"""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import statistics
import tempfile
import time
from dataclasses import asdict
from typing import Callable, List

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from _measure import Ratio, Table, parser

# A smaller copy is one of the processor's cache.
MEMORY_BYTES = 64 << 20


def timed(work: Callable[[], object], calls: int) -> float:
    """Seconds of one call, the device's work included."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def ratio(group: str, name: str, taken: List[float], reference: List[float]) -> Ratio:
    """Return the median of ``taken`` over ``reference``, round by round, with its spread."""
    ratios = [one / other for one, other in zip(taken, reference)]
    return Ratio(group, name, statistics.median(ratios), min(ratios), max(ratios), min(reference))


def size_name(nbytes: int) -> str:
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"


def rank_main(rank: int, ranks: int, folder: str, most: int, rounds: int) -> None:
    """Measure in one rank; rank 0 writes the rows into ``folder``."""
    torch.cuda.set_device(rank)
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=300)
    dist.init_process_group("cpu:gloo,cuda:nccl", f"file://{folder}/meeting", limit, ranks, rank)
    rows: List[Ratio] = []
    nbytes = 1024
    while nbytes <= most:
        host = torch.ones(nbytes // 4)
        device = host.cuda()
        other = torch.empty_like(host)
        calls = max(2, min(200, (16 << 20) // nbytes))
        nccl: List[float] = []
        gloo: List[float] = []
        copy: List[float] = []
        for _ in range(rounds):
            dist.barrier()
            nccl.append(timed(lambda device=device: dist.all_reduce(device, dist.ReduceOp.MAX), calls))
            gloo.append(timed(lambda host=host: dist.all_reduce(host, dist.ReduceOp.MAX), calls))
            copy.append(timed(lambda host=host, other=other: other.copy_(host), calls))
        name = size_name(nbytes)
        rows.append(ratio(f"all-reduce of {ranks} ranks, to Gloo", name, nccl, gloo))
        if nbytes >= MEMORY_BYTES:
            # Each rank reads its part of all ranks' elements, writes it, and fetches the other parts.
            moved = [(1 + (ranks - 1) / ranks) * each for each in copy]
            rows.append(ratio(f"all-reduce of {ranks} ranks, to the memory", name, nccl, moved))
        nbytes *= 4
    if rank == 0:
        pathlib.Path(folder, "rows.json").write_text(json.dumps([asdict(row) for row in rows]))
    dist.destroy_process_group()


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    made.add_argument("--most", type=int, default=256 << 20, help="bytes of the largest tensor")
    arguments = made.parse_args()
    os.environ.setdefault("MACA_DEVICE_COUNT", str(max(arguments.ranks)))
    # Each rank computes with one thread.
    torch.set_num_threads(1)
    table = Table(arguments, "NCCL / reference", "of the reference")
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as folder:
            given = (ranks, folder, arguments.most, arguments.rounds)
            multiprocessing.spawn(rank_main, given, nprocs=ranks)
            for row in json.loads(pathlib.Path(folder, "rows.json").read_text()):
                table.add(Ratio(**row))
    table.close([])


if __name__ == "__main__":
    main()
