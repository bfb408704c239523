"""``fetch``: upstream's wheel into the cache, for a build without a network later."""

import argparse
from typing import Any

from ..factory import upstream
from . import options


def configure(commands: Any) -> None:
    parser = commands.add_parser("fetch", help="fetch and check upstream's wheel, and keep it in the cache")
    options.add_release(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    _, _, wheel = options.chosen(arguments)
    print(upstream.obtain(wheel, arguments.given))
    return 0
