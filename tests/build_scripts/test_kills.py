"""`make wheels` under kill -9 at some random moments; `python -m tests.build_scripts.kills` tries a hundred."""

import datetime
import random
from pathlib import Path

import pytest

from . import kills


def test_a_kill_at_a_random_moment_leaves_nothing_half_written_and_the_next_run_works(
    tmp_path: Path, c_compiler: None
) -> None:
    generator = random.Random(datetime.date.today().toordinal())
    workshop = kills.Workshop(tmp_path)
    for moment in kills.moments(2, generator):
        try:
            workshop.check(moment, generator.choice)
        except kills.Problem as problem:
            pytest.fail(f"{moment}: {problem}")
