"""Kernels beside a plain loop: processor time per CUDA thread, and its ratio to one element of the loop.

    python tests/benchmarks/kernels.py

Compiles kernels.cu with the installed cucc. The targets are those of docs/cu_bridge.md.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import mxmaca

TARGETS = {"saxpy": "1.2 times the loop", "block_sum": "30 ns", "warp_sum": "40 ns"}


def main() -> None:
    """Print one line for each kernel."""
    source = pathlib.Path(__file__).resolve().with_suffix(".cu")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "kernels"
        command = [sys.executable, str(mxmaca.root() / "bin" / "cucc"), "-O3", str(source), "-o", str(program)]
        subprocess.run(command, check=True)
        environment = {**os.environ, "MACA_NUM_THREADS": "1"}
        done = subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    times = {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}
    loop = times.pop("loop")
    print(f"{'kernel':<10} {'ns per thread':>14} {'of the loop':>12}   target")
    print(f"{'(loop)':<10} {loop:>14.3f} {1:>12.2f}")
    for name, time in times.items():
        print(f"{name:<10} {time:>14.3f} {time / loop:>12.2f}   {TARGETS[name]}")


if __name__ == "__main__":
    main()
