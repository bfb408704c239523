"""``test``: build what is missing, then every test, in an environment per release."""

import argparse
import datetime
import os
import signal
import sys
from pathlib import Path
from typing import Any, List, NamedTuple, Sequence, Tuple

from packaging.version import Version

from .. import cache, platforms, python_names, releases
from ..errors import FactoryError
from ..factory import index, native
from ..products import distribution, given_source, torch_wheel, verify
from ..quality import emulation, environment, given, lint, pythons
from ..quality.suites import Suite, Suites
from ..releases import CHECKOUT, Release, Table, UpstreamWheel
from . import options

# Areas that test the factory, and the SDK: once. Every other folder of tests/ runs in each release's environment.
ONCE = ("build_scripts",)
# What is built for another processor, run by an emulator: on demand and in turns, as building it takes many minutes.
EMULATED, EMULATED_PROCESSOR = ("emulated",), "aarch64"
IN_FIRST = ("cu_bridge",)
# The operator sample, with libraries that have nothing of csrc/fast: for one of the two newest releases, by date.
PLAIN = ("conformity/test_sweep_sample.py",)
# Of the releases that are not in every run one is taken each day, with what its users meet first.
SHORT = ("api", "extensions", "conformity/test_sweep_sample.py")
# Long files that say little of one release that they do not say of another: each run takes each in one of its releases.
BY_TURNS = (
    "extensions/test_just_in_time.py",
    "macatorch/fast/test_backward_thread.py",
    "macatorch/test_bad_input.py",
    "api/test_parallel_training.py",
    "api/test_aot_inductor.py",
    "api/test_device_asserts.py",
    "extensions/test_layout.py",
    "macatorch/test_exit.py",
    "api/test_backends.py",
    "accuracy/test_ranks.py",
    "extensions/test_cmake.py",
    "accuracy/test_planted_errors.py",
    "api/test_checked_memory.py",
    "accuracy/test_files.py",
    "macatorch/test_other_processors.py",
    "api/test_symmetric_memory.py",
    "demo/test_demo.py",
    "macatorch/dispatch/test_failed_captures.py",
    "conformity/test_fuzz_sample.py",
    "macatorch/ops/test_dense_products.py",
    "macatorch/fast/test_onednn_products.py",
    "macatorch/fast/test_allocator_cache.py",
    "api/tools/test_memory_tools.py",
)
# The container image: once, with the factory's tools; it builds the wheels for its own Python.
IMAGE = ("docker",)


def configure(commands: Any) -> None:
    parser = commands.add_parser("test", help="build what is missing, lint, and run all tests")
    parser.add_argument(
        "--torch",
        action="append",
        metavar="VERSION",
        help="these releases, whole (may be repeated; default: every_run of the table, and a part for one other a day)",
    )
    parser.add_argument(
        "--from", dest="given", type=Path, metavar="PATH", help="folder with upstream's wheels, instead of downloads"
    )
    parser.add_argument("--no-lint", action="store_true", help="leave the linters out")
    parser.add_argument("pytest", nargs="*", help="further arguments for pytest, after --")
    parser.add_argument("--emulated", action="store_true", help="also build wheels for aarch64 and run them under qemu")
    options.add_output(parser)
    options.add_sources(parser)
    parser.set_defaults(run=run)


def available_wheel(release: Release) -> UpstreamWheel:
    """The release's wheel for the Python of its test runs, else for the oldest that this machine has."""
    wheels = releases.wheels_for(release.wheels, title=f"torch {release.torch}")
    for wheel in sorted(wheels, key=lambda w: (w.python != release.tested, python_names.order(w.python))):
        try:
            pythons.find(wheel.python)
        except FactoryError:
            continue
        return wheel
    there = ", ".join(wheel.python for wheel in wheels)
    raise FactoryError(
        f"torch {release.torch} needs one of Python {there}, and this machine has none.", "Install one of them."
    )


class Turn(NamedTuple):
    """What takes part for a day besides the releases of every run: one of the others, or the emulated processor."""

    short: List[Tuple[Release, UpstreamWheel]]
    emulated: bool


def todays(table: Table, day: datetime.date) -> Turn:
    """Each release of which this machine has a Python in turns, then the emulated processor."""
    others: List[Tuple[Release, UpstreamWheel]] = []
    for release in table.releases:
        if release.every_run or release.trial:
            continue
        try:
            others.append((release, available_wheel(release)))
        except FactoryError as problem:
            print(f"torch {release.torch} is never this machine's release of the day: {problem}")
    number = day.toordinal() % (len(others) + 1)
    return Turn(others[number : number + 1], emulated=number == len(others))


def left_to_others(number: int, count: int, day: datetime.date) -> List[str]:
    """The files of BY_TURNS that the others of `count` releases take this day, and not the one at place `number`."""
    return [name for i, name in enumerate(BY_TURNS) if (i + day.toordinal()) % count != number]


