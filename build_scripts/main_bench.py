"""``bench``: every program of tests/benchmarks in the test environment of a release."""

import argparse
from typing import Any

from . import environment, main_test, options, sdk_wheel, torch_wheel
from .progress import note
from .releases import CHECKOUT


def configure(commands: Any) -> None:
    parser = commands.add_parser("bench", help="run the benchmarks with the built wheels")
    options.add_release(parser)
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    table, release, wheel = options.chosen(arguments)
    torch = torch_wheel.build(table, release, wheel, arguments.output, arguments.given)
    sdk = sdk_wheel.build(table.sdk, arguments.output)
    program = main_test.test_environment(release, wheel, sdk, torch)
    failed = 0
    for script in sorted((CHECKOUT / "tests" / "benchmarks").glob("*.py")):
        note(f"== {script.name}, torch {release.torch}")
        failed += bool(environment.run([str(program), str(script)], CHECKOUT))
    return 1 if failed else 0
