"""``verify``: is this wheel what it says?"""

import argparse
from pathlib import Path
from typing import Any

from .. import releases
from ..products import verify
from ..progress import note


def configure(commands: Any) -> None:
    parser = commands.add_parser(
        "verify", help="check a built wheel: symbols, device code, search paths, RECORD, patches"
    )
    parser.add_argument("wheel", type=Path, nargs="+")
    parser.add_argument("--sdk", type=Path, help="the SDK wheel (default: the one that the wheel requires, beside it)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    table = releases.load()
    failed = 0
    for wheel in arguments.wheel:
        failures = verify.verify(wheel, table, arguments.sdk)
        for failure in failures:
            print(f"{wheel.name}: {failure}")
        note(f"{wheel.name}: {'sound' if not failures else f'{len(failures)} failures'}")
        failed += bool(failures)
    return 1 if failed else 0
