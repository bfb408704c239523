"""The operator with the planted error is named, and no other."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest
import torch

from maca_tools import accuracy
from maca_tools.accuracy import record_dir, report
from maca_tools.accuracy.__main__ import main

# The whole of it, with as many seeds as one likes:
#   MACA_ACCURACY_PLACES=20 MACA_ACCURACY_SEED=1 python -m pytest tests/accuracy/test_planted_errors.py
PLACES = int(os.environ.get("MACA_ACCURACY_PLACES", "1"))
SEED = os.environ.get("MACA_ACCURACY_SEED", "0")
LAYERS = 12 if PLACES >= 20 else 4
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
WAYS = pytest.mark.parametrize("way", ["fwd", "bwd"])


def _places(planted: Any, dtype: str, way: str) -> List[int]:
    number = len(planted.places(planted.Model(layers=LAYERS)))
    return random.Random(f"{SEED} {dtype} {way}").sample(range(number), PLACES)


def _expected(planted: Any, clean: str, place: int, way: str) -> str:
    """The full name of a place, from the run without an error: modules are called in a known order."""
    model = planted.Model(layers=LAYERS)
    called = [id(module) for module in planted.call_order(model)].index(id(planted.places(model)[place]))
    names = [entry.name for entry in record_dir.streams(clean)[""].entries if entry.name.way == "fwd"]
    modules = [name for name in names if name.api.startswith("torch.nn.") and name.api.count(".") == 2]
    return str(modules[called]._replace(way=way))


def _record(planted: Any, device: str, dtype: str, folder: str, where: str = "", level: int = 2) -> str:
    model = planted.build(device, getattr(torch, dtype), where, LAYERS)
    with accuracy.record(output_dir=folder, record_level=level, record_stack=False):
        planted.train(model)
    return folder


@WAYS
@DTYPES
def test_a_planted_error_is_the_first_culprit_of_gen_report(
    planted: Any, device: str, dtype: str, way: str, tmp_path: Path
) -> None:
    clean = _record(planted, "cpu", dtype, str(tmp_path / "cpu"))
    missed = []
    for place in _places(planted, dtype, way):
        wrong = _record(planted, device, dtype, str(tmp_path / "device"), f"{way}:{place}")
        result = report.generate(clean, wrong, str(tmp_path))
        expected = _expected(planted, clean, place, way)
        if result.culprit is None or result.culprit.name0 != expected:
            missed.append(f"place {place}: {expected} was planted. {result.text()}")
    assert not missed, f"{len(missed)} of {PLACES}:\n" + "\n".join(missed)


@WAYS
@DTYPES
def test_bisect_ends_with_the_planted_operator_and_a_reproducer_that_runs(
    planted: Any, device: str, dtype: str, way: str, tmp_path: Path, capfd: Any
) -> None:
    if device == "cpu":
        pytest.skip("no simulated device: bisect needs two")
    if PLACES < 20 and (dtype, way) not in (("float32", "fwd"), ("bfloat16", "bwd")):
        pytest.skip("a short run bisects one error forward and one backward")
    # The script is recorded from its first line on, so the making of the model counts.
    clean = str(tmp_path / "cpu")
    with accuracy.record(output_dir=clean, record_level=1, record_stack=False):
        planted.train(planted.build("cpu", getattr(torch, dtype), layers=LAYERS))
    missed = []
    for place in _places(planted, dtype, way):
        arguments = ["--device", "{device}", "--dtype", dtype, "--plant", f"{way}:{place}", "--only-on", "cuda",
                     "--layers", str(LAYERS)]  # fmt: skip
        code = main(["bisect", planted.__file__, "-o", str(tmp_path / "out"), "--", *arguments])
        printed = capfd.readouterr().out
        expected = _expected(planted, clean, place, way)
        if code != 1 or f"the operator is {expected}\n" not in printed:
            missed.append(f"place {place}: {expected} was planted.\n{printed}")
            continue
        if place == _places(planted, dtype, way)[0]:
            again = subprocess.run(
                [sys.executable, str(tmp_path / "out" / "culprit" / "reproduce.py")],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert again.returncode == 0 and "diff2" in again.stdout, again.stdout
    assert not missed, f"{len(missed)} of {PLACES}:\n" + "\n".join(missed)


@pytest.mark.parametrize("way", ["fwd", "bwd"])
def test_summaries_find_a_planted_error_too(planted: Any, device: str, way: str, tmp_path: Path) -> None:
    clean = _record(planted, "cpu", "float32", str(tmp_path / "cpu"), level=1)
    place = _places(planted, "float32", way)[0]
    wrong = _record(planted, device, "float32", str(tmp_path / "device"), f"{way}:{place}", level=1)
    result = report.generate(clean, wrong, str(tmp_path))
    assert result.culprit is not None and result.culprit.name0 == _expected(planted, clean, place, way), result.text()


def test_two_devices_that_agree_have_no_culprit(planted: Any, device: str, tmp_path: Path) -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        sides = [_record(planted, where, dtype, str(tmp_path / where)) for where in ("cpu", device)]
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
