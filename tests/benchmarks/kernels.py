"""Kernels beside a plain loop: processor time per CUDA thread, and its ratio to one element of the loop.

    python tests/benchmarks/kernels.py [--json FILE]

Compiles kernels.cu with the installed cucc. Where an OpenCL for the processor is installed (Debian: pocl-opencl-icd,
ocl-icd-opencl-dev), the same kernels run there as well. The targets are those of docs/cu_bridge.md.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import Dict, List, Optional

import mxmaca

ROUNDS = 25
HERE = pathlib.Path(__file__).resolve().parent
NAMES = {
    "loop": "the plain loop",
    "saxpy": "saxpy",
    "block_sum": "block reduction, nine barriers",
    "warp_sum": "warp reduction, five shuffles",
    "function": "block reduction in a function",
    "warps": "block reduction by warps in functions",
    "stacks": "block reduction on stacks",
    "series_17": "200 operations, 2^17 threads",
    "series_20": "200 operations, 2^20 threads",
    "series_22": "200 operations, 2^22 threads",
}
TARGETS = {"saxpy": "1.2 times the loop", "block_sum": "30 ns; 10 ns", "warp_sum": "40 ns; 5 ns"}
TARGETS.update({f"series_{power}": "1.8 on two cores" for power in (17, 20, 22)})
Times = Dict[str, List[float]]


def run(program: pathlib.Path, *arguments: str, **variables: str) -> Times:
    """Run a program that prints lines of a name and a time; return the times of each name."""
    done = subprocess.run(
        [str(program), *arguments], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}
    )
    times: Times = {}
    for line in done.stdout.splitlines():
        name, value = line.split()
        times.setdefault(name, []).append(float(value))
    return times


def opencl(folder: pathlib.Path) -> Optional[Times]:
    """Return the times of the OpenCL kernels on one core, or None where there is no OpenCL to compile or run with."""
    program = folder / "opencl"
    command = [shutil.which("g++") or "g++", "-O3", str(HERE / "kernels_opencl.cpp"), "-o", str(program), "-lOpenCL"]
    if subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
        return None
    try:
        return run(program, str(ROUNDS), POCL_MAX_PTHREAD_COUNT="1", POCL_AFFINITY="0")
    except subprocess.CalledProcessError:
        return None


def main() -> None:
    """Print one line for each kernel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path, help="a file for the figures, which _page.py takes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "kernels"
        compiler = [sys.executable, str(mxmaca.root() / "bin" / "cucc"), "-O3", "-std=c++17"]
        subprocess.run([*compiler, str(HERE / "kernels.cu"), "-o", str(program)], check=True)
        times = run(program, str(ROUNDS), MACA_NUM_THREADS="1")
        walls = [run(program, "scaling", MACA_NUM_THREADS=count) for count in ("1", "2")]
        peer = opencl(folder)
    longer = {kernel: values for kernel, values in walls[0].items() if kernel not in times}
    best = {kernel: min(values) for kernel, values in {**times, **longer}.items()}
    print(f"{'kernel':<32} {'ns':>8} {'of the loop':>12} {'two cores':>10} {'OpenCL, ns':>11}   target")
    for kernel, nanoseconds in best.items():
        faster = f"{min(walls[0][kernel]) / min(walls[1][kernel]):.2f}" if kernel in walls[0] else ""
        other = f"{min(peer[kernel]):.3f}" if peer and kernel in peer else ""
        print(
            f"{NAMES[kernel]:<32} {nanoseconds:>8.3f} {nanoseconds / best['loop']:>12.2f} {faster:>10} {other:>11}   "
            + TARGETS.get(kernel, "")
        )
    if options.json:
        options.json.write_text(json.dumps(result(times, walls), indent=1) + "\n", encoding="utf-8")


def result(times: Times, walls: List[Times]) -> Dict[str, object]:
    """Return the figures as the page takes them.

    Ratios to the plain loop over as many elements, round by round, and times by the clock on two cores to those on one.
    """
    rows = []
    for kernel in ("saxpy", "block_sum", "warp_sum", "function", "warps", "stacks", "series_17"):
        ratios = sorted(value / loop for value, loop in zip(times[kernel], times["loop"]))
        rows.append(
            {
                "group": "kernels of CUDA C++, to a plain loop of as many elements",
                "name": NAMES[kernel],
                "ratio": statistics.median(ratios),
                "low": ratios[len(ratios) // 10],
                "high": ratios[-1 - len(ratios) // 10],
                "reference_seconds": min(times["loop"]) * (1 << 17) * 1e-9,
            }
        )
    for kernel, one in walls[0].items():
        ratios = sorted(two / min(one) for two in walls[1][kernel])
        threads = 1 << int(kernel.rpartition("_")[2]) if kernel.startswith("series") else 1 << 20
        rows.append(
            {
                "group": "kernels of CUDA C++ on two cores, to one",
                "name": NAMES[kernel],
                "ratio": ratios[0],
                "low": ratios[0],
                "high": ratios[-1 - len(ratios) // 10],
                "reference_seconds": min(one) * threads * 1e-9,
            }
        )
    return {"torch": None, "threads": 1, "rows": rows}


if __name__ == "__main__":
    main()
