"""Writes the figures of the benchmarks into docs/performance.md and draws docs/performance.png.

python tests/benchmarks/_page.py RESULT.json ...
"""

from __future__ import annotations

import json
import pathlib
import statistics
import sys
from typing import Dict, List

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- figures of make bench: begin -->", "<!-- figures of make bench: end -->"


# What the geometric mean of a group has to keep, and what each of its rows has to. Other groups are no one thing.
MEANS = {
    "training step": 0.90,
    "training step, processes apart": 0.90,
    "operators, 4x4": 1.15,
    "operators, 1024x1024": 1.00,
}
EACH = {
    "training step": 1.00,
    "training step, processes apart": 1.00,
    "inference": 1.00,
    "optimizer": 1.00,
    "peak memory": 1.15,
    "copy of 256 MiB": 1.11,  # 0.9 of the bandwidth
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
    facts = next(result for result in results if result["torch"])
    operators = {group: rows for group, rows in groups.items() if group.startswith("operators")}
    others = {group: rows for group, rows in groups.items() if group not in operators}
    lines = [
        BEGIN,
        "",
        f"torch {facts['torch']}, {facts['threads']} threads.",
        "",
        *summary(groups),
        "",
        "![Each ratio as a bar](performance.png)",
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
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(groups), figsize=(3.2 * len(groups), 11), constrained_layout=True)
    for axis, (group, rows) in zip(axes, groups.items()):
        names = [str(row["name"]) for row in rows]
        ratios = [number(row, "ratio") for row in rows]
        axis.barh(names, ratios, color=["tab:green" if ratio <= 1 else "tab:orange" for ratio in ratios])
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_xlabel("ratio")
        axis.set_title(group.replace(", ", ",\n"), fontsize=9)
        axis.tick_params(labelsize=7)
        axis.invert_yaxis()
    figure.savefig(DOCS / "performance.png", dpi=80, metadata={"Software": None})


if __name__ == "__main__":
    main()
