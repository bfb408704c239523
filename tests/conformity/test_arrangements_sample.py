"""What `make test` takes of the cases in any arrangement of memory: some that nobody has run before, by the date.

ARRANGEMENTS_DATE=YYYYMMDD runs another day's.
"""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Tuple

import pytest

HERE = Path(__file__).resolve().parent
CASES = 1000


@pytest.mark.parametrize("layouts", [(), ("PYTORCH_DEFAULT_NLC", "PYTORCH_DEFAULT_NDHWC")], ids=["images", "all"])
def test_operators_compute_the_same_in_any_arrangement(layouts: Tuple[str, ...]) -> None:
    day = os.environ.get("ARRANGEMENTS_DATE") or datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d")
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTORCH_DEFAULT_NCHW")}
    done = subprocess.run(
        [sys.executable, "-m", "arrangements", f"--first={day}0000", f"--count={CASES}"],
        cwd=HERE, env={**variables, **dict.fromkeys(layouts, "1")}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, f"ARRANGEMENTS_DATE={day}\n{done.stdout[-12000:]}\n{done.stderr[-3000:]}"
    said = re.search(rf"{CASES} cases, (\d+) compared, 0 differences", done.stdout)
    assert said and int(said.group(1)) > 0.9 * CASES, done.stdout
