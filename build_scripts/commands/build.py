"""``build``: upstream's wheel in, ours out."""

import argparse
from typing import Any

from ..factory import sdk_wheel, torch_wheel
from ..progress import note
from . import options


def configure(commands: Any) -> None:
    parser = commands.add_parser("build", help="build the torch wheel of a release, and the SDK wheel that it needs")
    options.add_release(parser)
    options.add_output(parser)
    parser.add_argument("--no-sdk", action="store_true", help="leave the SDK wheel out")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    table, release, wheel = options.chosen(arguments)
    note(f"torch {release.torch} for Python {wheel.python}, CUDA {release.cuda}")
    built = [torch_wheel.build(table, release, wheel, arguments.output, arguments.given)]
    if not arguments.no_sdk:
        built.append(sdk_wheel.build(table.sdk, arguments.output))
    for path in built:
        print(path)
    return 0
