"""A pytest plugin that writes every test's outcome to a file at once, so that a crash of the interpreter loses nothing.

The file holds one JSON object a line: ``start`` before a test, ``outcome`` after it, ``collected`` once per process.
Tests that the file knows already are left out, which is what makes a run resumable. A process in which the device has
an error ends after the test that caused it: the error is sticky, and would fail every test that follows.

    CONFORMITY_RECORD   the file
    CONFORMITY_SHARD    I/N: only tests whose name hashes into this part
    CONFORMITY_ONLY     a file with a JSON list: only these tests
    CONFORMITY_SECONDS  end after this time; the tests are then taken in an order in which any beginning is a sample
    CONFORMITY_SKIP     a JSON list of [pattern, sentence]: tests that are not run
    CONFORMITY_ALONE    each test is the only one of its process
    CONFORMITY_IN_ORDER tests keep their order where the time is limited
    CONFORMITY_MAIN     what the file does when it is run as a program, before it runs its tests, is done
    CONFORMITY_LEAVE_OUT  a JSON list of patterns: tests that count as not there
    CONFORMITY_RANKS    this process is one of so many that run the same tests together: it ends after a failure, since
                        the others may be left at another place of the test, and in no other case by itself
"""

import ast
import contextlib
import fnmatch
import gc
import glob
import inspect
import json
import os
import resource
import sys
import time
import types
import zlib
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import pytest

# Exit statuses that ask for a new process, and one that says that the time is over; none of pytest's own.
DEVICE_ERROR, TOO_LARGE, TIME_IS_OVER = 86, 87, 88
# Into how many samples a file is divided when the time is limited. Within one, tests keep their order: those of one
# class stay together.
SAMPLES = 64
LARGEST = 3 << 30
# What a launch of device code that was cut out says.
MISSING_KERNEL = "no kernel image is available"
LENGTH = 1200
# Where upstream's test class starts to say how to run the test.
REPRODUCER = "To execute this test, run the following"


def in_shard(name: str, shard: str) -> bool:
    """Whether a test belongs to part I of N; depends on its name alone."""
    part, parts = (int(word) for word in shard.split("/"))
    return zlib.crc32(name.encode()) % parts == part - 1


def sample_of(name: str) -> int:
    """Which of a file's samples a test belongs to; from other bits than its shard."""
    return (zlib.crc32(name.encode()) >> 16) % SAMPLES


def matches(name: str, pattern: str) -> bool:
    """Patterns know ``*`` and ``?``; brackets stand for themselves."""
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def known(folder: str) -> Set[str]:
    """Tests that have an outcome in any record beside ours."""
    found = set()
    for path in glob.glob(os.path.join(glob.escape(folder), "*.jsonl")):
        with open(path, encoding="utf-8") as file:
            for line in file:
                # Another process may be writing its last line.
                if line.endswith("}\n") and "outcome" in line:
                    row = json.loads(line)
                    if "outcome" in row:
                        found.add(row["test"])
    return found


