"""Taking the same work on two devices, in turns, in one process."""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Callable, Iterable, List, Optional, Sequence

import torch

Work = Callable[[], object]


@dataclass(frozen=True)
class Ratio:
    """What one piece of work costs on ``cuda`` beside ``cpu``: the median of the rounds, and their spread."""

    group: str
    name: str
    ratio: float
    low: float
    high: float
    reference_seconds: float

    def line(self) -> str:
        spread = f"({self.low:.2f} to {self.high:.2f})"
        return f"{self.name:24} {self.ratio:5.2f}  {spread}  {self.reference_seconds * 1e6:12.2f}"


def seconds(work: Work, calls: int) -> float:
    """Time of one call of ``work``, in seconds, the mean of ``calls``."""
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


def uncertainty(ratios: Sequence[float]) -> float:
    """How far the median of ``ratios`` may be off: its standard error, estimated from their quartiles."""
    lower, _, upper = statistics.quantiles(ratios, n=4)
    return 1.2533 * (upper - lower) / 1.349 / math.sqrt(len(ratios))


def compare(
    group: str,
    name: str,
    reference: Work,
    device: Work,
    calls: int = 1,
    rounds: int = 5,
    most_seconds: float = 0.0,
) -> Ratio:
    """Time of ``device`` in units of ``reference``.

    Each round runs both, and which is first changes from round to round, so that a slow minute of a shared machine
    meets both sides. There are ``rounds`` of them, and more, for ``most_seconds`` altogether, while the median may be
    off by more than a percent.
    """
    reference()
    device()
    ratios: List[float] = []
    references: List[float] = []
    end = time.perf_counter() + most_seconds
    while len(ratios) < rounds or (time.perf_counter() < end and uncertainty(ratios) > 0.01):
        if len(ratios) % 2:
            there, here = seconds(device, calls), seconds(reference, calls)
        else:
            here, there = seconds(reference, calls), seconds(device, calls)
        ratios.append(there / here)
        references.append(here)
    return Ratio(group, name, statistics.median(ratios), min(ratios), max(ratios), min(references))


class Table:
    """Prints each ratio as it comes and writes all of them as JSON where ``--json`` says."""

    def __init__(self, arguments: argparse.Namespace, sides: str = "cuda / cpu", reference: str = "of the cpu") -> None:
        self.path: Optional[pathlib.Path] = arguments.json
        self.rows: List[Ratio] = []
        print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
        print(f"ratio {sides} (spread), microseconds {reference}")

    def add(self, ratio: Ratio) -> None:
        self.rows.append(ratio)
        print(ratio.line(), flush=True)

    def close(self, groups: Sequence[str]) -> None:
        for group in groups:
            ratios = [row.ratio for row in self.rows if row.group == group]
            if ratios:
                print(f"{group}: geometric mean {geometric_mean(ratios):.2f}")
        if self.path is not None:
            facts = {"torch": torch.__version__, "threads": torch.get_num_threads()}
            self.path.write_text(json.dumps({**facts, "rows": [asdict(row) for row in self.rows]}, indent=1))


def geometric_mean(values: Iterable[float]) -> float:
    return statistics.geometric_mean(list(values))


def parser(description: Optional[str]) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--json", type=pathlib.Path, help="file for the results")
    made.add_argument("--only", default="", help="only what has this in its name")
    made.add_argument("--rounds", type=int, default=7, help="alternations of CPU and device")
    return made
