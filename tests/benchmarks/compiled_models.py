"""A training step of compiled models: the device's Triton code and its C++ code beside Inductor's C++ on the CPU.

    python tests/benchmarks/compiled_models.py [--only GPT] [--rounds 7] [--cold] [--processor]

Models have the shapes of GPT-2 small and of ResNet-50 and fewer layers, so that a compilation ends within a minute or
two. Each side has a process of its own, since MACA_INDUCTOR is read when torch is imported; the processes wait for
each other and take their steps in turns. The last rows are the device's compiled steps in units of its eager ones.
``--cold`` compiles into empty caches and adds the seconds of the first step. ``--processor`` takes the processor's time
in place of the clock's, which a busy machine does not change as much: for one thread (OMP_NUM_THREADS=1).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, Tuple

import _measure
import models
import torch

SIDE = "--side"
PROCESSOR = "--processor"
# Name of the side: its device, whether it compiles, MACA_INDUCTOR.
SIDES = {
    "cpu": ("cpu", True, "triton"),
    "triton": ("cuda", True, "triton"),
    "cpp": ("cuda", True, "cpp"),
    "eager": ("cuda", False, "triton"),
}
# Group of rows: the side that is measured and the one that is its unit.
GROUPS = {
    "compiled training step": ("triton", "cpu"),
    "the same with MACA_INDUCTOR=cpp": ("cpp", "cpu"),
    "compiled step, to the device's eager one": ("triton", "eager"),
    "the same with MACA_INDUCTOR=cpp, to eager": ("cpp", "eager"),
}


def resnet() -> Tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    """What ResNet-50 begins with, the first of its sixteen blocks, and a classifier."""
    from torchvision.models import resnet50

    whole = resnet50(weights=None)
    start = [whole.conv1, whole.bn1, whole.relu, whole.maxpool, whole.layer1[0], whole.avgpool]
    model = torch.nn.Sequential(*start, torch.nn.Flatten(), torch.nn.Linear(256, 1000))
    return model, torch.rand(8, 3, 224, 224), torch.randint(1000, (8,))


def gpt() -> Tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    """Two of GPT-2 small's twelve layers."""
    tokens, target = torch.randint(50257, (2, 2, 256))
    model = models.Transformer(50257, 256, True, 12, 768)
    del model.blocks[2:]
    return model, tokens, target


MODELS: Dict[str, models.Maker] = {"GPT-2 small, 2 layers": gpt, "ResNet-50, 1 block": resnet}


def serve(name: str, side: str) -> None:
    """Take a step for each line of the input and print its seconds; the first one compiles. At last the loss."""
    device, compiles, _ = SIDES[side]
    torch.manual_seed(0)
    runner = models.Side(*MODELS[name](), device)
    if compiles:
        runner.model = torch.compile(runner.model)
    clock = time.process_time if PROCESSOR in sys.argv else time.perf_counter
    loss = 0.0
    for line in sys.stdin:
        if line.strip() == "loss":
            print(loss, flush=True)
            continue
        start = clock()
        loss = runner.train()
        print(clock() - start, flush=True)


class Process:
    """One side of one model."""

    def __init__(self, name: str, side: str, folder: str) -> None:
        environment = {**os.environ, "MACA_INDUCTOR": SIDES[side][2]}
        if folder:
            environment["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, side)
        command = [sys.executable, __file__, *([PROCESSOR] if PROCESSOR in sys.argv else []), SIDE, name, side]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
        )

    def ask(self, word: str) -> float:
        """Return the number that it answers with."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args!r} has ended with status {self.process.wait()}")
        return float(answer)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(name: str, rounds: int, folder: str) -> List[_measure.Ratio]:
    """Return the rows of one model. Raises ValueError where two sides do not arrive at the same loss."""
    processes = {side: Process(name, side, folder) for side in SIDES}
    try:
        rows, first = [], {side: process.ask("step") for side, process in processes.items()}
        # The optimizer's state is made in the first step.
        for process in processes.values():
            process.ask("step")
        taken: Dict[str, List[float]] = {side: [] for side in SIDES}
        for number in range(rounds):
            order = list(SIDES)
            # Each side comes first, in the middle and last.
            order = order[number % len(order) :] + order[: number % len(order)]
            for side in order:
                taken[side].append(processes[side].ask("step"))
        losses = {side: process.ask("loss") for side, process in processes.items()}
        if max(losses.values()) - min(losses.values()) > 1e-2 * abs(losses["cpu"]):
            raise ValueError(f"{name}: the sides do not arrive at the same loss: {losses}")
        for group, (side, unit) in GROUPS.items():
            ratios = [mine / theirs for mine, theirs in zip(taken[side], taken[unit])]
            rows.append(
                _measure.Ratio(group, name, statistics.median(ratios), min(ratios), max(ratios), min(taken[unit]))
            )
        if folder:
            for side in ("triton", "cpp"):
                ratio = first[side] / first["cpu"]
                rows.append(_measure.Ratio(f"first step, {side}", name, ratio, ratio, ratio, first["cpu"]))
        return rows
    finally:
        for process in processes.values():
            process.close()


def main() -> None:
    if SIDE in sys.argv:
        serve(*sys.argv[-2:])
        return
    parser = _measure.parser(__doc__)
    parser.add_argument("--cold", action="store_true", help="compile into empty caches, and show how long that takes")
    parser.add_argument(PROCESSOR, action="store_true", help="the processor's time in place of the clock's")
    arguments = parser.parse_args()
    table = _measure.Table(arguments, "of the sides", "of the unit")
    for name in MODELS:
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for row in measure(name, arguments.rounds, folder if arguments.cold else ""):
                print(row.group, end=": ")
                table.add(row)
    table.close(list(GROUPS))


if __name__ == "__main__":
    main()
