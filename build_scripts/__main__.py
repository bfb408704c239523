"""The command line: one sub-command per file of ``commands``."""

import argparse
import os
import shlex
import signal
import sys
from typing import List, Optional

from . import commands
from .errors import FactoryError, describe_os_error


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m build_scripts", description="The wheel factory of the MXMACA distribution."
    )
    added = result.add_subparsers(dest="command", metavar="COMMAND")
    for command in commands.found():
        command.configure(added)
    return result


def spread(arguments: List[str]) -> List[str]:
    """The arguments, with ``--args TEXT`` replaced by the words of TEXT.

    Words are divided and quoted as in a shell, and nothing in them is run or expanded: the Makefile hands on what its
    user gave as ARGS.
    """
    if "--args" not in arguments[:-1]:
        return arguments
    at = arguments.index("--args")
    try:
        words = shlex.split(arguments[at + 1])
    except ValueError as error:
        raise FactoryError(
            f"ARGS cannot be divided into words: {error}: {arguments[at + 1]}", "Close each quote."
        ) from None
    return [*arguments[:at], *words, *arguments[at + 2 :]]


def main(arguments: Optional[List[str]] = None) -> int:
    """Run one command. Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        options = parser().parse_args(spread(sys.argv[1:] if arguments is None else arguments))
    except FactoryError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.command is None:
        parser().print_help()
        return 2
    try:
        return int(options.run(options))
    except FactoryError as error:
        print(f"error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted; what is finished stays in the cache, the next run goes on from there", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not fail once more while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
