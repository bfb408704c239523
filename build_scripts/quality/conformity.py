"""Running test files in child processes that may crash, hang or leave the device with an error.

What a child did is in its record (tests/conformity/recorder.py). When it dies, the test that it was at gets the outcome
``crashed`` or ``timeout``, and a new child goes on behind it. Records lie in the cache, under the digest of the wheels.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .. import cache
from ..progress import Bar, note
from ..releases import CHECKOUT

TESTS = CHECKOUT / "tests" / "conformity"
SWEEP, FUZZ = "sweep", "fuzz"
# Files of our own, in tests/conformity.
OWN = (SWEEP, FUZZ)
# One more, beside Triton's own tests.
RANDOM = "triton_random"
# The tests that --failed runs again.
AGAIN = "again.json"
# Statuses of a child: of pytest, and those of recorder.py.
FINISHED, INTERRUPTED, ANOTHER_PROCESS, TIME_IS_OVER = (0, 1, 5), 2, (86, 87), 88
POLL = 0.2
LAST_LINES = 15
FATAL = ("Fatal Python error", "terminate called")
FAILURES = ("failed", "crashed", "timeout", "missing kernel")

Row = Dict[str, Any]
_running: "Set[subprocess.Popen[bytes]]" = set()


@dataclass(frozen=True)
class Settings:
    """What holds for a whole run."""

    program: Path
    results: Path
    upstream: Optional[Path]
    variables: Dict[str, str]
    skip: Sequence[Tuple[str, str]]
    timeout: float
    failed: bool = False
    seconds: Optional[float] = None
    # Of files that have a limit of their own: seconds where ``seconds`` is None.
    limits: Mapping[str, float] = field(default_factory=dict)
    leave_out: Sequence[str] = ()
    # Of files whose tests have several ranks: how many devices there are.
    devices: Mapping[str, int] = field(default_factory=dict)
    # Files whose tests want a process each.
    alone: Sequence[str] = ()
    # Variables of single files, over those of all.
    file_variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def seconds_of(self, file: str) -> Optional[float]:
        return self.limits.get(file) if self.seconds is None else self.seconds


@dataclass(frozen=True)
class Unit:
    """Part of a test file. ``file`` is a path below upstream's tests, or one of ``OWN``."""

    file: str
    shard: str

    def record(self, results: Path) -> Path:
        return folder_of(results, self.file) / f"{self.shard.replace('/', '-of-')}.jsonl"


def folder_of(results: Path, file: str) -> Path:
    return results / file.replace("/", "-").replace(".py", "")


def scripts_of(results: Path) -> Path:
    """Where the fuzzer leaves a script for each difference."""
    return folder_of(results, FUZZ) / "scripts"


def split(files: Sequence[str], shard: str, jobs: int) -> List[Unit]:
    """Each file's part ``shard``, once more divided among the jobs."""
    part, parts = (int(word) for word in shard.split("/"))
    return [Unit(file, f"{part + parts * job}/{parts * jobs}") for file in files for job in range(jobs)]


def rows_of(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for line in file:
                # The last line of a machine that lost its power may be half a line.
                if line.endswith("}\n"):
                    yield json.loads(line)


def outcomes(folder: Path) -> Dict[str, Row]:
    """Each test's last outcome."""
    return {row["test"]: row for row in rows_of(folder) if "outcome" in row}


def pending(folder: Path) -> Set[str]:
    """Tests that --failed is to run again and that have no outcome yet."""
    path = folder / AGAIN
    names: List[str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return set(names) - set(outcomes(folder))


def collected(folder: Path) -> int:
    """How many tests the file has; 0 where it was never collected."""
    return max((int(row["collected"]) for row in rows_of(folder) if "collected" in row), default=0)


@dataclass
class Progress:
    """One bar for all jobs."""

    bar: Bar
    total: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def more(self, tests: int) -> None:
        with self.lock:
            self.total += tests
            self.bar.set_total(self.total)

    def done(self, tests: int) -> None:
        with self.lock:
            self.bar.advance(tests)


class Child:
    """One pytest process for a unit, and what its record says."""

    def __init__(self, unit: Unit, settings: Settings, first: bool, seconds: Optional[float]) -> None:
        self.unit, self.settings, self.first, self.seconds = unit, settings, first, seconds
        self.record = unit.record(settings.results)
        self.record.parent.mkdir(parents=True, exist_ok=True)
        mend(self.record)
        self.log = self.record.with_suffix(".log")
        self.position = self.record.stat().st_size if self.record.exists() else 0
        self.running: Optional[str] = None
        self.selected: Optional[int] = None
        self.finished = 0
        self.since = time.monotonic()
        self.timed_out = False
        self.unimportable = False

    def command(self) -> Tuple[List[str], Path]:
        if self.unit.file in (*OWN, RANDOM):
            root, path = TESTS, TESTS / f"{self.unit.file}.py"
        else:
            assert self.settings.upstream is not None
            root, path = self.settings.upstream, self.settings.upstream / self.unit.file
        options = ["-p", "recorder", "-p", "no:cacheprovider", "-p", "no:warnings", "-c", os.devnull]
        options += [f"--rootdir={root}", "--tb=short", "--capture=sys", "-q", "-o", "xfail_strict=True"]
        return [str(self.settings.program), "-m", "pytest", *options, str(path)], root

    def variables(self) -> Dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "PYTHONPATH")}
        skip = json.dumps(list(self.settings.skip))
        own = {"CONFORMITY_RECORD": str(self.record), "CONFORMITY_SHARD": self.unit.shard, "CONFORMITY_SKIP": skip}
        own["CONFORMITY_LEAVE_OUT"] = json.dumps(list(self.settings.leave_out))
        if self.unit.file in self.settings.devices:
            own["MACA_DEVICE_COUNT"] = str(self.settings.devices[self.unit.file])
        if self.unit.file in self.settings.alone:
            own["CONFORMITY_ALONE"] = "1"
        if self.unit.file == FUZZ:
            own["FUZZ_SCRIPTS"] = str(scripts_of(self.settings.results))
        if self.settings.failed:
            own["CONFORMITY_ONLY"] = str(self.record.parent / AGAIN)
        if self.seconds is not None:
            own["CONFORMITY_SECONDS"] = str(self.seconds)
        paths = [str(TESTS)]
        if self.unit.file not in (*OWN, RANDOM) and self.settings.upstream is not None:
            # Upstream runs a file as a program: it may import others from its folder.
            paths.append(str((self.settings.upstream / self.unit.file).parent))
        of_file = self.settings.file_variables.get(self.unit.file, {})
        return {**kept, **self.settings.variables, **of_file, **own, "PYTHONPATH": os.pathsep.join(paths)}

    def run(self, progress: Progress) -> int:
        """Start it and wait. Returns its status, negative for a signal."""
        command, root = self.command()
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                command, cwd=str(root), env=self.variables(), stdout=log, stderr=log, start_new_session=True
            )
            _running.add(process)
            try:
                while process.poll() is None:
                    time.sleep(POLL)
                    self._read(progress)
                    if self.running is not None and time.monotonic() - self.since > self.settings.timeout:
                        self.timed_out = True
                        break
            finally:
                end_group(process)
                _running.discard(process)
        self._read(progress)
        return process.returncode

    def _read(self, progress: Progress) -> None:
        """Take in what the record says by now."""
        if not self.record.exists():
            return
        with self.record.open(encoding="utf-8") as file:
            file.seek(self.position)
            for line in iter(file.readline, ""):
                if not line.endswith("\n"):
                    break
                self.position += len(line.encode("utf-8"))
                row = json.loads(line)
                if "start" in row:
                    self.running, self.since = row["start"], time.monotonic()
                elif "outcome" in row:
                    self.running, self.finished = None, self.finished + 1
                    self.unimportable = self.unimportable or row["test"].endswith("(import)")
                    progress.done(1)
                elif "selected" in row:
                    self.selected = row["selected"]
                    if self.first:
                        progress.more(row["left"])

    def last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        # Behind pytest's dots, maybe.
        fatal = [n for n, line in enumerate(lines) if any(sign in line for sign in FATAL)]
        start = fatal[-1] if fatal else max(0, len(lines) - LAST_LINES)
        return "\n".join(lines[start : start + LAST_LINES])


