"""Command-line options that several commands share."""

import argparse
from pathlib import Path
from typing import Tuple

from .. import releases
from ..releases import CHECKOUT, Release, Table, UpstreamWheel


def add_release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--torch", metavar="VERSION", help="torch release (default: the newest for that Python)")
    parser.add_argument(
        "--python", metavar="VERSION", help="Python that the wheel is for, as 3.10 (default: the running one)"
    )
    parser.add_argument(
        "--from", dest="given", type=Path, metavar="PATH", help="upstream's wheel, or its folder, instead of a download"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", type=Path, default=CHECKOUT / "wheels", metavar="DIR", help="where wheels go (default: wheels/)"
    )


def chosen(arguments: argparse.Namespace) -> Tuple[Table, Release, UpstreamWheel]:
    """The row of the table that --torch and --python name."""
    table = releases.load()
    python = releases.python_version(arguments.python)
    release = table.release(arguments.torch) if arguments.torch else table.newest_for(python)
    return table, release, release.wheel_for(python)
