"""What each part of macatorch/csrc/fast gains: the work that it is for, with the part beside without it.

Each library has a process of its own, and the two take turns. `python -m build_scripts bench --only fast_parts` builds
a library without each part and calls this with the folders in which torch has it (for PYTHONPATH):

    python tests/benchmarks/fast_parts.py --without PANELS=FOLDER ... [--only PANELS] [--rounds 7]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from typing import Callable, Dict, Tuple

import _measure
import torch


def block(device: str) -> Callable[[], object]:
    x = torch.ones(4, 4, device=device)
    return lambda: x.exp()


def product(columns: int, dtype: torch.dtype) -> Callable[[str], Callable[[], object]]:
    def on(device: str) -> Callable[[], object]:
        a, b = torch.ones(512, 768, device=device, dtype=dtype), torch.ones(768, columns, device=device, dtype=dtype)
        return lambda: a @ b

    return on


def sparse_product(layout: str) -> Callable[[str], Callable[[], object]]:
    def on(device: str) -> Callable[[], object]:
        indices = torch.stack([torch.arange(1000).repeat_interleave(100), torch.arange(100_000) * 7919 % 1000])
        a = torch.sparse_coo_tensor(indices, torch.ones(100_000), (1000, 1000), device=device).coalesce()
        a = a.to_sparse_csr() if layout == "csr" else a
        b = torch.ones(1000, 1000, device=device)
        return lambda: torch.sparse.mm(a, b)

    return on


def filtered_plane(device: str) -> Callable[[], object]:
    image, weight = torch.ones(1, 1, 2048, 2048, device=device), torch.ones(1, 1, 2, 2, device=device)
    return lambda: torch.nn.functional.conv2d(image, weight)


def copy(device: str) -> Callable[[], object]:
    x = torch.ones(8, 64, 128, 128, device=device)
    return lambda: x.contiguous(memory_format=torch.channels_last)


def backward(device: str) -> Callable[[], object]:
    layers = [torch.nn.Linear(64, 64, device=device) for _ in range(8)]
    x = torch.ones(16, 64, device=device)

    def step() -> None:
        y = x
        for layer in layers:
            y = layer(y).relu()
        y.sum().backward()

    return step


# What each part is for, its name first; how to make it, and how many calls are timed at once.
WORK: Dict[str, Tuple[Callable[[str], Callable[[], object]], int]] = {
    "ALLOCATOR": (block, 2000),
    "ONEDNN": (product(3072, torch.float32), 5),
    "ONEDNN bfloat16": (product(3072, torch.bfloat16), 5),
    "PANELS": (product(30522, torch.float32), 1),
    "LINES of a coordinate list": (sparse_product("coo"), 1),
    "LINES of compressed rows": (sparse_product("csr"), 1),
    "LINES of a plane": (filtered_plane, 3),
    "COPIES": (copy, 5),
    "BACKWARD_THREAD": (backward, 20),
}


class Library:
    """A process with one library, which takes work by its name and says how long a call took."""

    def __init__(self, site: str = "") -> None:
        environment = {**os.environ, "PYTHONPATH": site} if site else dict(os.environ)
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def seconds(self, name: str) -> float:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(name, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve() -> None:
    ready: Dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        make, calls = WORK[line.strip()]
        if line not in ready:
            ready[line] = make("cuda")
            _measure.seconds(ready[line], calls)
        print(_measure.seconds(ready[line], calls), flush=True)


def compare(name: str, site: str, rounds: int) -> _measure.Ratio:
    """Time with the part in units of that without it."""
    sides = [Library(), Library(site)]
    ratios, references = [], []
    for turn in range(rounds):
        taken = {i: sides[i].seconds(name) for i in ((0, 1) if turn % 2 else (1, 0))}
        ratios.append(taken[0] / taken[1])
        references.append(taken[1])
    for side in sides:
        side.close()
    return _measure.Ratio("fast", name, statistics.median(ratios), min(ratios), max(ratios), min(references))


def main() -> None:
    parser = _measure.parser(__doc__)
    parser.add_argument("--without", action="append", default=[], metavar="PART=FOLDER", help="may be repeated")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    sites = dict(given.split("=", 1) for given in arguments.without)
    names = [name for name in WORK if arguments.only in name and name.split()[0] in sites]
    if not names:
        parser.error("no part to leave out: name one by --without")
    table = _measure.Table(arguments, "with / without the part", "without")
    for name in names:
        table.add(compare(name, sites[name.split()[0]], arguments.rounds))
    table.close([])


if __name__ == "__main__":
    main()
