"""``python -m arrangements`` in tests/conformity: cases FIRST to FIRST+COUNT in one process."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import List, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from arrangements.comparison import TOLERANCE, compare
from arrangements.draws import Draw
from arrangements.operators import OPERATORS

PROGRESS = 1000  # cases


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="arrangements", description=__doc__)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case (default: 0)")
    parser.add_argument("--count", type=int, default=5000, metavar="N", help="how many (default: 5000)")
    parser.add_argument("--only", action="append", choices=sorted(OPERATORS), metavar="NAME", help="one operator")
    parser.add_argument("--show", action="store_true", help="print each case before it runs")
    arguments = parser.parse_args(words)
    if "PYTORCH_DEFAULT_NCHW" in os.environ:
        print("PYTORCH_DEFAULT_NCHW is set: images lie in upstream's order.")
    warnings.simplefilter("ignore")
    names, differences, compared = sorted(arguments.only or OPERATORS), 0, 0
    for number in range(arguments.first, arguments.first + arguments.count):
        draw = Draw(number, list(TOLERANCE))
        name = draw.of(names)
        function, given = OPERATORS[name](draw)
        case = f"{number} {name}: {'; '.join(map(str, given))}"
        if arguments.show:
            print(case, flush=True)
        found = compare(draw, function, given)
        compared += found is not None
        for words_of_one in found or ():
            differences += 1
            print(f"{case}\n    {words_of_one}", flush=True)
        done = number - arguments.first + 1
        if done % PROGRESS == 0:
            print(f"{done} of {arguments.count} cases, {differences} differences", file=sys.stderr, flush=True)
    print(f"torch {torch.__version__}: {arguments.count} cases, {compared} compared, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
