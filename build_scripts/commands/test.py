"""``test``: build what is missing, then every test, in an environment per release."""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any, List, Sequence, Tuple

from packaging.version import Version

from .. import releases
from ..errors import FactoryError
from ..factory import index, sdk_wheel, torch_wheel, verify
from ..quality import environment, lint, pythons
from ..quality.suites import Suite, Suites
from ..releases import CHECKOUT, Release, Table, UpstreamWheel
from . import options

# Areas that test the factory, and the SDK: once. Every other folder of tests/ runs in each release's environment.
ONCE = ("build_scripts",)
IN_FIRST = ("cu_bridge",)
# The container image: once, with the factory's tools; it builds the wheels for its own Python.
IMAGE = ("docker",)


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
        programs.append((release, environment.for_tests("test", release, wheel, sdk, built)))
    return programs
