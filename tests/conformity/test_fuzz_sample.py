"""What `make test` takes of the fuzzer: programs that nobody has run before, chosen by the date.

FUZZ_DATE=YYYYMMDD runs another day's.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS, REPLAYS = 300, 60


def test_the_programs_of_the_day_show_no_difference_that_is_not_listed(tmp_path: Path) -> None:
    day = os.environ.get("FUZZ_DATE") or datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d")
    # A process of its own: what calls leave behind is the programs' alone, and a crash is told as one.
    command = [sys.executable, "-m", "fuzzer", f"--first={day}000", f"--count={PROGRAMS}", f"--replays={REPLAYS}"]
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    log = tmp_path / "fuzz.log"
    with log.open("w") as file:
        done = subprocess.run(
            [*command, "--once"], cwd=HERE, env=variables, stdout=file, stderr=subprocess.STDOUT, timeout=1500
        )
    said = log.read_text(encoding="utf-8")
    assert done.returncode == 0, f"FUZZ_DATE={day}: status {done.returncode}\n{said[-12000:]}"
    assert f"{PROGRAMS} programs" in said
