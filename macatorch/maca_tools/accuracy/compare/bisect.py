"""The manual method, automated: a large skip first, then op_range and a smaller skip, until one operator is left.

Summaries find the stretch, whole tensors the operator: only from those gen_report can run a suspect again and tell its
own error from the one that it passes on. In low precision the first operator that is off may have done no more than
round; then the whole run is recorded in full, or, where that is too large, its suspects, a few at a time and in order.
"""

import json
import os
import shutil
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from maca_tools.accuracy import verdict
from maca_tools.accuracy.compare import report
from maca_tools.accuracy.data import record_dir
from maca_tools.accuracy.errors import AccuracyError
from maca_tools.accuracy.names import parse

_FIRST_SKIP = 15
_JUMP = 4.0
# Bytes of one side of a record in full, from the shapes in the summaries.
_MOST_BYTES = 2 << 30
_SUSPECT = (verdict.WRONG, verdict.PASSED_ON, verdict.NOT_COMPARED)
_REPRODUCER = '''"""Runs {name} again on both devices, from the inputs recorded beside this file."""

import os
import sys

from maca_tools.accuracy.compare import replay

sys.exit(replay.main(os.path.dirname(os.path.abspath(__file__)), {name!r}, {device0!r}, {device1!r}))
'''


class _Pair(NamedTuple):
    """Both sides of one step, what their comparison says, operator by operator, and the folder of it all."""

    side0: str
    side1: str
    result: report.Result
    operators: List[Dict[str, Any]]


