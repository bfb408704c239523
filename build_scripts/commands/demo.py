"""``demo``: build, install into an environment of its own, and run tests/demo/demo.py there."""

import argparse
from pathlib import Path
from typing import Any

from ..products import distribution
from ..progress import note
from ..quality import environment
from ..releases import CHECKOUT, REQUIREMENTS
from . import options


def configure(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="build the wheels, install them, and train two CUDA programs on real data"
    )
    options.add_release(parser)
    options.add_output(parser)
    parser.add_argument(
        "--results", type=Path, default=CHECKOUT / "demo-output", metavar="DIR", help="where plots and figures go"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    table, release, wheel = options.chosen(arguments, to_run=True)
    note(f"torch {release.torch} for Python {wheel.python}, CUDA {release.cuda}")
    built = distribution.build(table, release, wheel, arguments.output, arguments.given)
    name = f"demo-{release.torch}-{wheel.python_tag}"
    requirements = [REQUIREMENTS / "demo.txt"]
    program = environment.obtain(name, wheel.python, built.wheels, requirements, beside=release.beside)
    note(f"Running tests/demo/demo.py in {program.parent.parent}")
    arguments.results.mkdir(parents=True, exist_ok=True)
    return environment.run([str(program), "tests/demo/demo.py", "--output", str(arguments.results)], CHECKOUT)
