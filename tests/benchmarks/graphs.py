"""A launch of a CUDA graph beside the same work without a graph, both on the device.

python tests/benchmarks/graphs.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

from typing import Callable

import _measure
import torch
from torch import nn
from torch.nn import functional as F

GROUP = "graph launch"


def captured(work: Callable[[], object]) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def chain(size: int) -> Callable[[], object]:
    x = torch.randn(size, device="cuda")

    def work() -> torch.Tensor:
        y = x
        for _ in range(20):
            y = (y * 1.01).add(0.5).relu()
        return y

    return work


def training_step() -> Callable[[], object]:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(6))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x, target = torch.randn(32, 64, device="cuda"), torch.randn(32, 64, device="cuda")

    def work() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return work


def main() -> None:
    arguments = _measure.parser(__doc__).parse_args()
    table = _measure.Table(arguments)
    works = (
        ("60 operators, 16 elements", chain(16), 100),
        ("60 operators, 1 M elements", chain(1 << 20), 2),
        ("training step, 6 layers of 64", training_step(), 10),
    )
    for name, work, calls in works:
        work()
        graph = captured(work)
        table.add(_measure.compare(GROUP, name, work, graph.replay, calls, arguments.rounds))
    table.close([GROUP])


if __name__ == "__main__":
    main()
