"""The differential fuzzer's programs as tests: run by ``make conformity ARGS='--only fuzz'``.

One process runs them one after the other, so that what a call leaves behind shows in those that follow. The last tests
run the process's first programs again.

    FUZZ_FIRST    number of the first program (0)
    FUZZ_COUNT    how many programs (20000)
    FUZZ_WORDS    1: the words of exceptions count as well
    FUZZ_SCRIPTS  a folder: each difference becomes a script there, reduced in processes of its own
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest
import torch
from fuzzer import expectations, session
from fuzzer.clean import Clean
from fuzzer.program import Program, Step
from fuzzer.reduction import Reduction

FIRST, COUNT = int(os.environ.get("FUZZ_FIRST", "0")), int(os.environ.get("FUZZ_COUNT", "20000"))
REPLAYS = 200
SCRIPTS = os.environ.get("FUZZ_SCRIPTS")


class History:
    """What this process has run."""

    def __init__(self) -> None:
        self.programs: List[List[Step]] = []
        self.first: List[Tuple[int, session.Outcome]] = []
        self.reduced: Dict[object, int] = {}
        self.clean = Clean()


@pytest.fixture(scope="session")
def history() -> Iterator[History]:
    session.check_environment()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    made = History()
    with made.clean:
        yield made


@pytest.fixture(scope="session")
def expected() -> List[expectations.Expected]:
    return expectations.load()


@pytest.mark.parametrize("number", range(FIRST, FIRST + COUNT), ids="{:06d}".format)
def test_program(number: int, history: History, expected: List[expectations.Expected]) -> None:
    outcome = session.run_number(number, expected)
    found = outcome.difference
    if found is not None:
        script = Program(outcome.steps).script((), f"program {number}: {found.words()}", outcome.raised)
        # The smallest program of each kind of difference; the others as they are.
        if found.signature not in history.reduced:
            history.reduced[found.signature] = number
            reduced = Reduction(history.clean, found).reduce(outcome.steps, outcome.before, history.programs)
            script = reduced.script(f"program {number}: {found.words()}")
        if SCRIPTS:
            Path(SCRIPTS).mkdir(parents=True, exist_ok=True)
            (Path(SCRIPTS) / f"{number:06d}.py").write_text(script, encoding="utf-8")
    history.programs.append(outcome.steps)
    if outcome.repeatable and found is None and len(history.first) < REPLAYS:
        outcome.before = None
        history.first.append((number, outcome))
    if found is not None:
        pytest.fail(found.words(), pytrace=False)


@pytest.mark.parametrize("position", range(REPLAYS), ids="{:03d}".format)
def test_replay(position: int, history: History, expected: List[expectations.Expected]) -> None:
    if position >= len(history.first):
        pytest.skip("this process has run fewer programs")
    number, before = history.first[position]
    parted = session.run_number(number, expected).parted(before)
    assert parted is None, f"program {number} has another result late in the process: {parted}"
