"""Others' programs: what a run makes of processes that end, hang or say that values differ, and of the table."""

import sys
from pathlib import Path

import pytest

from build_scripts.quality import ecosystem
from build_scripts.quality.samples import Outcome

SCRIPT = """
import json, os, sys, time
for name in sys.argv[3:]:
    if name == "dies":
        os.abort()
    if name == "hangs":
        time.sleep(600)
    print("some package greets", flush=True)
    outcome = "equal" if name.startswith("good") else "differs"
    print(json.dumps({"program": name, "outcome": outcome, "seconds": 0.1, "says": ""}), flush=True)
"""


@pytest.fixture()
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "run.py"
    path.write_text(SCRIPT, encoding="utf-8")
    monkeypatch.setattr(ecosystem, "SCRIPT", path)
    return path


def test_a_run_goes_on_behind_a_program_that_dies_or_hangs(script: Path) -> None:
    family = ecosystem.Family("module", "family", ["good", "dies", "bad", "hangs", "good2"])
    found = ecosystem.run_all([family], Path(sys.executable), {}, limit=5)
    assert [(one.name, one.outcome) for one in found] == [
        ("good", "equal"),
        ("dies", "ends the process"),
        ("bad", "differs"),
        ("hangs", "takes too long"),
        ("good2", "equal"),
    ]


def test_a_resumed_run_takes_what_is_left_and_the_table_keeps_its_order() -> None:
    chosen = [
        ecosystem.Family("m", "a", ["x", "y"]),
        ecosystem.Family("m", "b", ["x"]),
        ecosystem.Family("n", "c", ["z"]),
    ]
    found = [Outcome("b", "x", "equal"), Outcome("a", "y", "differs"), Outcome("a", "gone", "fails")]
    left = ecosystem.without(chosen, found)
    assert left == [ecosystem.Family("m", "a", ["x"]), ecosystem.Family("n", "c", ["z"])]
    found += [Outcome("c", "z", "equal"), Outcome("a", "x", "equal")]
    assert [(one.category, one.name) for one in ecosystem.in_order(chosen, found)] == [
        ("a", "x"),
        ("a", "y"),
        ("b", "x"),
        ("c", "z"),
    ]
    assert ecosystem.without(chosen, found) == []


def test_what_differs_needs_a_reason_and_a_reason_needs_a_difference() -> None:
    found = [Outcome("a", "x", "equal"), Outcome("a", "y", "differs", says="0.5"), Outcome("a", "z", "not run")]
    assert ecosystem.surprises(found, {"a/y": "known", "a/z": "known"}) == []
    assert len(ecosystem.surprises(found, {"a/x": "outdated"})) == 3
    assert "| a | 3 | 1 | 1 | 0 | 0 | 0 | 1 |" in ecosystem.table(found, {})


def test_the_table_of_programs_names_functions_that_there_are() -> None:
    table = ecosystem.load()
    for family in ecosystem.families(table):
        source = (ecosystem.SCRIPT.parent / f"{family.module}.py").read_text(encoding="utf-8")
        assert f"\ndef {family.name}(name: str) -> Program:" in source
        assert len(set(family.programs)) == len(family.programs) > 0
