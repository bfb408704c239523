"""Optimizer steps and copies of much memory, and what many live tensors or devices cost.

python tests/benchmarks/memory.py
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from typing import List

import _measure
import torch


def adamw(table: _measure.Table, form: str, rounds: int, parameters: int = 100_000_000) -> None:
    """One step over ``parameters`` float32 numbers in 100 tensors, gradients ones."""
    sides = []
    for device in ("cpu", "cuda"):
        weights = [torch.zeros(parameters // 100, device=device, requires_grad=True) for _ in range(100)]
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        sides.append(torch.optim.AdamW(weights, **{form: True}).step)
    table.add(_measure.compare("optimizer", f"AdamW {form}", *sides, rounds=rounds, most_seconds=20.0))


def copies(table: _measure.Table, rounds: int, nbytes: int = 256 << 20) -> None:
    """``.cuda()`` and ``.cpu()`` beside a copy of as many bytes into new memory and into memory that is there."""
    host = torch.ones(nbytes // 4)
    there = torch.empty_like(host)
    device = host.cuda()
    reference = functools.partial(there.copy_, host)
    for name, work in (
        ("cuda()", host.cuda),
        ("cpu()", device.cpu),
        ("copy_ to cuda", functools.partial(device.copy_, host)),
    ):
        table.add(_measure.compare("copy of 256 MiB", name, reference, work, rounds=rounds, most_seconds=10.0))


def live_tensors(table: _measure.Table, rounds: int) -> None:
    """``a + b`` on 16 elements while ``n`` other tensors live on the device, in units of the same with none."""
    a, b = torch.ones(2, 16, device="cuda")
    add = functools.partial(torch.add, a, b)
    kept: List[torch.Tensor] = []
    _measure.seconds(add, 20000)  # the processor's clock and the allocator have settled
    for count in (1, 1000, 1_000_000):
        alone = _measure.seconds(add, 20000)
        kept += [torch.empty(8, device="cuda") for _ in range(count - len(kept))]
        ratios = sorted(_measure.seconds(add, 20000) for _ in range(rounds))
        kept_low, median, high = (value / alone for value in (ratios[0], ratios[len(ratios) // 2], ratios[-1]))
        table.add(_measure.Ratio("growth", f"add, {count} tensors", median, kept_low, high, alone))
        kept.clear()


def devices(table: _measure.Table, rounds: int) -> None:
    """``a + b`` on 16 elements in a process that uses 16 devices, in units of one with a single device."""
    code = (
        "import _measure, functools, torch; n = torch.cuda.device_count();"
        "kept = [torch.ones(16, device=f'cuda:{i}') for i in range(n)]; a, b = torch.ones(2, 16, device='cuda');"
        "print(min(_measure.seconds(functools.partial(torch.add, a, b), 20000) for _ in range(5)))"
    )
    here = os.path.dirname(os.path.abspath(__file__))

    def seconds(count: int) -> float:
        variables = {**os.environ, "MACA_DEVICE_COUNT": str(count), "PYTHONPATH": here}
        done = subprocess.run([sys.executable, "-c", code], env=variables, check=True, stdout=subprocess.PIPE)
        return float(done.stdout)

    pairs = [(seconds(1), seconds(16)) for _ in range(rounds)]
    ratios = sorted(many / one for one, many in pairs)
    middle = ratios[len(ratios) // 2]
    table.add(_measure.Ratio("growth", "add, 16 devices", middle, ratios[0], ratios[-1], min(one for one, _ in pairs)))


def main() -> None:
    arguments = _measure.parser(__doc__).parse_args()
    table = _measure.Table(arguments)
    copies(table, arguments.rounds)
    live_tensors(table, arguments.rounds)
    devices(table, min(3, arguments.rounds))
    for form in ("foreach", "fused"):
        adamw(table, form, min(5, arguments.rounds))
    table.close(["optimizer", "copy of 256 MiB"])


if __name__ == "__main__":
    main()
