"""Running test files in child processes that may crash, hang or leave the device with an error.

What a child did is in its record (tests/conformity/recorder.py). When it dies, the test that it was at gets the outcome
``crashed`` or ``timeout``, and a new child goes on behind it. Records lie in the cache, under the digest of the wheels.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, ContextManager, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

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
# Seconds that a rank which failed a test gives the others, which may wait for it.
GRACE = 60.0
# Outcomes of one test on several ranks, the worst first.
WORST = ("missing kernel", "failed", "unexpected success", "skipped", "expected failure", "passed", "skipped by us")
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
    # Files whose tests keep their order where the time is limited.
    in_order: Sequence[str] = ()
    # Files that do something of their own when they are run as programs, before their tests.
    as_main: Sequence[str] = ()
    # Files of which what fails is run once more, in a process for each test, as upstream's runner does.
    once_more: Sequence[str] = ()
    # Files whose tests call the toolkit's commands, and the folder of those.
    call_tools: Sequence[str] = ()
    tools: Optional[Path] = None
    # Variables of single files, over those of all.
    file_variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Of files that want a folder (TEMP_DIR): the folders in it.
    file_folders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Files that want to be started as programs, one for each device.
    programs: Sequence[str] = ()
    # pytest's expression of marks: which tests are run.
    marks: str = ""

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

    def place(self) -> Tuple[Path, Path]:
        """The folder that the tests are in, and the file."""
        if self.unit.file in (*OWN, RANDOM):
            return TESTS, TESTS / f"{self.unit.file}.py"
        assert self.settings.upstream is not None
        return self.settings.upstream, self.settings.upstream / self.unit.file

    def options(self) -> List[str]:
        options = ["-p", "recorder", "-p", "no:cacheprovider", "-p", "no:warnings", "-c", os.devnull]
        return [
            *options,
            f"--rootdir={self.place()[0]}",
            "--tb=short",
            "--capture=sys",
            "-q",
            "-o",
            "xfail_strict=True",
            *(["-m", self.settings.marks] if self.settings.marks else []),
        ]

    def variables(self) -> Dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "PYTHONPATH")}
        skip = json.dumps(list(self.settings.skip))
        own = {"CONFORMITY_RECORD": str(self.record), "CONFORMITY_SHARD": self.unit.shard, "CONFORMITY_SKIP": skip}
        own["CONFORMITY_LEAVE_OUT"] = json.dumps(list(self.settings.leave_out))
        if self.unit.file in self.settings.devices:
            own["MACA_DEVICE_COUNT"] = str(self.settings.devices[self.unit.file])
        if self.unit.file in self.settings.alone:
            own["CONFORMITY_ALONE"] = "1"
        if self.unit.file in self.settings.in_order:
            own["CONFORMITY_IN_ORDER"] = "1"
        if self.unit.file in self.settings.as_main:
            own["CONFORMITY_MAIN"] = "1"
        if self.unit.file in self.settings.call_tools and self.settings.tools is not None:
            own["PATH"] = os.pathsep.join([str(self.settings.tools), os.environ.get("PATH", os.defpath)])
        if self.unit.file == FUZZ:
            own["FUZZ_SCRIPTS"] = str(scripts_of(self.settings.results))
        if self.settings.failed:
            own["CONFORMITY_ONLY"] = str(self.record.parent / AGAIN)
        if self.seconds is not None:
            own["CONFORMITY_SECONDS"] = str(self.seconds)
        if self.unit.file in self.settings.file_folders:
            own["TEMP_DIR"] = str(self.new_folder())
        paths = [str(TESTS)]
        if self.unit.file not in (*OWN, RANDOM) and self.settings.upstream is not None:
            # Upstream runs a file as a program: it may import others from its folder.
            paths.append(str((self.settings.upstream / self.unit.file).parent))
        of_file = self.settings.file_variables.get(self.unit.file, {})
        return {**kept, **self.settings.variables, **of_file, **own, "PYTHONPATH": os.pathsep.join(paths)}

    def new_folder(self) -> Path:
        """An empty folder of this child's, but for the folders that its tests look for in it."""
        folder = self.record.with_suffix(".folder")
        shutil.rmtree(str(folder), ignore_errors=True)
        for name in self.settings.file_folders[self.unit.file]:
            (folder / name).mkdir(parents=True)
        return folder

    def run(self, progress: Progress) -> int:
        """Start it and wait. Returns its status, negative for a signal."""
        root, path = self.place()
        command = [str(self.settings.program), "-m", "pytest", *self.options(), str(path)]
        with self.log.open("wb") as log:
            process = start(command, root, self.variables(), log)
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


