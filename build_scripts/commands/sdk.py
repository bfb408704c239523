"""``sdk``: the SDK wheel alone."""

import argparse
from typing import Any

from .. import platforms, releases
from ..products import sdk_wheel
from . import options


def configure(commands: Any) -> None:
    parser = commands.add_parser("sdk", help="build the SDK wheel, mxmaca")
    options.add_architecture(parser)
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    print(sdk_wheel.build(releases.load().sdk, arguments.output, architecture=platforms.architecture(arguments.arch)))
    return 0
