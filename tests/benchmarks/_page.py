"""Writes the figures of the benchmarks into docs/performance.md and draws the two pictures there.

python tests/benchmarks/_page.py RESULT.json ...
"""

from __future__ import annotations

import json
import pathlib
import statistics
import sys
from typing import Any, Dict, List

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- figures of make bench: begin -->", "<!-- figures of make bench: end -->"


# What the geometric mean of a group has to keep, and what each of its rows has to. Other groups are no one thing.
MEANS = {
    "training step": 0.90,
    "training step, processes apart": 0.90,
    "operators, 4x4": 1.15,
    "operators, 1024x1024": 1.00,
    "kernels in Triton, to the CPU's operator": 1.30,
}
EACH = {
    "training step": 1.00,
    "training step, processes apart": 1.00,
    "inference": 1.00,
    "optimizer": 1.00,
    "peak memory": 1.15,
    "copy of 256 MiB": 1.11,  # 0.9 of the bandwidth
    "Triton's own times, to their goals": 1.00,
    # A third of Gloo's time, and 0.6 of what the memory allows.
    "all-reduce of 2 ranks, to Gloo": 0.33,
    "all-reduce of 2 ranks, to the memory": 1.67,
    "all-reduce of 4 ranks, to Gloo": 0.33,
    "all-reduce of 4 ranks, to the memory": 1.67,
}
Row = Dict[str, object]


def number(row: Row, key: str) -> float:
    return float(str(row[key]))


def mean(rows: List[Row]) -> float:
    return statistics.geometric_mean([number(row, "ratio") for row in rows])


def duration(seconds: float) -> str:
    if seconds == 0:
        return ""
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-2 else f"{seconds * 1e3:.0f} ms"


def summary(groups: Dict[str, List[Row]]) -> List[str]:
    lines = ["| work | of | geometric mean | target | greatest | target |", "|---|---|---|---|---|---|"]
    for group, rows in groups.items():
        if group in MEANS or group in EACH:
            targets = [f"{table[group]:.2f}" if group in table else "" for table in (MEANS, EACH)]
            greatest = max(rows, key=lambda row: number(row, "ratio"))
            worst = f"{number(greatest, 'ratio'):.2f} ({greatest['name']})"
            lines.append(f"| {group} | {len(rows)} | **{mean(rows):.2f}** | {targets[0]} | {worst} | {targets[1]} |")
    return lines


def table(rows: List[Row]) -> List[str]:
    lines = ["| work | ratio | spread | the reference takes |", "|---|---|---|---|"]
    for row in rows:
        spread = f"{row['low']:.2f} to {row['high']:.2f}"
        reference = duration(number(row, "reference_seconds"))
        lines.append(f"| {row['name']} | {row['ratio']:.2f} | {spread} | {reference} |")
    return lines


def side_by_side(groups: Dict[str, List[Row]]) -> List[str]:
    """One line for each operator, with its ratio at each size."""
    names = [str(row["name"]) for row in next(iter(groups.values()))]
    lines = ["| operator | " + " | ".join(groups) + " |", "|---" * (len(groups) + 1) + "|"]
    for name in names:
        found = [row for rows in groups.values() for row in rows if row["name"] == name]
        cells = [f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})" for row in found]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    results = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:]]
    groups: Dict[str, List[Row]] = {}
    for result in results:
        for row in result["rows"]:
            groups.setdefault(row["group"], []).append(row)
    facts = max((result for result in results if result["torch"]), key=lambda result: int(result["threads"]))
    operators = {group: rows for group, rows in groups.items() if group.startswith("operators")}
    others = {group: rows for group, rows in groups.items() if group not in operators}
    lines = [
        BEGIN,
        "",
        f"torch {facts['torch']}, {facts['threads']} threads.",
        "",
        *summary(groups),
        "",
        "![Each ratio as a point, sorted, on a logarithmic scale](performance.png)",
        "",
        "![The ratios of kernels likewise](performance-kernels.png)",
        "",
    ]
    for group, rows in others.items():
        lines += [f"### {group[0].upper()}{group[1:]}", "", *table(rows), ""]
    if operators:
        lines += ["### Operators", "", *side_by_side(operators), ""]
    page = DOCS / "performance.md"
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + "\n".join([*lines, END]) + rest.split(END)[1])
    draw(groups)


def draw(groups: Dict[str, List[Row]]) -> None:
    """Two pictures: what is compared with the CPU, and kernels, whose ratios are of another magnitude."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    kernels = {group: rows for group, rows in groups.items() if group.startswith("kernels")}
    operators = {group: rows for group, rows in groups.items() if group.startswith("operators")}
    work = {group: rows for group, rows in groups.items() if group not in kernels and group not in operators}
    figure, axes = pyplot.subplots(1, 2, figsize=(12, 10), constrained_layout=True)
    # One point a row; each operator has one for each size, so a row has its name alone.
    points(axes[0], {group: {f"{row['name']}, {group}": row for row in rows} for group, rows in work.items()})
    points(axes[1], {group: {str(row["name"]): row for row in rows} for group, rows in operators.items()})
    figure.savefig(DOCS / "performance.png", dpi=90, metadata={"Software": None})
    height = 1.4 + 0.25 * sum(len(rows) for rows in kernels.values())
    figure, axis = pyplot.subplots(figsize=(9, height), constrained_layout=True)
    points(axis, {group: {str(row["name"]): row for row in rows} for group, rows in kernels.items()})
    figure.savefig(DOCS / "performance-kernels.png", dpi=90, metadata={"Software": None})


def points(axis: Any, groups: Dict[str, Dict[str, Row]]) -> None:
    """Ratios on a logarithmic scale with their spread: a line a name, the greatest ratio on top, a colour a group."""
    from matplotlib import ticker

    greatest: Dict[str, float] = {}
    for rows in groups.values():
        for name, row in rows.items():
            greatest[name] = max(greatest.get(name, 0.0), number(row, "ratio"))
    order = sorted(greatest, key=lambda name: greatest[name])
    places = {name: place for place, name in enumerate(order)}
    for group, rows in groups.items():
        ratios = [number(row, "ratio") for row in rows.values()]
        below = [ratio - min(number(row, "low"), ratio) for row, ratio in zip(rows.values(), ratios)]
        above = [max(number(row, "high"), ratio) - ratio for row, ratio in zip(rows.values(), ratios)]
        heights = [places[name] for name in rows]
        axis.errorbar(ratios, heights, xerr=[below, above], fmt="o", markersize=4, linewidth=0.6, label=group)
    axis.set_xscale("log")
    if max(greatest.values(), default=1.0) < 10:
        axis.xaxis.set_major_locator(ticker.FixedLocator([0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0]))
        axis.xaxis.set_minor_locator(ticker.NullLocator())
        # A noisy round's spread runs out of the picture; the table has it.
        every = [number(row, "ratio") for rows in groups.values() for row in rows.values()]
        axis.set_xlim(min([1.0, *every]) * 0.85, max([1.0, *every]) * 1.2)
    axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.axvline(1.0, color="black", linewidth=1.0)
    axis.set_yticks(range(len(order)), order, fontsize=7)
    axis.set_ylim(-1, len(order))
    axis.grid(axis="both", linewidth=0.3)
    axis.set_xlabel("ratio of times; left of the line is faster than the reference")
    axis.legend(fontsize=7, loc="upper left")


if __name__ == "__main__":
    main()
