"""``list``: the releases that can be built, and what is there already."""

import argparse
import json
from typing import Any

from packaging.version import Version

from .. import releases
from ..factory import upstream
from ..products import torch_wheel
from ..releases import Table
from . import options


def configure(commands: Any) -> None:
    parser = commands.add_parser("list", help="list the releases that can be built")
    options.add_output(parser)
    parser.add_argument("--markdown", action="store_true", help="the table of versions, as docs/releases.md has it")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def markdown(table: Table) -> str:
    """The table of versions: a row for each release, from what the tables of releases and companions say."""
    columns = (
        "torch",
        "Python",
        "API of",
        "architectures",
        "triton",
        "torchvision",
        "torchaudio",
        "flash_attn",
        "apex",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for release in sorted(table.releases, key=lambda r: Version(r.torch)):
        origin = {companion.name: "ours" for companion in table.built_companions(release)}
        origin.update({companion.name: "given" for companion in table.given_companions(release)})
        companions = [
            f"{release.companions[name]} ({origin.get(name, 'upstream')})" if name in release.companions else "–"
            for name in columns[4:]
        ]
        pythons = ", ".join(dict.fromkeys(wheel.python for wheel in release.wheels))
        architectures = ", ".join(dict.fromkeys(wheel.architecture for wheel in release.wheels))
        name = f"{release.torch} (trial)" if release.trial else release.torch
        cells = [name, pythons, f"CUDA {release.cuda}", architectures, *companions]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> int:
    if arguments.markdown:
        print(markdown(releases.load()))
        return 0
    version = releases.sdk_version()
    rows = []
    for release in sorted(releases.load().releases, key=lambda r: Version(r.torch)):
        for wheel in release.wheels:
            name = torch_wheel.file_name(release, wheel, version)
            rows.append(
                {
                    "torch": release.torch,
                    "python": wheel.python,
                    "architecture": wheel.architecture,
                    "cuda": release.cuda,
                    "wheel": name,
                    "fetched": upstream.path_in_cache(wheel).exists(),
                    "built": (arguments.output / name).exists(),
                }
            )
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(f"{'torch':8} {'python':7} {'processor':9} {'cuda':6} {'fetched':8} {'built':6} wheel")
    for row in rows:
        state = ["yes" if row[key] else "no" for key in ("fetched", "built")]
        chosen = f"{row['torch']:8} {row['python']:7} {row['architecture']:9} {row['cuda']:6}"
        print(f"{chosen} {state[0]:8} {state[1]:6} {row['wheel']}")
    return 0
