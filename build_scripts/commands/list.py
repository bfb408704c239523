"""``list``: the releases that can be built, and what is there already."""

import argparse
import json
from typing import Any

from packaging.version import Version

from .. import releases
from ..factory import torch_wheel, upstream
from . import options


def configure(commands: Any) -> None:
    parser = commands.add_parser("list", help="list the releases that can be built")
    options.add_output(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    version = releases.sdk_version()
    rows = []
    for release in sorted(releases.load().releases, key=lambda r: Version(r.torch)):
        for wheel in release.wheels:
            name = torch_wheel.file_name(release, wheel, version)
            rows.append(
                {
                    "torch": release.torch,
                    "python": wheel.python,
                    "cuda": release.cuda,
                    "wheel": name,
                    "fetched": upstream.path_in_cache(wheel).exists(),
                    "built": (arguments.output / name).exists(),
                }
            )
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(f"{'torch':8} {'python':7} {'cuda':6} {'fetched':8} {'built':6} wheel")
    for row in rows:
        state = ["yes" if row[key] else "no" for key in ("fetched", "built")]
        print(f"{row['torch']:8} {row['python']:7} {row['cuda']:6} {state[0]:8} {state[1]:6} {row['wheel']}")
    return 0
