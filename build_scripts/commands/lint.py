"""``lint``: all linters."""

import argparse
from typing import Any

from ..quality import lint


def configure(commands: Any) -> None:
    parser = commands.add_parser(
        "lint", help="run ruff, mypy, clang-format, clang-tidy, shellcheck, and check the limits of sizes"
    )
    parser.add_argument("--fix", action="store_true", help="rewrite what can be rewritten, then look")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.fix:
        lint.reformat()
    failures = lint.run()
    for failure in failures:
        print(failure)
    return 1 if failures else 0
