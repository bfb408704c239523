"""``index``: make wheels/ installable by name."""

import argparse
from typing import Any

from .. import releases
from ..factory import dependencies, index
from ..progress import note
from . import options


def configure(commands: Any) -> None:
    parser = commands.add_parser("index", help="write a package index over the wheels, for pip install --index-url")
    options.add_output(parser)
    parser.add_argument(
        "--no-dependencies", action="store_true", help="leave out what the wheels require from elsewhere"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    output = arguments.output.resolve()
    others = []
    if not arguments.no_dependencies:
        others = dependencies.fetch(index.own_wheels(output), output / dependencies.FOLDER, releases.load())
    root = index.build(output, others)
    note("Use it with: python -m pip install --index-url " + root.as_uri() + " torch")
    print(root.as_uri())
    return 0
