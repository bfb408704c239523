"""Show the distribution at work: the install check, then two CUDA programs on real data, beside the same on the CPU.

Run inside the environment that holds the wheels:  python demo.py [--output FOLDER]

The programs, digits.py and language_model.py, know nothing of this distribution. The folder receives their results
and a plot of the losses.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
INSTALL_CHECK = "import torch; print(torch.ones(2).cuda())"
INSTALL_CHECK_PRINTS = "tensor([1., 1.], device='cuda:0')"
COMPILED = "cuda, compiled"
# How a program can run: the arguments that ask for it.
WAYS = {"cuda": ["--device", "cuda"], "cpu": ["--device", "cpu"], COMPILED: ["--device", "cuda", "--compile"]}
COLOURS = {"cuda": "tab:blue", "cpu": "tab:orange", COMPILED: "tab:green"}


class Program(NamedTuple):
    title: str
    command: List[str]
    score: str  # what the results' "score" is
    unit: str  # what the throughput counts
    width: int  # of the moving average in the plot, in steps
    ways: List[str]


PROGRAMS = {
    "digits": Program(
        "Convolutional network on handwritten digits (mixed precision)",
        [str(HERE / "digits.py"), "--amp"],
        "test accuracy",
        "images/s",
        5,
        ["cuda", "cpu"],
    ),
    "language_model": Program(
        "GPT-style language model on Alice's Adventures in Wonderland",
        [str(HERE / "language_model.py"), str(HERE / "alice.txt")],
        "validation loss",
        "characters/s",
        1,
        ["cuda", "cpu", COMPILED],
    ),
}


def headline(text: str) -> None:
    print(f"\n== {text}", flush=True)


def install_check() -> None:
    headline("Install check")
    print(f'$ python -c "{INSTALL_CHECK}"', flush=True)
    printed = subprocess.run(
        [sys.executable, "-c", INSTALL_CHECK], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    print(printed)
    if printed != INSTALL_CHECK_PRINTS:
        sys.exit(f"demo: the install check should print {INSTALL_CHECK_PRINTS}")


def run(name: str, output: Path) -> Dict[str, Dict[str, Any]]:
    """The program's results in each of its ways."""
    program = PROGRAMS[name]
    results = {}
    for way in program.ways:
        if way == COMPILED and importlib.util.find_spec("triton") is None:
            print(f"\n{program.title}: {way}: left out, since this release has no package triton for the device")
            continue
        headline(f"{program.title}: {way}")
        file = output / f"{name}-{way.replace(', ', '-')}.json"
        command = [sys.executable, *program.command, *WAYS[way], "--results", str(file)]
        status = subprocess.run(command).returncode
        if status != 0:
            sys.exit(f"demo: {name} failed on {way} with exit status {status}")
        results[way] = json.loads(file.read_text())
    return results


def table(results: Dict[str, Dict[str, Dict[str, Any]]]) -> None:
    headline("Side by side")
    for name, by_way in results.items():
        program = PROGRAMS[name]
        print(f"{name:<28}" + "".join(f"{way:>16}" for way in by_way))
        print(f"  {program.score:<26}" + "".join(f"{found['score']:16.4f}" for found in by_way.values()))
        print(f"  {'final loss':<26}" + "".join(f"{found['losses'][-1]:16.4f}" for found in by_way.values()))
        print(f"  {program.unit:<26}" + "".join(f"{found['throughput']:16.0f}" for found in by_way.values()))
        cpu = by_way["cpu"]["throughput"]
        print(f"  {'of the speed on cpu':<26}" + "".join(f"{f['throughput'] / cpu:15.2f}x" for f in by_way.values()))


def plot(results: Dict[str, Dict[str, Dict[str, Any]]], path: Path) -> None:
    figure, axes = plt.subplots(1, len(results), figsize=(10, 3.6), dpi=100)
    for axis, (name, by_way) in zip(axes, results.items()):
        program = PROGRAMS[name]
        for device, found in by_way.items():
            losses = found["losses"]
            width = program.width
            smooth = [sum(losses[max(0, i - width + 1) : i + 1]) / min(i + 1, width) for i in range(len(losses))]
            score = found["score"]
            label = f"{device}: {program.score} {score:.1%}" if score <= 1 else f"{device}: {program.score} {score:.3f}"
            style = {"linewidth": 3, "alpha": 0.5} if device == "cpu" else {"linewidth": 1.2}
            axis.plot(smooth, label=label, color=COLOURS[device], zorder=1 if device == "cpu" else 2, **style)
        axis.set(title=program.title.split(" on ")[0], xlabel="step", ylabel="training loss")
        axis.legend(frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for results and plot")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)

    start = time.perf_counter()
    install_check()
    results = {name: run(name, arguments.output) for name in PROGRAMS}
    table(results)
    picture = arguments.output / "losses.png"
    plot(results, picture)
    print(f"\nThe losses, step by step: {picture}\nDone in {time.perf_counter() - start:.0f} s.")
    if results["digits"]["cuda"]["score"] < 0.97:
        sys.exit("demo: the digits network should reach 97 % test accuracy")


if __name__ == "__main__":
    main()
