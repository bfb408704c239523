"""The operator with the planted error is named, and no other."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import release_facts
import torch

from maca_tools import accuracy
from maca_tools.accuracy.compare import report

# One place of each kind; all of them, resumable, with counts: python tests/accuracy/planted_sweep.py --places 20
PLACES = int(os.environ.get("MACA_ACCURACY_PLACES", "1"))
SEED = os.environ.get("MACA_ACCURACY_SEED", "0")
LAYERS = 12 if PLACES >= 20 else 4
# The CPU is the side that is right, so it has to compute the dtype.
HALVES = pytest.param("float16", marks=release_facts.wants("layer_norm_of_halves_on_the_cpu"))
DTYPES = pytest.mark.parametrize("dtype", ["float32", HALVES, "bfloat16"])
WAYS = pytest.mark.parametrize("way", ["fwd", "bwd"])


@WAYS
@DTYPES
def test_a_planted_error_is_the_first_culprit_of_gen_report(sweep: Any, dtype: str, way: str, tmp_path: Path) -> None:
    clean = sweep.record("cpu", dtype, str(tmp_path / "cpu"), layers=LAYERS)
    for place in sweep.places(SEED, dtype, way, PLACES, LAYERS):
        found = sweep.by_report(clean, dtype, way, place, str(tmp_path), LAYERS)
        assert found.named, f"place {place}: {found.expected} was planted. {found.text}"


@WAYS
@DTYPES
def test_bisect_ends_with_the_planted_operator_and_a_reproducer_that_runs(
    sweep: Any, device: str, dtype: str, way: str, tmp_path: Path
) -> None:
    if device == "cpu":
        pytest.skip("no simulated device: bisect needs two")
    if PLACES < 20 and (dtype, way) not in (("float32", "fwd"), ("bfloat16", "bwd")):
        pytest.skip("a short run bisects one error forward and one backward")
    clean = sweep.record_script(dtype, str(tmp_path / "cpu"), LAYERS)
    for place in sweep.places(SEED, dtype, way, PLACES, LAYERS):
        found = sweep.by_bisect(clean, dtype, way, place, str(tmp_path), LAYERS)
        assert found.named, f"place {place}: {found.expected} was planted.\n{found.text}"
    again = subprocess.run(
        [sys.executable, str(tmp_path / "out" / "culprit" / "reproduce.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert again.returncode == 0 and "diff2" in again.stdout, again.stdout


@pytest.mark.parametrize("way", ["fwd", "bwd"])
def test_summaries_find_a_planted_error_too(sweep: Any, device: str, way: str, tmp_path: Path) -> None:
    clean = sweep.record("cpu", "float32", str(tmp_path / "cpu"), level=1, layers=LAYERS)
    place = sweep.places(SEED, "float32", way, PLACES, LAYERS)[0]
    wrong = sweep.record(device, "float32", str(tmp_path / "device"), f"{way}:{place}", level=1, layers=LAYERS)
    result = report.generate(clean, wrong, str(tmp_path))
    expected = sweep.expected(clean, place, way, LAYERS)
    assert result.culprit is not None and result.culprit.name0 == expected, result.text()


@DTYPES
def test_two_devices_that_agree_have_no_culprit(sweep: Any, device: str, dtype: str, tmp_path: Path) -> None:
    sides = [sweep.record(where, dtype, str(tmp_path / where), layers=LAYERS) for where in ("cpu", device)]
    result = report.generate(sides[0], sides[1], str(tmp_path))
    assert result.culprit is None and result.counts["not compared"] == 0, result.text()


def test_two_identical_runs_have_equal_crcs_everywhere(planted: Any, device: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        model = planted.build(device, torch.float32, layers=2)
        with accuracy.record(output_dir=str(tmp_path / name)):
            planted.train(model)
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path))
    assert result.culprit is None
    assert {kind for kind, count in result.counts.items() if count} == {"same"}