def run(arguments: argparse.Namespace) -> int:
    # Started in the background by a shell, it would leave Ctrl-C ignored to the tests, some of which send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    table = releases.load()
    wanted = arguments.torch or [release.torch for release in table.releases if release.every_run]
    chosen: List[Tuple[Release, UpstreamWheel]] = [(r, available_wheel(r)) for r in map(table.release, wanted)]
    today = datetime.date.today()
    short, emulated = Turn([], emulated=False) if arguments.torch else todays(table, today)
    # Who names a release, or a test, means all of it.
    turns = len(chosen) if not (arguments.torch or arguments.pytest) else 1
    suites = Suites(arguments.pytest)
    if not arguments.no_lint:
        suites.check("lint", lint.run())
    programs = _environments(table, chosen + short, arguments, suites)
    areas = sorted(
        path.name
        for path in (CHECKOUT / "tests").iterdir()
        if path.is_dir() and path.name not in ONCE + EMULATED + IN_FIRST + IMAGE
    )
    todo = [
        Suite(f"torch {release.torch}", str(program), areas, left_out=left_to_others(i, turns, today))
        for i, (release, program) in enumerate(programs[: len(chosen)])
    ]
    todo += [Suite(f"torch {release.torch}", str(program), SHORT) for release, program in programs[len(chosen) :]]
    # The longest first: at the end none is left that one processor works at while the other one has nothing.
    todo.insert(0, Suite("the SDK", str(programs[0][1]), IN_FIRST))
    todo += [Suite("the image", sys.executable, IMAGE), Suite("the factory", sys.executable, ONCE)]
    if arguments.given:
        os.environ["MACATORCH_UPSTREAM"] = str(arguments.given)
    with cache.lock("test-plain"), cache.work_folder("test-plain") as folder:
        todo.append(_plain(table, chosen, programs, arguments, folder))
        # Who names a test does not wait for another processor's wheels.
        if arguments.emulated or (emulated and not arguments.pytest):
            todo.append(_emulated(table, chosen, folder / "wheels", suites))
        suites.run(todo)
    if suites.failed:
        print("failed: " + ", ".join(suites.failed))
        print("\n".join(suites.short_failures()))
    print(suites.summary())
    return 1 if suites.failed else 0


def _plain(
    table: Table,
    chosen: Sequence[Tuple[Release, UpstreamWheel]],
    programs: Sequence[Tuple[Release, Path]],
    arguments: argparse.Namespace,
    folder: Path,
) -> Suite:
    newest = sorted(range(len(chosen)), key=lambda i: Version(chosen[i][0].torch))[-2:]
    number = newest[datetime.date.today().toordinal() % len(newest)]
    release, wheel = chosen[number]
    program, libraries = programs[number][1], folder / "libraries"
    torch_wheel.leave_libraries(table, release, wheel, arguments.given, libraries, fast=())
    path = environment.overlay(program, libraries, folder / "site")
    variables = {"PYTHONPATH": str(path), "CONFORMITY_FAST_PARTS": ""}
    return Suite(f"torch {release.torch} without fast", str(program), PLAIN, variables)


def _emulated(table: Table, chosen: Sequence[Tuple[Release, UpstreamWheel]], folder: Path, suites: Suites) -> Suite:
    """The suite of the emulated processor, with wheels for it of the newest release that has some."""
    target = platforms.architecture(EMULATED_PROCESSOR)
    here = [wheel for release, _wheel in chosen for wheel in release.wheels if wheel.python == emulation.PYTHON]
    wheels = sorted((w for w in here if w.architecture == target.name), key=lambda w: Version(w.version))
    try:
        native.compiler(target)
        emulation.emulator(target)
    except FactoryError as problem:
        print(f"no wheels for {target.name}: {problem}")
    else:
        for wheel in wheels[-1:]:
            # None of the user's files is for that processor.
            _verify(distribution.build(table, table.release(wheel.version), wheel, folder, None), table, suites)
    return Suite("aarch64", sys.executable, EMULATED, {"MACATORCH_WHEELS": str(folder)})


def _environments(
    table: Table, chosen: Sequence[Tuple[Release, UpstreamWheel]], arguments: argparse.Namespace, suites: Suites
) -> List[Tuple[Release, Path]]:
    sources = given_source.parse(table, arguments.source)
    distributions = []
    for r, w in chosen:
        built = distribution.build(table, r, w, arguments.output, arguments.given)
        fitting = {name: path for name, path in sources.items() if name in r.companions}
        distributions.append(built._replace(given=given.build(table, r, w, arguments.output, fitting)))
    index.build(arguments.output)
    programs = []
    for (release, wheel), built in zip(chosen, distributions):
        _verify(built, table, suites)
        programs.append((release, environment.for_tests("test", release, wheel, built.wheels)))
    return programs


def _verify(built: distribution.Distribution, table: Table, suites: Suites) -> None:
    for path in (built.torch, *built.companions, *built.given):
        suites.check(f"verify {path.name}", verify.verify(path, table, built.sdk))
