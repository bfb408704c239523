"""``test``: build what is missing, then every test, in an environment per release."""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, List, NamedTuple, Sequence, Tuple

from packaging.version import Version

from . import cache, environment, index, lint, options, pythons, releases, sdk_wheel, torch_wheel, verify
from .errors import FactoryError
from .releases import CHECKOUT, Release, Table, UpstreamWheel

# Areas that test the factory, and the SDK: once. Every other folder of tests/ runs in each release's environment.
ONCE = ("build_scripts",)
IN_FIRST = ("cu_bridge",)
# The container image: once, with the factory's tools; it builds the wheels for its own Python.
IMAGE = ("docker",)
COMPANIONS = ["torchaudio", "torchvision"]  # those that the release has


def configure(commands: Any) -> None:
    parser = commands.add_parser("test", help="build what is missing, lint, and run all tests for all releases")
    parser.add_argument("--torch", action="append", metavar="VERSION", help="only these releases (may be repeated)")
    parser.add_argument(
        "--from", dest="given", type=Path, metavar="PATH", help="folder with upstream's wheels, instead of downloads"
    )
    parser.add_argument("--no-lint", action="store_true", help="leave the linters out")
    parser.add_argument("pytest", nargs="*", help="further arguments for pytest, after --")
    options.add_output(parser)
    parser.set_defaults(run=run)


def available_wheel(release: Release) -> UpstreamWheel:
    """The release's wheel for the oldest of its Pythons that this machine has."""
    for wheel in sorted(release.wheels, key=lambda w: Version(w.python)):
        try:
            pythons.find(wheel.python)
        except FactoryError:
            continue
        return wheel
    there = ", ".join(wheel.python for wheel in release.wheels)
    raise FactoryError(
        f"torch {release.torch} needs one of Python {there}, and this machine has none.", "Install one of them."
    )


class Suite(NamedTuple):
    """One run of pytest: folders of tests/ with one interpreter."""

    title: str
    program: str
    folders: Sequence[str]


class Suites:
    """Runs pytest several times, two suites at once where there are two cores, and adds up what they say."""

    def __init__(self, extra: Sequence[str]) -> None:
        self.extra, self.counts, self.started = list(extra), Counter(), time.monotonic()  # type: ignore[var-annotated]
        self.failed: List[str] = []
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
            f"tests/{folder}" for folder in suite.folders if any((CHECKOUT / "tests" / folder).glob("**/test_*.py"))
        ]
        if not there:
            return
        self._say(suite, f"== {' '.join(there)}")
        report = cache.folder("reports") / f"{suite.title.replace(' ', '-')}.xml"
        command = [
            suite.program,
            "-m",
            "pytest",
            *there,
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
            if self.lanes == 1:
                status = environment.run(command, CHECKOUT, variables)
            else:
                # Two suites share the cores: a thread that waits must not spin.
                variables.setdefault("OMP_WAIT_POLICY", "PASSIVE")
                status = environment.run(command, CHECKOUT, variables, lambda line: self._say(suite, line))
        self._say(suite, f"== {time.monotonic() - started:.0f} s")
        with self.adding:
            self._add(report)
            # 5: no test was collected, as with -k.
            if status not in (0, 5):
                self.failed.append(suite.title)

    def _say(self, suite: Suite, line: str) -> None:
        with self.printing:
            print(f"{suite.title} | {line}" if self.lanes > 1 else line, flush=True)

    def _add(self, report: Path) -> None:
        try:
            suites = ElementTree.parse(str(report)).getroot().iter("testsuite")
        except (OSError, ElementTree.ParseError):
            self.counts["errors"] += 1
            return
        for suite in suites:
            facts = {key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")}
            self.counts["failed"] += facts["failures"]
            self.counts["errors"] += facts["errors"]
            self.counts["skipped"] += facts["skipped"]
            self.counts["passed"] += facts["tests"] - facts["failures"] - facts["errors"] - facts["skipped"]

    def check(self, title: str, failures: Sequence[str]) -> None:
        """A check that is no pytest suite counts as one test."""
        self.counts["failed" if failures else "passed"] += 1
        if failures:
            self.failed.append(title)
            for failure in failures:
                print(f"{title}: {failure}")

    def summary(self) -> str:
        """One line in pytest's words."""
        order = ("failed", "passed", "skipped", "errors")
        words = ", ".join(f"{self.counts[key]} {key}" for key in order if self.counts[key] or key == "passed")
        return f" {words} in {time.monotonic() - self.started:.2f}s ".center(80, "=")


def run(arguments: argparse.Namespace) -> int:
    # Started in the background by a shell, it would leave Ctrl-C ignored to the tests, some of which send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    table = releases.load()
    wanted = arguments.torch or [release.torch for release in table.releases]
    chosen: List[Tuple[Release, UpstreamWheel]] = [(r, available_wheel(r)) for r in map(table.release, wanted)]
    suites = Suites(arguments.pytest)
    if not arguments.no_lint:
        suites.check("lint", lint.run())
    programs = _environments(table, chosen, arguments, suites)
    areas = sorted(
        path.name
        for path in (CHECKOUT / "tests").iterdir()
        if path.is_dir() and path.name not in ONCE + IN_FIRST + IMAGE
    )
    todo = [Suite(f"torch {release.torch}", str(program), areas) for release, program in programs]
    todo += [Suite("the SDK", str(programs[0][1]), IN_FIRST), Suite("the factory", sys.executable, ONCE)]
    todo.insert(1, Suite("the image", sys.executable, IMAGE))
    if arguments.given:
        os.environ["MACATORCH_UPSTREAM"] = str(arguments.given)
    suites.run(todo)
    if suites.failed:
        print("failed: " + ", ".join(suites.failed))
    print(suites.summary())
    return 1 if suites.failed else 0


def _environments(
    table: Table, chosen: Sequence[Tuple[Release, UpstreamWheel]], arguments: argparse.Namespace, suites: Suites
) -> List[Tuple[Release, Path]]:
    wheels = [torch_wheel.build(table, r, w, arguments.output, arguments.given) for r, w in chosen]
    sdk = sdk_wheel.build(table.sdk, arguments.output)
    index.build(arguments.output)
    programs = []
    for (release, wheel), built in zip(chosen, wheels):
        suites.check(f"verify {built.name}", verify.verify(built, table, sdk))
        programs.append((release, test_environment(release, wheel, sdk, built)))
    return programs


def test_environment(release: Release, wheel: UpstreamWheel, sdk: Path, torch: Path) -> Path:
    """The interpreter of the environment in which a release is tested."""
    companions = environment.companions(COMPANIONS, release.companions)
    # Both files by name: a change in either makes a new environment.
    requirements = [CHECKOUT / "requirements-demo.txt", CHECKOUT / "requirements-test.txt"]
    name = f"test-{release.torch}-{wheel.python_tag}"
    return environment.obtain(name, wheel.python, [sdk, torch], requirements, companions)
