"""The manual method, automated: a large skip first, then op_range and a smaller skip, until one operator is left."""

import json
import os
import shutil
import subprocess
import sys
from typing import Any, List, Optional, Sequence, Tuple

from maca_tools.accuracy import record_dir, report, verdict
from maca_tools.accuracy.errors import AccuracyError
from maca_tools.accuracy.names import parse

_FIRST_SKIP = 15
_REPRODUCER = '''"""Runs {name} again on both devices, from the inputs recorded beside this file."""

import os
import sys

from maca_tools.accuracy import replay

sys.exit(replay.main(os.path.dirname(os.path.abspath(__file__)), {name!r}, {device0!r}, {device1!r}))
'''


class _Runs:
    """Runs of the script, each pair with its records and report in a folder of its own."""

    def __init__(self, script: str, devices: Tuple[str, str], output: str, seed: int, arguments: Sequence[str]) -> None:
        self._script, self._devices, self._output = script, devices, output
        self._seed, self._arguments = seed, list(arguments)
        self.step = 0

    def pair(self, what: str, **record: Any) -> Tuple[str, str, str]:
        self.step += 1
        folder = os.path.join(self._output, f"step{self.step}")
        print(f"bisect: step {self.step}: {what}", flush=True)
        sides = []
        for side, device in enumerate(self._devices):
            place = os.path.join(folder, f"side{side}")
            shutil.rmtree(place, ignore_errors=True)
            settings = {
                "script": self._script,
                "device": device,
                "arguments": self._arguments,
                "seed": self._seed,
                "record": {"output_dir": place, **record},
            }
            environment = dict(os.environ)
            package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            environment["PYTHONPATH"] = os.pathsep.join(
                part for part in (package, environment.get("PYTHONPATH")) if part
            )
            done = subprocess.run(
                [sys.executable, "-m", "maca_tools.accuracy.run_script", json.dumps(settings)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if done.returncode != 0:
                tail = "\n".join(done.stdout.splitlines()[-15:])
                raise AccuracyError(f"{self._script} failed on {device} (exit code {done.returncode}):\n{tail}")
            sides.append(place)
        return sides[0], sides[1], folder


def _first_bad(folder: str, result: report.Result) -> Tuple[Optional[str], Optional[str], Optional[str]]:
    """(the last good operator before it, the first that is off, the one after it) in the order of the run."""
    with open(os.path.join(folder, report.NAME + ".jsonl"), encoding="utf-8") as file:
        operators = [json.loads(line) for line in file]
    good: Optional[str] = None
    for index, operator in enumerate(operators):
        if operator["verdict"] in (verdict.WRONG, verdict.PASSED_ON):
            following = next((later["name0"] for later in operators[index + 1 :] if later["name0"]), None)
            return good, operator["name0"], following
        if operator["verdict"] in (verdict.SAME, verdict.CLOSE) and operator["name0"]:
            good = operator["name0"]
    return good, None, None


def run(
    script: str, device0: str, device1: str, output: str, skip: Optional[int], seed: int, arguments: Sequence[str]
) -> int:
    """0 if the devices agree, 1 if an operator was found; the folder `culprit` has its inputs and reproduce.py."""
    if not os.path.isfile(script):
        raise AccuracyError(f"{script} is not a file")
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as error:
        raise AccuracyError(f"{output} cannot be written: {error}") from error
    runs = _Runs(os.path.abspath(script), (device0, device1), output, seed, arguments)
    width = _FIRST_SKIP if skip is None else skip
    limits: List[Optional[str]] = []
    name: Optional[str] = None
    while True:
        level = 1 if width else 2
        what = f"skip={width}" + (f", op_range={limits}" if limits else ", the whole run")
        # The whole run in full may not fit the disk; its summaries do.
        side0, side1, folder = runs.pair(what, record_level=1 if not limits else level, op_range=limits, skip=width)
        result = report.generate(side0, side1, folder, keep_lines=True)
        if width == 0:
            name = result.culprit.name0 if result.culprit is not None else None
            if name is None and limits:
                # What was off in the coarse steps was only passed on or rounding: look at all of it once.
                limits = []
                continue
            break
        good, bad, following = _first_bad(folder, result)
        if bad is None:
            # The operators that were passed over may hold it still, and the last stretch has no one after it.
            width, limits = 0, []
            continue
        print(f"bisect: good up to {good or 'the start'}, off at {bad}", flush=True)
        limits = [good, following]
        if limits == [None, None]:
            limits = []
        width //= 4
    if name is None:
        print("bisect: no operator makes an error of its own")
        return 0
    return _save(runs, name, output, device0, device1)


def _save(runs: _Runs, name: str, output: str, device0: str, device1: str) -> int:
    full = parse(name)
    assert full is not None
    wanted = [name, str(full._replace(way="fwd", again=0))]
    side0, side1, folder = runs.pair(f"inputs of {name}", record_level=2, op_list=wanted)
    result = report.generate(side0, side1, folder)
    culprit = os.path.join(output, "culprit")
    shutil.rmtree(culprit, ignore_errors=True)
    os.makedirs(culprit)
    for stream in record_dir.streams(side0).values():
        for entry in stream.entries:
            if str(entry.name) in wanted:
                for part in entry.parts:
                    shutil.copy(stream.path(entry, part), culprit)
    for path in result.files:
        shutil.copy(path, culprit)
    with open(os.path.join(culprit, "reproduce.py"), "w", encoding="utf-8") as file:
        file.write(_REPRODUCER.format(name=name, device0=device0, device1=device1))
    print(f"bisect: the operator is {name}")
    if result.culprit is not None:
        print(f"bisect: {result.culprit.reason}")
    print(f"bisect: its inputs and reproduce.py are in {culprit}")
    return 1
