"""The operator with the planted error is named, and no other."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from maca_tools import accuracy
from maca_tools.accuracy import record_dir, report

# The whole of it: MACA_ACCURACY_PLACES=20 python -m pytest tests/accuracy/test_planted_errors.py
PLACES = int(os.environ.get("MACA_ACCURACY_PLACES", "3"))


def _expected(planted: Any, clean: str, place: int, way: str) -> str:
    """The full name of a place, from the run without an error: modules are called in a known order."""
    model = planted.Model()
    called = [id(module) for module in planted.call_order(model)].index(id(planted.places(model)[place]))
    names = [entry.name for entry in record_dir.streams(clean)[""].entries if entry.name.way == "fwd"]
    modules = [
        name for name in names if name.api.startswith("torch.nn.") and not name.api.startswith("torch.nn.functional")
    ]
    return str(modules[called]._replace(way=way))


@pytest.mark.parametrize("level", [2, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=["fp32", "fp16", "bf16"])
def test_a_planted_error_is_the_first_culprit(
    planted: Any, device: str, dtype: torch.dtype, level: int, tmp_path: Path
) -> None:
    clean, wrong = str(tmp_path / "cpu"), str(tmp_path / "device")
    model = planted.build("cpu", dtype)
    with accuracy.record(output_dir=clean, record_level=level, record_stack=False):
        planted.train(model)
    number = len(planted.places(planted.Model()))
    choice = random.Random(str(dtype))
    where = [
        (way, place) for way in ("fwd", "bwd") for place in choice.sample(range(number), PLACES if level == 2 else 1)
    ]
    for way, place in where:
        model = planted.build(device, dtype, f"{way}:{place}")
        with accuracy.record(output_dir=wrong, record_level=level, record_stack=False):
            planted.train(model)
        result = report.generate(clean, wrong, str(tmp_path))
        assert result.culprit is not None, f"{way}:{place} was not found"
        assert result.culprit.name0 == _expected(planted, clean, place, way), f"{way}:{place}: {result.text()}"


def test_bisect_ends_with_the_operator_and_a_reproducer_that_runs(planted: Any, device: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    source = Path(planted.__file__).parent
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {str(source)!r})\nimport planted, torch\n"
        "where = os.environ['MACA_ACCURACY_DEVICE']\n"
        "planted.train(planted.build(where, torch.float32, 'bwd:11' if sys.argv[1] == 'yes' else '', layers=2))\n"
    )
    # Without a second device the two sides differ by their argument alone.
    text = script.read_text()
    if device == "cpu":
        pytest.skip("no simulated device: bisect needs two")
    script.write_text(text.replace("if sys.argv[1] == 'yes'", "if where == 'cuda'"))
    done = subprocess.run(
        [sys.executable, "-m", "maca_tools.accuracy", "bisect", str(script),
         "-o", str(tmp_path / "out"), "--skip", "7"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    last = [line for line in done.stdout.splitlines() if "the operator is" in line]
    assert last and last[0].endswith(".bwd") and "torch.nn." in last[0], done.stdout
    again = subprocess.run(
        [sys.executable, str(tmp_path / "out" / "culprit" / "reproduce.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert "diff2" in again.stdout, again.stdout


def test_two_identical_runs_have_equal_crcs_everywhere(planted: Any, device: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        model = planted.build(device, torch.float32, layers=2)
        with accuracy.record(output_dir=str(tmp_path / name)):
            planted.train(model)
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path))
    assert result.culprit is None
    assert {kind for kind, count in result.counts.items() if count} == {"same"}
