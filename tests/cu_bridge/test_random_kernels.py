"""Random kernels give the same results as loops between their waits and with a stack for each thread.

MACA_RANDOM_KERNELS=FIRST:LAST takes these seeds, of twenty kernels each, instead of the few that every run takes.
"""

import os
import pathlib

import pytest
import random_kernels
from compiling import Cucc, make_cucc, run_program

FIRST, LAST = map(int, os.environ.get("MACA_RANDOM_KERNELS", "1:3").split(":"))


@pytest.fixture(scope="session")
def cucc(sdk: pathlib.Path) -> Cucc:
    return make_cucc(sdk)


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_results_do_not_depend_on_how_threads_are_run(cucc: Cucc, seed: int, tmp_path: pathlib.Path) -> None:
    source, program = tmp_path / "kernels.cu", tmp_path / "kernels"
    source.write_text(random_kernels.program(seed, 20), encoding="utf-8")
    # Sums and products of whatever size: they may wrap.
    cucc("-O1", "-w", "-Xcompiler", "-fwrapv", "-keep", "-keep-dir", tmp_path, source, "-o", program)
    results = []
    for schedule in ("forward", "reverse", "random:7"):
        done = run_program(program, MACA_SCHEDULE=schedule, MACA_STATE_DIR=str(tmp_path))
        assert done.returncode == 0, done.stdout + done.stderr
        results.append(done.stdout)
    assert len(results[0].splitlines()) == 20 * len(random_kernels.SHAPES)
    assert results[0] == results[1] == results[2]
    text = (tmp_path / "kernels.device.ii").read_text(encoding="utf-8")
    # Both kinds are there, or nothing is compared.
    assert 0 < text.count("__mxmaca_phases = ") < 20
