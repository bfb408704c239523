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


def table(rows: List[Dict[str, object]]) -> List[str]:
    lines = ["| work | cuda / cpu | spread | cpu |", "|---|---|---|---|"]
    for row in rows:
        microseconds = float(str(row["reference_seconds"])) * 1e6
        cpu = f"{microseconds:.1f} us" if microseconds < 1e4 else f"{microseconds / 1e3:.0f} ms"
        lines.append(f"| {row['name']} | {row['ratio']:.2f} | {row['low']:.2f} to {row['high']:.2f} | {cpu} |")
    ratios = [float(str(row["ratio"])) for row in rows]
    return [*lines, f"| **geometric mean** | **{statistics.geometric_mean(ratios):.2f}** | | |"]


def main() -> None:
    results = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:]]
    groups: Dict[str, List[Dict[str, object]]] = {}
    for result in results:
        for row in result["rows"]:
            groups.setdefault(row["group"], []).append(row)
    facts = results[0]
    lines = [
        BEGIN,
        "",
        "![Each ratio as a bar](performance.png)",
        "",
        f"torch {facts['torch']}, {facts['threads']} threads.",
        "",
    ]
    for group, rows in groups.items():
        lines += [f"### {group[0].upper()}{group[1:]}", "", *table(rows), ""]
    page = DOCS / "performance.md"
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + "\n".join([*lines, END]) + rest.split(END)[1])
    draw(groups)


def draw(groups: Dict[str, List[Dict[str, object]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(groups), figsize=(3.2 * len(groups), 11), constrained_layout=True)
    for axis, (group, rows) in zip(axes, groups.items()):
        names = [str(row["name"]) for row in rows]
        ratios = [float(str(row["ratio"])) for row in rows]
        axis.barh(names, ratios, color=["tab:green" if ratio <= 1 else "tab:orange" for ratio in ratios])
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_xlabel("time, cuda / cpu")
        axis.set_title(group, fontsize=9)
        axis.tick_params(labelsize=7)
        axis.invert_yaxis()
    figure.savefig(DOCS / "performance.png", dpi=80, metadata={"Software": None})


if __name__ == "__main__":
    main()
