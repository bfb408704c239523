"""python -m maca_tools.accuracy: report, inspect and bisect."""

import argparse
import json
import os
import sys
from typing import List, Optional

from maca_tools.accuracy.errors import AccuracyError


def main(arguments: Optional[List[str]] = None) -> int:
    """0: no culprit; 1: an operator differs; 2: the command could not be carried out."""
    parser = argparse.ArgumentParser(prog="python -m maca_tools.accuracy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser("report", help="compare two records")
    report.add_argument("dir0", metavar="DIR0", help="the reference: errors are relative to its values")
    report.add_argument("dir1", metavar="DIR1")
    report.add_argument("-o", "--output", default="./", metavar="OUT", help="folder of the report (default: here)")
    inspect = commands.add_parser("inspect", help="list a record, or one operator of it")
    inspect.add_argument("dir", metavar="DIR")
    inspect.add_argument("name", nargs="?", help="full name of an operator, for its tensors and stack")
    bisect = commands.add_parser("bisect", help="run a script on both devices and narrow down to one operator")
    bisect.add_argument("script", metavar="SCRIPT")
    bisect.add_argument("--device0", default="cpu", help="the reference (default: cpu)")
    bisect.add_argument("--device1", default="cuda")
    bisect.add_argument(
        "-o", "--output", default="./bisect", metavar="OUT", help="folder of records, report and reproducer"
    )
    bisect.add_argument(
        "--skip", type=int, default=None, help="operators to pass over in the first runs (default: chosen by length)"
    )
    bisect.add_argument("--seed", type=int, default=0)
    bisect.epilog = "Arguments of the script follow after --; {device} in them becomes the device."
    given = sys.argv[1:] if arguments is None else arguments
    # By hand: argparse cannot tell a second list of positional arguments behind options.
    split = given.index("--") if "--" in given else len(given)
    chosen = parser.parse_args(given[:split])
    try:
        if chosen.command == "report":
            from maca_tools.accuracy.compare import report as reports

            result = reports.generate(chosen.dir0, chosen.dir1, chosen.output)
            print(result.text())
            return 0 if result.culprit is None else 1
        if chosen.command == "inspect":
            return _inspect(chosen.dir, chosen.name)
        from maca_tools.accuracy.compare import bisect as bisection

        return bisection.run(
            chosen.script, chosen.device0, chosen.device1, chosen.output, chosen.skip, chosen.seed, given[split + 1 :]
        )
    except AccuracyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of a pipe has seen enough; Python would complain once more while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _inspect(folder: str, name: Optional[str]) -> int:
    from maca_tools.accuracy.data import record_dir
    from maca_tools.accuracy.data.summary import TensorSummary

    found = False
    for key, stream in record_dir.streams(folder).items():
        if name is None:
            print(
                f"{key or '(main)'}: level {stream.level}, torch {stream.meta.get('torch')}, "
                f"{len(stream.entries)} operators"
            )
        for warning in stream.warnings:
            print(f"  note: {warning}")
        for entry in stream.entries:
            if name is None:
                shapes = {
                    part: " ".join(f"{dtype}{list(shape)}" for dtype, shape in tensors)
                    for part, tensors in entry.signature
                }
                print(f"  {entry.name}  {shapes.get('input', '(none)')} -> {shapes.get('output', '(none)')}"[:300])
            elif str(entry.name) == name:
                found = True
                for part in entry.parts:
                    content = stream.load(entry, part)
                    print(f"{part}: {content.problem}" if content.problem else f"{part}:")
                    for path, value in content.values.items():
                        if isinstance(value, TensorSummary):
                            text = json.dumps({k: v for k, v in value.as_dict().items() if k != "sketch"})
                        elif hasattr(value, "shape"):
                            low, high = (
                                (float(value.min()), float(value.max()))
                                if value.numel() and not value.is_complex()
                                else (0.0, 0.0)
                            )
                            text = f"{value.dtype} {list(value.shape)} min {low:g} max {high:g}"
                        else:
                            text = repr(value)[:200]
                        print(f"  {path}: {text}")
                    if part == entry.parts[-1]:
                        print("stack, innermost first:\n  " + "\n  ".join(content.stack[::-1]))
    if name is not None and not found:
        raise AccuracyError(f"{folder} holds no operator {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
