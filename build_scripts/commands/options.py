"""Command-line options that several commands share."""

import argparse
from pathlib import Path
from typing import Tuple

from .. import platforms, python_names, releases
from ..errors import FactoryError
from ..releases import CHECKOUT, Release, Table, UpstreamWheel


def add_release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--torch", metavar="VERSION", help="torch release (default: the newest for that Python)")
    parser.add_argument(
        "--python", metavar="VERSION", help="Python that the wheel is for, as 3.10 (default: the running one)"
    )
    add_architecture(parser)
    parser.add_argument(
        "--from", dest="given", type=Path, metavar="PATH", help="upstream's wheel, or its folder, instead of a download"
    )


def add_architecture(parser: argparse.ArgumentParser) -> None:
    names = [architecture.name for architecture in platforms.architectures()]
    parser.add_argument("--arch", metavar="NAME", help=f"the wheels' processor: {', '.join(names)} (default: this one)")


def add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="sources of a companion that is in no index, a folder or an archive: build its wheel too",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", type=Path, default=CHECKOUT / "wheels", metavar="DIR", help="where wheels go (default: wheels/)"
    )


def chosen(arguments: argparse.Namespace, to_run: bool = False) -> Tuple[Table, Release, UpstreamWheel]:
    """The row of the table that --torch, --python and --arch name. ``to_run``: it has to be one that runs here."""
    table = releases.load()
    python = python_names.parse(arguments.python)
    architecture = platforms.architecture(arguments.arch)
    if to_run and architecture.is_foreign:
        raise FactoryError(
            f"Wheels for {architecture.name} do not run on this machine.",
            "Build them with `make wheels ARCH=...`, and run this command on a machine with that processor.",
        )
    release = table.release(arguments.torch) if arguments.torch else table.newest_for(python, architecture.name)
    return table, release, release.wheel_for(python, architecture.name)