class Server:
    """The process that runs scripts, each run in a fork of it; may serve several calls of run. See run_script."""

    def __init__(self) -> None:
        self._process: Any = None

    def run(self, settings: Dict[str, Any]) -> int:
        """The exit code of one run. See run_script, Note [A process a run]."""
        if self._process is None or self._process.poll() is not None:
            environment = dict(os.environ)
            package = os.path.abspath(__file__)
            for _ in __name__.split("."):
                package = os.path.dirname(package)
            environment["PYTHONPATH"] = os.pathsep.join(
                part for part in (package, environment.get("PYTHONPATH")) if part
            )
            self._process = subprocess.Popen(
                [sys.executable, "-m", "maca_tools.accuracy.compare.run_script"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        self._process.stdin.write(json.dumps(settings) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not hasattr(os, "fork"):
            self._process.wait()
        return int(answer) if answer.strip() else self._process.wait() or -1

    def close(self) -> None:
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._process = None


class _Runs:
    """Runs of the script, each pair with its records and report in a folder of its own."""

    def __init__(
        self, server: Server, script: str, devices: Tuple[str, str], output: str, seed: int, arguments: Sequence[str]
    ) -> None:
        self._server = server
        self._script, self._devices, self._output = script, devices, output
        self._seed, self._arguments = seed, list(arguments)
        self.step = 0

    def pair(self, what: str, **record: Any) -> _Pair:
        self.step += 1
        folder = os.path.join(self._output, f"step{self.step}")
        print(f"bisect: step {self.step}: {what}", flush=True)
        sides = []
        for side, device in enumerate(self._devices):
            place = os.path.join(folder, f"side{side}")
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(folder, exist_ok=True)
            log = os.path.join(folder, f"side{side}.log")
            code = self._server.run(
                {
                    "script": self._script,
                    "device": device,
                    "arguments": self._arguments,
                    "seed": self._seed,
                    "log": log,
                    "record": {"output_dir": place, **record},
                }
            )
            if code != 0:
                with open(log, encoding="utf-8", errors="replace") as file:
                    tail = "".join(file.readlines()[-15:])
                raise AccuracyError(f"{self._script} failed on {device} (exit code {code}):\n{tail}")
            sides.append(place)
        result = report.generate(sides[0], sides[1], folder, lines_only=True)
        with open(os.path.join(folder, report.NAME + ".jsonl"), encoding="utf-8") as file:
            operators = [json.loads(line) for line in file]
        return _Pair(sides[0], sides[1], result, operators)


def _first_bad(pair: _Pair) -> Tuple[Optional[str], Optional[str], Optional[str]]:
    """(the operator before it, the first that is far off, the one after it) in the order of the run.

    Far off is what exceeds its threshold and _JUMP times all errors before it; in low precision rounding alone adds up
    to the threshold. Without such a one it is the operator with the largest jump.
    """
    most = 0.0
    best: Tuple[float, int] = (0.0, -1)
    operators = [operator for operator in pair.operators if operator["name0"]]
    for index, operator in enumerate(operators):
        error = float(operator["error"])
        if operator["verdict"] in (verdict.WRONG, verdict.PASSED_ON):
            jump = error / most if most > 0.0 else float("inf")
            if jump > best[0]:
                best = (jump, index)
            if jump >= _JUMP:
                break
        if error < float("inf"):
            most = max(most, error)
    index = best[1]
    if index < 0:
        return None, None, None
    before = operators[index - 1]["name0"] if index else None
    after = operators[index + 1]["name0"] if index + 1 < len(operators) else None
    return before, operators[index]["name0"], after


def run(
    script: str,
    device0: str,
    device1: str,
    output: str,
    skip: Optional[int],
    seed: int,
    arguments: Sequence[str],
    server: Optional[Server] = None,
) -> int:
    """0 if the devices agree, 1 if an operator was found; the folder `culprit` has its inputs and reproduce.py."""
    if not os.path.isfile(script):
        raise AccuracyError(f"{script} is not a file")
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as error:
        raise AccuracyError(f"{output} cannot be written: {error}") from error
    used = server or Server()
    runs = _Runs(used, os.path.abspath(script), (device0, device1), output, seed, arguments)
    try:
        found, size = _narrow(runs, _FIRST_SKIP if skip is None else skip)
        found = found or _whole(runs, size)
    finally:
        if server is None:
            used.close()
    if found is None:
        print("bisect: no operator makes an error of its own")
        return 0
    _save(found, output, device0, device1)
    return 1


def _narrow(runs: _Runs, width: int) -> Tuple[Optional[_Pair], int]:
    """The pair whose culprit it is, or None where the first operator that is off only passes on or rounds.

    And about how many bytes one side of the whole run is in full.
    """
    limits: List[Optional[str]] = []
    size = 0
    while width > 0 or limits:
        what = f"skip={width}" + (f", op_range={limits}" if limits else ", the whole run")
        pair = runs.pair(what, record_level=1, op_range=limits, skip=width)
        size = size or sum(_sizes(pair.side0).values()) * (width + 1)
        before, bad, following = _first_bad(pair)
        if bad is None:
            return None, size
        print(f"bisect: off at {bad}, after {before or 'the start'}", flush=True)
        if width == 0:
            return _in_full(runs, pair), size
        limits = [before, following] if before or following else []
        width //= 4
    return None, size


def _whole(runs: _Runs, size: int) -> Optional[_Pair]:
    if size <= _MOST_BYTES // 2:
        pair = runs.pair("skip=0, the whole run in full", record_level=2)
        return pair if pair.result.culprit is not None else None
    return _in_full(runs, runs.pair("skip=0, the whole run", record_level=1))


def _in_full(runs: _Runs, summaries: _Pair) -> Optional[_Pair]:
    """Record the suspects of a pair of summaries in full, in their order, until one of them is the culprit."""
    sizes = _sizes(summaries.side0)
    wanted: List[str] = []
    total = 0
    suspects = [op for op in summaries.operators if op["verdict"] in _SUSPECT and op["name0"] and op["name1"]]
    for number, operator in enumerate(suspects):
        names = []
        for text in (operator["name0"], operator["name1"]):
            full = parse(text)
            assert full is not None
            # What a backward operator computes depends on what its forward one read.
            names += [str(full._replace(way="fwd", again=0)), text]
        new = [text for text in dict.fromkeys(names) if text not in wanted]
        wanted += new
        total += sum(sizes.get(text, 0) for text in new)
        if total < _MOST_BYTES and number + 1 < len(suspects):
            continue
        pair = runs.pair(f"{len(wanted)} operators in full, up to {operator['name0']}", record_level=2, op_list=wanted)
        if pair.result.culprit is not None:
            return pair
        wanted, total = [], 0
    return None


def _sizes(folder: str) -> Dict[str, int]:
    """Bytes of each operator in full, from the shapes that a record at any level lists; 8 bytes an element at most."""
    sizes: Dict[str, int] = {}
    for stream in record_dir.streams(folder).values():
        for entry in stream.entries:
            elements = 0
            for _, tensors in entry.signature:
                for _, shape in tensors:
                    count = 1
                    for length in shape:
                        count *= length
                    elements += count
            sizes[str(entry.name)] = elements * 8
    return sizes


def _save(found: _Pair, output: str, device0: str, device1: str) -> None:
    assert found.result.culprit is not None
    name = found.result.culprit.name0
    full = parse(name)
    assert full is not None
    wanted = (name, str(full._replace(way="fwd", again=0)))
    culprit = os.path.join(output, "culprit")
    shutil.rmtree(culprit, ignore_errors=True)
    os.makedirs(culprit)
    for stream in record_dir.streams(found.side0).values():
        for entry in stream.entries:
            if stream.key == found.result.culprit.stream and str(entry.name) in wanted:
                for part in entry.parts:
                    shutil.copy(stream.path(entry, part), culprit)
    with open(found.result.files[0], encoding="utf-8") as lines:
        report.write(found.result, lines, found.side0, found.side1, culprit)
    with open(os.path.join(culprit, "reproduce.py"), "w", encoding="utf-8") as file:
        file.write(_REPRODUCER.format(name=name, device0=device0, device1=device1))
    print(f"bisect: the operator is {name}")
    print(f"bisect: {found.result.culprit.reason}")
    print(f"bisect: its inputs and reproduce.py are in {culprit}")
