"""How long `import torch` takes here, beside a stock torch:  python benchmark_import.py OTHER_PYTHON

OTHER_PYTHON is the interpreter of an environment that holds upstream's CPU wheel of about the same release. The runs
alternate, so that both meet the same load; the target is a ratio of at most 1.2.
"""

import argparse
import statistics
import subprocess
import sys

CODE = "import time; s = time.perf_counter(); import torch; print(time.perf_counter() - s, torch.__version__)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("other_python")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    pythons = (sys.executable, arguments.other_python)
    seconds = {python: [] for python in pythons}
    versions = {}
    for turn in range(arguments.runs + 1):
        for python in pythons:
            taken, versions[python] = subprocess.check_output([python, "-c", CODE], text=True).split()
            if turn > 0:  # the first one fills the page cache
                seconds[python].append(float(taken))
    medians = [statistics.median(seconds[python]) for python in pythons]
    for python, median in zip(pythons, medians):
        print(f"{versions[python]:>20}  {median:.3f} s")
    print(f"{'ratio':>20}  {medians[0] / medians[1]:.2f}")


if __name__ == "__main__":
    main()
