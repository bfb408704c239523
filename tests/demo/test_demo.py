"""The demo's programs: unmodified CUDA code that reaches on the device what it reaches on the CPU."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

HERE = Path(__file__).resolve().parent


def run(program: str, *arguments: str, results: Path) -> Dict[str, Any]:
    subprocess.run(
        [sys.executable, str(HERE / program), *arguments, "--results", str(results)],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=300,
    )
    return json.loads(results.read_text())


@pytest.mark.parametrize("program", ["digits.py", "language_model.py"])
def test_the_programs_know_nothing_of_this_distribution(program):
    assert not re.search("maca|mxc|metax", (HERE / program).read_text(), re.IGNORECASE)


def test_the_digits_network_reaches_97_percent_with_channels_last_batches(tmp_path):
    results = run("digits.py", "--device", "cuda", "--amp", results=tmp_path / "digits.json")
    assert results["score"] >= 0.97
    assert results["losses"][-1] < 0.5 < results["losses"][0]
    assert results["strides"] == [192, 1, 24, 3]


def test_the_language_model_learns_alike_on_both_devices_and_compiled(tmp_path):
    short = [str(HERE / "alice.txt"), "--steps", "20", "--batch-size", "8"]
    cpu = run("language_model.py", *short, "--device", "cpu", results=tmp_path / "cpu.json")
    for way in ([], ["--compile"]) if importlib.util.find_spec("triton") else ([],):
        cuda = run("language_model.py", *short, "--device", "cuda", *way, results=tmp_path / "cuda.json")
        assert cuda["losses"] == pytest.approx(cpu["losses"], rel=1e-3)
        assert cuda["losses"][-1] < cuda["losses"][0] - 0.5
