"""``index``: make wheels/ installable by name."""

import argparse
from typing import Any

from . import index, options
from .progress import note


def configure(commands: Any) -> None:
    parser = commands.add_parser("index", help="write a package index over the wheels, for pip install --index-url")
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    root = index.build(arguments.output.resolve())
    note("Use it with: python -m pip install --index-url " + root.as_uri() + " torch")
    print(root.as_uri())
    return 0
