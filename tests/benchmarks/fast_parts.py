"""What each part of macatorch/csrc/fast gains: the work that it is for, on the device beside the CPU.

The CPU has none of these parts, so the ratio is that of a build with the part. A build without it
(`-DMACATORCH_FAST_<PART>=OFF`) shows what the device takes then. Run in an environment with the vendor wheel:

    python tests/benchmarks/fast_parts.py [--only ALLOCATOR] [--rounds 7]
"""

from __future__ import annotations

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


PARTS: Dict[str, Tuple[Callable[[str], Callable[[], object]], int]] = {
    "ALLOCATOR": (block, 2000),
    "ONEDNN": (product(3072, torch.float32), 1),
    "ONEDNN bfloat16": (product(3072, torch.bfloat16), 1),
    "PANELS": (product(30522, torch.float32), 1),
    "COPIES": (copy, 1),
    "BACKWARD_THREAD": (backward, 20),
}


def main() -> None:
    arguments = _measure.parser(__doc__).parse_args()
    table = _measure.Table(arguments)
    for name, (work, calls) in PARTS.items():
        if arguments.only in name:
            table.add(_measure.compare("fast", name, work("cpu"), work("cuda"), calls=calls, rounds=arguments.rounds))
    table.close(["fast"])


if __name__ == "__main__":
    main()
