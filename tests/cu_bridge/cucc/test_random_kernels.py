"""Random kernels give the same results as loops between their waits and with a stack for each thread.

Every run takes 500 kernels that no run of another day has taken. MACA_RANDOM_KERNELS=FIRST:LAST takes these seeds
instead, of fifty kernels each.
"""

import datetime
import os
import pathlib

import pytest
import random_kernels
from compiling import Cucc, run_program

KERNELS, BATCHES = 50, 10  # a batch is a program: most of its compilation is reading headers
TODAY = int(datetime.date.today().strftime("%Y%m%d")) * 100
FIRST, LAST = map(int, os.environ.get("MACA_RANDOM_KERNELS", f"{TODAY}:{TODAY + BATCHES}").split(":"))


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_results_do_not_depend_on_how_threads_are_run(cucc: Cucc, seed: int, tmp_path: pathlib.Path) -> None:
    source, program = tmp_path / "kernels.cu", tmp_path / "kernels"
    source.write_text(random_kernels.program(seed, KERNELS), encoding="utf-8")
    # Sums and products of whatever size: they may wrap.
    cucc("-O1", "-w", "-Xcompiler", "-fwrapv", "-keep", "-keep-dir", tmp_path, source, "-o", program)
    again = f"MACA_RANDOM_KERNELS={seed}:{seed + 1} is this program; random_kernels.py {seed} {KERNELS} writes it"
    results = []
    for schedule in ("forward", "reverse", "random:7"):
        done = run_program(program, MACA_SCHEDULE=schedule, MACA_STATE_DIR=str(tmp_path))
        assert done.returncode == 0, f"{again}\n{done.stdout}{done.stderr}"
        results.append(done.stdout.splitlines())
    assert len(results[0]) == KERNELS * len(random_kernels.SHAPES), again
    for forward, *others in zip(*results):
        assert [forward, forward] == others, again
    text = (tmp_path / "kernels.device.ii").read_text(encoding="utf-8")
    # Both kinds are there, or nothing is compared.
    assert 0 < text.count("__mxmaca_phases = ") < KERNELS, again
