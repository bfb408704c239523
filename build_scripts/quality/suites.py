"""Runs of pytest over folders of tests/, two at once, and what they say together."""

import os
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import List, Mapping, NamedTuple, Optional, Sequence

from .. import cache
from ..releases import CHECKOUT
from . import environment


class Suite(NamedTuple):
    """One run of pytest: folders of tests/ with one interpreter."""

    title: str
    program: str
    folders: Sequence[str]  # or files
    variables: Mapping[str, str] = {}
    left_out: Sequence[str] = ()  # files of these folders that another suite of this run takes


class Suites:
    """Runs pytest several times, two suites at once where there are two cores, and adds up what they say."""

    def __init__(self, extra: Sequence[str]) -> None:
        self.extra, self.counts, self.started = list(extra), Counter(), time.monotonic()  # type: ignore[var-annotated]
        self.failed: List[str] = []
        self.failures: List[str] = []  # what failed, each with its suite, for the end of a long log
        self.printing, self.adding = threading.Lock(), threading.Lock()
        # A debugger wants the terminal for itself.
        alone = any(word in ("-s", "--pdb", "--trace", "--capture=no") for word in self.extra)
        self.lanes = 1 if alone else min(2, os.cpu_count() or 1)

    def run(self, suites: Sequence[Suite]) -> None:
        """Run them all; the first ones are started first, so the longest belongs in front."""
        with ThreadPoolExecutor(self.lanes) as pool:
            for done in [pool.submit(self._run, suite) for suite in suites]:
                done.result()

    def _run(self, suite: Suite) -> None:
        there = [
            f"tests/{folder}"
            for folder in suite.folders
            if folder.endswith(".py") or any((CHECKOUT / "tests" / folder).glob("**/test_*.py"))
        ]
        if not there:
            return
        self._say(suite, f"== {' '.join(there)}")
        if suite.left_out:
            self._say(suite, f"== another release's turn today: {' '.join(suite.left_out)}")
        report = cache.folder("reports") / f"{suite.title.replace(' ', '-')}.xml"
        command = [
            suite.program,
            "-m",
            "pytest",
            *there,
            *(f"--ignore=tests/{name}" for name in suite.left_out),
            f"--junitxml={report}",
            "-o",
            "junit_family=xunit2",
            *self.extra,
        ]
        if report.exists():
            report.unlink()
        variables = {
            key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL")
        }
        # The account of the devices' memory is the machine's; suites must not see each other's tensors in it.
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="maca-test-", dir=memory) as state:
            variables["MACA_STATE_DIR"] = state
            variables.update(suite.variables)
            if self.lanes == 1:
                status = environment.run(command, CHECKOUT, variables)
            else:
                # Two suites share the cores: a thread that waits must not spin.
                variables.setdefault("OMP_WAIT_POLICY", "PASSIVE")
                status = environment.run(command, CHECKOUT, variables, lambda line: self._say(suite, line))
        self._say(suite, f"== {time.monotonic() - started:.0f} s")
        with self.adding:
            self._add(suite, report)
            # 5: no test was collected, as with -k.
            if status not in (0, 5):
                self.failed.append(suite.title)

    def _say(self, suite: Suite, line: str) -> None:
        with self.printing:
            print(f"{suite.title} | {line}" if self.lanes > 1 else line, flush=True)

    def _add(self, suite: Suite, report: Path) -> None:
        try:
            root = ElementTree.parse(str(report)).getroot()
        except (OSError, ElementTree.ParseError):
            self.counts["errors"] += 1
            self.failures.append(f"{suite.title}: pytest left no report")
            return
        for part in root.iter("testsuite"):
            facts = {key: int(part.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")}
            self.counts["failed"] += facts["failures"]
            self.counts["errors"] += facts["errors"]
            self.counts["skipped"] += facts["skipped"]
            self.counts["passed"] += facts["tests"] - facts["failures"] - facts["errors"] - facts["skipped"]
        for case in root.iter("testcase"):
            for problem in [*case.findall("failure"), *case.findall("error")]:
                name = f"{case.get('classname')}::{case.get('name')}"
                self.failures.append(f"{suite.title}: {name}: {_first_line(problem.get('message'))}")

    def check(self, title: str, failures: Sequence[str]) -> None:
        """A check that is no pytest suite counts as one test."""
        self.counts["failed" if failures else "passed"] += 1
        if failures:
            self.failed.append(title)
            self.failures += [f"{title}: {failure}" for failure in failures]
            for failure in failures:
                print(f"{title}: {failure}")

    def short_failures(self, limit: int = 20) -> List[str]:
        """The first `limit` failures, a line of at most 200 characters each, and how many more there are."""
        lines = [line if len(line) <= 200 else f"{line[:197]}..." for line in self.failures[:limit]]
        more = len(self.failures) - limit
        return lines + ([f"and {more} more"] if more > 0 else [])

    def summary(self) -> str:
        """One line in pytest's words."""
        order = ("failed", "passed", "skipped", "errors")
        words = ", ".join(f"{self.counts[key]} {key}" for key in order if self.counts[key] or key == "passed")
        return f" {words} in {time.monotonic() - self.started:.2f}s ".center(80, "=")


def _first_line(message: Optional[str]) -> str:
    return next((line.strip() for line in (message or "").splitlines() if line.strip()), "no message")
