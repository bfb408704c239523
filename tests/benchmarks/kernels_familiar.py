"""Ten kernels that textbooks have, beside the loops that one writes for the host: processor time, and its ratio.

    python tests/benchmarks/kernels_familiar.py [--rounds N] [NAME...]

Compiles kernels_familiar.cu with the installed cucc for the machine's own processor, and runs kernels and OpenMP loops
in turns, both with one thread. The target is that of docs/cu_bridge.md: 3 times the loop in the geometric mean, and no
kernel above 8 times.
"""

import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Dict, List

import mxmaca

HERE = pathlib.Path(__file__).resolve().parent
MEAN_TARGET, TARGET = 3.0, 8.0


def ratios_of(output: str) -> Dict[str, List[float]]:
    """Each kernel's ratios, of lines with a name and two times."""
    found: Dict[str, List[float]] = {}
    for line in output.splitlines():
        name, kernel, loop = line.split()
        found.setdefault(name, []).append(float(kernel) / float(loop))
    return found


def main() -> None:
    """Print a row for each kernel, and the geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("names", nargs="*", help="only these kernels")
    arguments = parser.parse_args()
    cucc = pathlib.Path(mxmaca.__file__).resolve().parent / "bin" / "cucc"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "familiar"
        options = ["-std=c++17", "-O3", "-Wstacks", "-Xcompiler", "-fopenmp,-march=native,-fno-math-errno"]
        source = str(HERE / "kernels_familiar.cu")
        subprocess.run([sys.executable, str(cucc), *options, source, "-o", str(program)], check=True)
        environment = {**os.environ, "MACA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [str(program), str(arguments.rounds), *arguments.names]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    medians = []
    print(f"{'kernel':24} {'times the loop':>14}  lowest to highest")
    for name, ratios in ratios_of(done.stdout).items():
        medians.append(statistics.median(ratios))
        missed = "  above the target" if medians[-1] > TARGET else ""
        print(f"{name:24} {medians[-1]:14.2f}  {min(ratios):.2f} to {max(ratios):.2f}{missed}")
    mean = math.exp(statistics.fmean(math.log(one) for one in medians))
    print(f"{'geometric mean':24} {mean:14.2f}  (target {MEAN_TARGET:g})")


if __name__ == "__main__":
    main()