def mend(record: Path) -> None:
    """Cut off half a line, and give the test that a killed run was at back to the next one."""
    if not record.exists():
        return
    text = record.read_bytes()
    if text and not text.endswith(b"\n"):
        record.write_bytes(text[: text.rfind(b"\n") + 1])


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a child with whatever it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def append(record: Path, **row: Any) -> None:
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def run_unit(unit: Unit, settings: Settings, progress: Progress) -> None:
    """Run a unit to its end, with as many children as it takes."""
    record = unit.record(settings.results)
    with cache.lock(f"conformity-{settings.results.name}-{record.parent.name}-{record.stem}"):
        _run_unit(unit, settings, progress)


def _run_unit(unit: Unit, settings: Settings, progress: Progress) -> None:
    first, started, seconds = True, time.monotonic(), settings.seconds_of(unit.file)
    while True:
        left = None if seconds is None else seconds - (time.monotonic() - started)
        if left is not None and left <= 0:
            return
        child = Child(unit, settings, first, left)
        status = child.run(progress)
        first = first and child.selected is None
        if child.running is not None:
            if child.timed_out:
                outcome, message = "timeout", f"no result within {settings.timeout:.0f} s"
            else:
                outcome, message = "crashed", f"status {status}\n{child.last_words()}"
            append(child.record, test=child.running, outcome=outcome, message=message, seconds=0.0)
            progress.done(1)
            note(f"  {outcome}: {child.running}")
        elif status in ANOTHER_PROCESS:
            continue
        elif status == TIME_IS_OVER:
            return
        elif status in FINISHED or (status == INTERRUPTED and child.unimportable):
            append(child.record, complete=unit.shard)
            return
        else:
            # Before the first test, after the last one, or nothing could be collected.
            place = "import" if child.selected is None else "exit"
            outcome = "crashed" if status < 0 else "failed"
            name = f"{unit.file} ({place})"
            append(
                child.record, test=name, outcome=outcome, message=f"status {status}\n{child.last_words()}", seconds=0.0
            )
            note(f"  {outcome}: {name}")
            return


def run(units: Sequence[Unit], settings: Settings, jobs: int, progress: Progress) -> None:
    """All units, ``jobs`` at a time."""
    waiting = list(units)
    errors: List[Optional[BaseException]] = []
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                if not waiting or errors:
                    return
                unit = waiting.pop(0)
            try:
                started = time.monotonic()
                run_unit(unit, settings, progress)
                counts = count(outcomes(folder_of(settings.results, unit.file)))
                said = ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))
                note(f"  {unit.file} {unit.shard} in {time.monotonic() - started:.0f} s; so far {said}")
            except BaseException as error:  # handed to the main thread
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)
    finally:
        # Interrupted: children are in sessions of their own and would go on.
        errors.append(None)
        for process in list(_running):
            end_group(process)
    errors.remove(None)
    for error in errors:
        if error is not None:
            raise error


def count(found: Dict[str, Row]) -> Dict[str, int]:
    counts: Dict[str, int] = {}
    for row in found.values():
        counts[row["outcome"]] = counts.get(row["outcome"], 0) + 1
    return counts
