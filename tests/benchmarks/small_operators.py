"""What an operator costs on the device beside the same one on the CPU, on small tensors.

Both sides run in one process, alternating, and only their ratio counts. Run in an environment with the vendor wheel:

    python tests/benchmarks/small_operators.py [--elements 16] [--rounds 9]
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Callable, Dict

import torch
import torch.nn.functional as F

Operator = Callable[[torch.Tensor, torch.Tensor], object]

OPERATORS: Dict[str, Operator] = {
    "add": lambda a, b: a + b,
    "add_": lambda a, b: a.add_(b, alpha=0.0),
    "mul": lambda a, b: a * b,
    "mul scalar": lambda a, b: a * 2.0,
    "div": lambda a, b: a / b,
    "exp": lambda a, b: a.exp(),
    "relu": lambda a, b: a.relu(),
    "gelu": lambda a, b: F.gelu(a),
    "sigmoid": lambda a, b: a.sigmoid(),
    "sum": lambda a, b: a.sum(),
    "mean": lambda a, b: a.mean(-1),
    "amax": lambda a, b: a.amax(-1),
    "softmax": lambda a, b: a.softmax(-1),
    "layer_norm": lambda a, b: F.layer_norm(a, a.shape[-1:]),
    "mm": lambda a, b: a @ b,
    "linear": lambda a, b: F.linear(a, b),
    "cat": lambda a, b: torch.cat([a, b]),
    "gt": lambda a, b: a > b,
    "where": lambda a, b: torch.where(a > b, a, b),
    "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "clone": lambda a, b: a.clone(),
    "zeros_like": lambda a, b: torch.zeros_like(a),
    "empty_like": lambda a, b: torch.empty_like(a),
    "select": lambda a, b: a[0],
    "transpose": lambda a, b: a.t(),
    "view": lambda a, b: a.view(-1),
}


def seconds(operator: Operator, a: torch.Tensor, b: torch.Tensor, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        operator(a, b)
    return (time.perf_counter() - start) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=16, help="elements of each tensor, a square number")
    parser.add_argument("--rounds", type=int, default=9, help="alternations of CPU and device")
    parser.add_argument("--calls", type=int, default=2000, help="calls in one round")
    arguments = parser.parse_args()
    side = math.isqrt(arguments.elements)
    host = [torch.rand(side, side) for _ in range(2)]
    device = [tensor.cuda() for tensor in host]
    ratios = []
    print(f"torch {torch.__version__}, {side}x{side}, {torch.get_num_threads()} threads")
    print("ratio cuda / cpu (spread), cpu us")
    for name, operator in OPERATORS.items():
        rounds = []
        cpu_times = []
        for _ in range(arguments.rounds):
            cpu = seconds(operator, *host, arguments.calls)
            rounds.append(seconds(operator, *device, arguments.calls) / cpu)
            cpu_times.append(cpu)
        ratio = statistics.median(rounds)
        ratios.append(ratio)
        low, high = min(rounds), max(rounds)
        print(f"{name:12} {ratio:5.2f}  ({low:.2f} to {high:.2f})  {min(cpu_times) * 1e6:6.2f}", flush=True)
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