class Ranks(Child):
    """A file that is a program of several ranks, each a process that runs the same tests.

    Upstream's ``run_tests`` calls pytest in each. What a rank did is in a file beside the record; the record has a test
    when all ranks have run it, with the worst of their outcomes. After a failure all are started anew: ranks that left
    a test at different places would wait for each other in the next one.
    """

    def __init__(self, unit: Unit, settings: Settings, first: bool, seconds: Optional[float]) -> None:
        super().__init__(unit, settings, first, seconds)
        self.ranks = range(settings.devices.get(unit.file, 1))
        self.rows: List[List[Row]] = [[] for _ in self.ranks]
        self.positions = [0 for _ in self.ranks]
        self.merged = 0
        self.failed_since: Optional[float] = None
        # With which status all are ended once the record has what it needs.
        self.status: Optional[int] = None

    def rank_record(self, rank: int) -> Path:
        return self.record.with_suffix(f".rank{rank}")

    def run(self, progress: Progress) -> int:
        root, path = self.place()
        started, ended, broke = time.monotonic(), None, None
        together = {
            **self.variables(),
            "PYTEST_ADDOPTS": shlex.join(self.options()),
            "CONFORMITY_RANKS": str(len(self.ranks)),
            "WORLD_SIZE": str(len(self.ranks)),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
        }
        processes: List[subprocess.Popen[bytes]] = []
        with self.log.open("wb") as log:
            try:
                for rank in self.ranks:
                    self.rank_record(rank).write_bytes(b"")
                    own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "CONFORMITY_RECORD": str(self.rank_record(rank))}
                    command = [str(self.settings.program), str(path), "--use-pytest"]
                    processes.append(start(command, root, {**together, **own}, log))
                while True:
                    # Asked before the records are read: what ended has written all that it will.
                    statuses = [process.poll() for process in processes]
                    now = time.monotonic()
                    self._merge(now - started)
                    self._read(progress)
                    left = [status for status in statuses if status is not None]
                    broken = [status for status in left if status not in (*FINISHED, *ANOTHER_PROCESS)]
                    broke = now if broken and broke is None else broke
                    # Until the others are as far, it is not known in which test one has broken.
                    known = self.running is not None or (broke is not None and now - broke > GRACE)
                    if self.status is not None or (broken and known) or len(left) == len(processes):
                        break
                    ended = now if left and ended is None else ended
                    since = self.since if self.running is not None else ended
                    if since is not None and now - since > self.settings.timeout:
                        self.timed_out = True
                        break
                    time.sleep(POLL)
            finally:
                for process in processes:
                    end_group(process)
                    _running.discard(process)
        if self.status is not None:
            return self.status
        return next(iter([*broken, *(status for status in left if status != 0)]), 0 if not self.timed_out else -9)

    def _merge(self, seconds: float) -> None:
        """Write into the record what the ranks agree upon by now."""
        for rank in self.ranks:
            self._read_rank(rank)
        while self.status is None:
            there = [(rank, rows[self.merged]) for rank, rows in enumerate(self.rows) if len(rows) > self.merged]
            if not there:
                return
            first = there[0][1]
            if "start" not in first and len(there) < len(self.ranks):
                failed = any(row.get("outcome") in FAILURES for _, row in there)
                self.failed_since = (self.failed_since or seconds) if failed else None
                if self.failed_since is None or seconds - self.failed_since < GRACE:
                    return
            rows = together(there, len(self.ranks)) if "outcome" in first else [first]
            for row in rows:
                append(self.record, **row)
            self.merged, self.failed_since = self.merged + 1, None
            if any(row.get("outcome") in FAILURES for row in rows):
                self.status = ANOTHER_PROCESS[0]
            elif "outcome" in first and self.seconds is not None and seconds > self.seconds:
                self.status = TIME_IS_OVER

    def _read_rank(self, rank: int) -> None:
        with self.rank_record(rank).open("rb") as file:
            file.seek(self.positions[rank])
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.positions[rank] += len(line)
                self.rows[rank].append(json.loads(line))