def frames_alone(context: int = 1) -> List[inspect.FrameInfo]:
    """As ``inspect.stack``, without the lines of the sources."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        found.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back  # type: ignore[assignment]  # None is the end
    return found


def nothing(*_: Any, **__: Any) -> None:
    """What is done for a device that is not there."""


def quicken_test_tools() -> None:
    """Spare upstream's test tools what takes most of their time and changes no outcome.

    Those of 2.6 and later look through the stack for the running test, twice for each operator that they make arguments
    for. ``inspect.stack`` asks every module of the process about each frame: 0.13 s a look.

    They set the seed before each sample. For devices that this build has no support for torch then keeps a call for
    later, with the text of the whole stack: 2 ms a seed.
    """
    tools = sys.modules.get("torch.testing._internal.common_utils")
    if tools is None:
        return
    if getattr(tools, "inspect", None) is inspect:
        tools.inspect = types.SimpleNamespace(**{**vars(inspect), "stack": frames_alone})  # type: ignore[attr-defined]
    for name in ("torch.xpu", "torch.mtia"):
        device = sys.modules.get(name)
        if device is not None and hasattr(device, "manual_seed_all") and not device.is_available():
            device.manual_seed_all = nothing  # type: ignore[attr-defined]


def message_of(report: Any) -> str:
    """The exception's own words; with a traceback's last line where they are not enough."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        # Upstream wraps what a sample raised into an exception that names the sample.
        chain = [one for _, one, _ in getattr(report.longrepr, "chain", []) if one is not None] or [crash]
        said = [one.message.split(REPRODUCER)[0].rstrip() for one in chain]
        words = "\n".join(each[: LENGTH // len(said)] for each in said)
        return f"{words}\n{os.path.basename(crash.path)}:{crash.lineno}"
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:LENGTH]
    # --tb=native, or an error outside of any test
    return str(report.longrepr)[-LENGTH:]


class Recorder:
    def __init__(
        self, path: str, shard: str, skip: List[Tuple[str, str]], leave_out: List[str], seconds: Optional[float]
    ) -> None:
        self.path, self.shard, self.skip, self.leave_out = path, shard, skip, leave_out
        self.end = None if seconds is None else time.monotonic() + seconds
        self.only: Optional[Set[str]] = None
        if "CONFORMITY_ONLY" in os.environ:
            with open(os.environ["CONFORMITY_ONLY"], encoding="utf-8") as names:
                self.only = set(json.load(names))
        self.done = known(os.path.dirname(path))
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115  # open as long as pytest runs
        self.reports: List[Any] = []
        self.last_class: Optional[type] = None

    def write(self, **row: Any) -> None:
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: List[Any]) -> None:
        quicken_test_tools()
        items[:] = [item for item in items if not any(matches(item.nodeid, pattern) for pattern in self.leave_out)]
        mine = [item for item in items if in_shard(item.nodeid, self.shard)]
        if self.only is not None:
            mine = [item for item in mine if item.nodeid in self.only]
        left = []
        for item in mine:
            if item.nodeid in self.done:
                continue
            sentence = self._skipped(item.nodeid)
            if sentence is None:
                left.append(item)
            else:
                self.write(test=item.nodeid, outcome="skipped by us", message=sentence, seconds=0.0)
        self.write(collected=len(items), selected=len(mine), left=len(left))
        if "CONFORMITY_MAIN" in os.environ:
            for module in {item.module for item in left}:
                run_main(module)
        if self.end is not None and "CONFORMITY_IN_ORDER" not in os.environ:
            left.sort(key=lambda item: sample_of(item.nodeid))
        items[:] = left

    def _skipped(self, name: str) -> Optional[str]:
        return next((sentence for pattern, sentence in self.skip if matches(name, pattern)), None)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and f"{report.nodeid} (import)" not in self.done:
            self.write(test=f"{report.nodeid} (import)", outcome="failed", message=message_of(report), seconds=0.0)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.reports = []
        if self.end is not None and item.cls is not self.last_class:
            collect_garbage()
        self.last_class = item.cls
        self.write(start=item.nodeid)
        started = time.monotonic()
        yield
        row = self._row()
        broken = device_error(row["outcome"] == "failed")
        if broken is not None:
            missing = MISSING_KERNEL in broken or MISSING_KERNEL in row["message"]
            row["outcome"] = "missing kernel" if missing else "failed"
            row["message"] = f"{row['message']}\nleft the device with: {broken}"[-LENGTH:]
        self.write(test=item.nodeid, seconds=round(time.monotonic() - started, 3), **row)
        if broken is not None:
            self._end(DEVICE_ERROR)
        if "CONFORMITY_RANKS" in os.environ:
            if row["outcome"] == "failed":
                self._end(DEVICE_ERROR)
            return
        if self.end is not None and time.monotonic() > self.end:
            self._end(TIME_IS_OVER)
        if "CONFORMITY_ALONE" in os.environ:
            self._end(TOO_LARGE)
        if resident() > LARGEST:
            self._end(TOO_LARGE)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.reports.append(report)

    def _row(self) -> Dict[str, Any]:
        for report in self.reports:
            if report.failed:
                message = message_of(report)
                unexpected = "Unexpected success" in message
                return {"outcome": "unexpected success" if unexpected else "failed", "message": message}
        for report in self.reports:
            if report.skipped:
                expected = hasattr(report, "wasxfail")
                return {"outcome": "expected failure" if expected else "skipped", "message": message_of(report)}
        return {"outcome": "passed", "message": ""}

    def _end(self, status: int) -> None:
        self.file.close()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def collect_garbage() -> None:
    """Free what tests of another class have left in circles, such as graphs whose memory a test would count.

    Samples bring classes together that do not follow each other in the file.
    """
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):  # the next test shows what is wrong with the device
            torch.cuda.empty_cache()


def device_error(failed: bool) -> Optional[str]:
    """The error that the device is left with, if torch is loaded and has used it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    try:
        torch.cuda.synchronize()
        if failed:
            # A graph capture that was broken off leaves the generator and the allocator in the middle of it.
            torch.empty(1, device="cuda").uniform_()
            torch.cuda.empty_cache()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return None


def run_main(module: types.ModuleType) -> None:
    """Do what the module does as a program, such as choosing an allocator, but for running its tests."""
    path = str(module.__file__)
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    tree.body = [node for node in tree.body if isinstance(node, ast.If) and asks_for_main(node.test)]
    names = {**vars(module), "__name__": "__main__", "run_tests": _nothing, "get_disabled_tests": _nothing}
    exec(compile(tree, path, "exec"), names)


def asks_for_main(test: ast.expr) -> bool:
    """Whether it is `__name__ == "__main__"`."""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _nothing(*arguments: Any, **keywords: Any) -> None:
    pass


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def stand_in_for_tools() -> None:
    """A module that some of upstream's files import and use as programs only, and that needs upstream's servers."""
    name = "tools.stats.import_test_stats"
    for package in ("tools", "tools.stats"):
        sys.modules.setdefault(package, types.ModuleType(package))
    module = types.ModuleType(name)
    module.get_disabled_tests = _unused  # type: ignore[attr-defined]
    sys.modules.setdefault(name, module)


def _unused(folder: str) -> None:
    raise NotImplementedError("the list of tests that upstream's CI leaves out is not known here")


def pytest_configure(config: Any) -> None:
    stand_in_for_tools()
    path = os.environ["CONFORMITY_RECORD"]
    skip = [(pattern, sentence) for pattern, sentence in json.loads(os.environ.get("CONFORMITY_SKIP", "[]"))]
    seconds = os.environ.get("CONFORMITY_SECONDS")
    leave_out = json.loads(os.environ.get("CONFORMITY_LEAVE_OUT", "[]"))
    shard = os.environ.get("CONFORMITY_SHARD", "1/1")
    recorder = Recorder(path, shard, skip, leave_out, float(seconds) if seconds else None)
    config.pluginmanager.register(recorder, "outcome recorder")
