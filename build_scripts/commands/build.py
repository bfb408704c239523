"""``build``: upstream's wheels in, ours out."""

import argparse
from typing import Any

from .. import platforms
from ..errors import FactoryError
from ..factory import native
from ..products import distribution, given_source, sdk_wheel, torch_wheel
from ..progress import note
from ..quality import given
from . import options


def configure(commands: Any) -> None:
    parser = commands.add_parser("build", help="build the torch wheel of a release, and the wheels that it needs")
    options.add_release(parser)
    options.add_output(parser)
    options.add_sources(parser)
    parser.add_argument(
        "--fast",
        default="on",
        metavar="PARTS",
        help=f"what the operators have that is only for speed: on (default), off, or some of {','.join(native.FAST)}",
    )
    parser.add_argument("--no-sdk", action="store_true", help="leave the SDK wheel out")
    parser.add_argument("--no-companions", action="store_true", help="leave the companions (triton) out")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    parts = native.fast_parts(arguments.fast)
    table, release, wheel = options.chosen(arguments)
    sources = given_source.parse(table, arguments.source)
    if sources and (arguments.no_companions or arguments.no_sdk):
        raise FactoryError("--source needs the other wheels.", "Leave out --no-companions and --no-sdk.")
    note(f"torch {release.torch} for Python {wheel.python} on {wheel.architecture}, CUDA {release.cuda}")
    built = [torch_wheel.build(table, release, wheel, arguments.output, arguments.given, fast=parts)]
    if not arguments.no_companions:
        built += distribution.build_companions(table, release, wheel, arguments.output, arguments.given)
    if not arguments.no_sdk:
        target = platforms.architecture(wheel.architecture)
        built.append(sdk_wheel.build(table.sdk, arguments.output, architecture=target))
    built += given.build(table, release, wheel, arguments.output, sources)
    for path in built:
        print(path)
    return 0