def together(there: Sequence[Tuple[int, Row]], ranks: int) -> List[Row]:
    """The worst outcome of the ranks, and what those say that have it. Each test's, where they are out of step."""
    tests = sorted({row.get("test", "none") for _, row in there})
    if len(tests) > 1:
        message = "the ranks run different tests: " + ", ".join(tests)
        return [{"test": test, "outcome": "failed", "message": message, "seconds": 0.0} for test in tests]
    outcome = min((row["outcome"] for _, row in there), key=WORST.index)
    messages = [(rank, row["message"]) for rank, row in there if row["outcome"] == outcome]
    if len({message for _, message in messages}) == 1 and len(messages) == ranks:
        message = messages[0][1]
    else:
        missing = set(range(ranks)) - {rank for rank, _ in there}
        messages += [(rank, f"no outcome {GRACE:.0f} s later") for rank in sorted(missing)]
        message = "\n".join(f"rank {rank}: {words}" for rank, words in messages)
    seconds = max(row["seconds"] for _, row in there)
    return [{"test": tests[0], "outcome": outcome, "message": message, "seconds": seconds}]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(command: Sequence[str], root: Path, variables: Dict[str, str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(command, cwd=str(root), env=variables, stdout=log, stderr=log, start_new_session=True)
    _running.add(process)
    return process


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


def turn_of(unit: Unit, results: Path) -> ContextManager[None]:
    """While it is held, no other process runs the unit with the same wheels or takes its outcomes away."""
    record = unit.record(results)
    return cache.lock(f"conformity-{results.name}-{record.parent.name}-{record.stem}")


def run_unit(unit: Unit, settings: Settings, progress: Progress) -> None:
    """Run a unit to its end, with as many children as it takes."""
    with turn_of(unit, settings.results):
        _run_unit(unit, settings, progress)


def _run_unit(unit: Unit, settings: Settings, progress: Progress) -> None:
    first, started, seconds = True, time.monotonic(), settings.seconds_of(unit.file)
    while True:
        left = None if seconds is None else seconds - (time.monotonic() - started)
        if left is not None and left <= 0:
            return
        program = unit.file in settings.programs
        child = (Ranks if program else Child)(unit, settings, first, left)
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
        elif (status in FINISHED and (child.selected is not None or not program)) or (
            status == INTERRUPTED and child.unimportable
        ):
            if unit.file in settings.once_more and not settings.failed:
                _run_once_more(unit, settings, progress)
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


def _run_once_more(unit: Unit, settings: Settings, progress: Progress) -> None:
    """What has failed, in a process for each test. What passes there says so in its outcome."""
    record = unit.record(settings.results)
    failed = {name: row for name, row in outcomes(record.parent).items() if row["outcome"] == "failed"}
    if not failed:
        return
    results = record.with_suffix(".alone")
    shutil.rmtree(str(results), ignore_errors=True)
    alone = replace(settings, results=results, failed=True, seconds=None, limits={}, alone=[unit.file])
    folder = folder_of(results, unit.file)
    folder.mkdir(parents=True)
    (folder / AGAIN).write_text(json.dumps(sorted(failed)), encoding="utf-8")
    _run_unit(unit, alone, progress)
    for name, row in outcomes(folder).items():
        if row["outcome"] == "passed" and name in failed:
            append(record, **row, by_itself=failed[name]["message"])
            note(f"  passed by itself: {name}")


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
