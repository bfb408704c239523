"""What recording costs on a GPT-2-small-shaped training step, and how fast gen_report compares.

python tests/benchmarks/accuracy.py [--layers 12] [--length 128] [--device cuda]
Prints each figure beside the figure that it has to keep. The record goes to a temporary folder on --disk.
"""

import argparse
import contextlib
import os
import resource
import shutil
import statistics
import tempfile
import time
from typing import Any, Callable

import torch
from torch import nn

from maca_tools import accuracy
from maca_tools.accuracy import report

_BLOCK = 64 << 20


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self, layers: int, length: int, width: int = 768, words: int = 50257) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*[Layer(width, 12) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.layers(x)))


def _seconds(what: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        what()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def _disk_rate(folder: str, size: int) -> float:
    """Bytes a second that this disk takes, written as a record is: sequentially, without fsync."""
    block = os.urandom(_BLOCK)
    path = os.path.join(folder, "rate")
    began = time.perf_counter()
    with open(path, "wb") as file:
        for _ in range(max(size // _BLOCK, 1)):
            file.write(block)
    rate = max(size // _BLOCK, 1) * _BLOCK / (time.perf_counter() - began)
    os.unlink(path)
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--disk", default=None)
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    torch.manual_seed(0)
    model = Model(chosen.layers, chosen.length).to(chosen.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 50257, (chosen.batch, chosen.length)).to(chosen.device)

    def step() -> None:
        optimizer.zero_grad()
        logits = model(tokens)
        nn.functional.cross_entropy(logits.view(-1, 50257), tokens.view(-1)).backward()
        optimizer.step()

    step()
    plain = _seconds(step, chosen.times)
    print(
        f"plain step                {plain:8.2f} s   "
        f"batch {chosen.batch} x {chosen.length}, {chosen.layers} layers, {chosen.device}"
    )
    folder = tempfile.mkdtemp(dir=chosen.disk)
    try:
        accuracy.start_record(output_dir=os.path.join(folder, "off"), record_level=1)
        accuracy.record_switch(False)
        print(f"switched off              {_seconds(step, chosen.times) / plain:8.2f} x   (at most 1.01)")
        accuracy.start_record(enabled=False)
        for level, most in ((1, 3.0), (0, 4.0)):
            accuracy.start_record(output_dir=os.path.join(folder, f"level{level}"), record_level=level)
            began = time.perf_counter()
            step()
            accuracy.start_record(enabled=False)
            print(f"level {level}                   {(time.perf_counter() - began) / plain:8.2f} x   (at most {most})")
        sides = [os.path.join(folder, side) for side in ("a", "b")]
        # Both sides of the comparison are one step recorded in full; the second from weights one step further.
        for side in sides:
            began = time.perf_counter()
            with contextlib.ExitStack() as stack:
                stack.enter_context(accuracy.record(output_dir=side, record_level=2))
                step()
            took = time.perf_counter() - began
        size = sum(entry.stat().st_size for entry in os.scandir(sides[1]))
        rate = _disk_rate(folder, min(size, 4 << 30))
        print(f"level 2                   {took / plain:8.2f} x   {size / 1e9:.1f} GB in {took:.1f} s")
        print(f"  of the disk's bandwidth {size / took / rate:8.0%}     (at least 70 %; {rate / 1e9:.2f} GB/s)")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = report.generate(sides[0], sides[1], folder)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(
            f"gen_report                {result.bytes / result.seconds / 1e9:8.2f} GB/s "
            f"(at least 0.5; {result.bytes / 1e9:.1f} GB, {grown / 1e3:.0f} MB more memory)"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
