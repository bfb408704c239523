"""``python -m fuzzer`` in tests/conformity: programs FIRST to FIRST+COUNT in one process."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import List, Optional

os.environ.setdefault("PYTORCH_DEFAULT_NCHW", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from fuzzer import expectations, session
from fuzzer.clean import Clean
from fuzzer.program import Step
from fuzzer.reduction import Reduced, Reduction


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzzer", description=__doc__)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first program (default: 0)")
    parser.add_argument("--count", type=int, default=300, metavar="N", help="how many (default: 300)")
    parser.add_argument(
        "--replays", type=int, default=100, metavar="N", help="of the first ones are run again at the end"
    )
    parser.add_argument("--show", action="store_true", help="print each program")
    parser.add_argument("--no-reduction", action="store_true", help="print differences as they are")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write a script for each difference")
    parser.add_argument("--once", action="store_true", help="reduce one difference of each kind and callee")
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATTERN",
        help="differences to pass over, while they are being repaired",
    )
    arguments = parser.parse_args(words)
    session.check_environment()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    expected = expectations.load()
    return run(arguments, expected)


def run(arguments: argparse.Namespace, expected: List[expectations.Expected]) -> int:
    history: List[List[Step]] = []
    outcomes: List[session.Outcome] = []
    seen: Counter[object] = Counter()
    callees: Counter[str] = Counter()
    started, differing, steps, raised, ignored = time.monotonic(), 0, 0, 0, 0
    reasons: Counter[str] = Counter()
    with Clean() as clean:
        for number in range(arguments.first, arguments.first + arguments.count):
            outcome = session.run_number(number, expected)
            steps, raised = steps + outcome.ran, raised + len(outcome.raised)
            callees.update(step.callee for step in outcome.steps)
            reasons.update(entry.sentence for entry in outcome.expected)
            if arguments.show:
                print(f"# {number}\n" + "\n".join(step.text for step in outcome.steps), flush=True)
            if outcome.difference is not None and any(
                re.search(p, outcome.difference.words()) for p in arguments.ignore
            ):
                ignored += 1
            elif outcome.difference is not None:
                differing += 1
                found = outcome.difference
                key = (found.kind, found.step.callee)
                seen[key] += 1
                print(f"program {number}: {found.words()}", flush=True)
                if arguments.output:
                    with (arguments.output / "rows.jsonl").open("a") as file:
                        row = {
                            "number": number,
                            "kind": found.kind,
                            "callee": found.step.callee,
                            "dtypes": found.dtypes,
                            "where": found.where,
                        }
                        file.write(
                            json.dumps(
                                {**row, "cpu": found.cpu[:500], "cuda": found.cuda[:500], "step": found.step.text[:800]}
                            )
                            + "\n"
                        )
                if not arguments.no_reduction and (not arguments.once or seen[key] == 1):
                    reduced = Reduction(clean, found).reduce(outcome.steps, outcome.before, history)
                    show(reduced, number, found.words(), arguments.output)
            history.append(outcome.steps)
            if len(outcomes) < arguments.replays:
                outcome.before = None
                outcomes.append(outcome)
        for position, before in enumerate(outcomes):
            parted = (
                session.run_number(arguments.first + position, expected).parted(before) if before.repeatable else None
            )
            if parted is not None:
                print(f"program {arguments.first + position}: replay: another result late in the process: {parted}")
                differing += 1
    seconds = time.monotonic() - started
    print(
        f"{arguments.count} programs, {steps} calls of {len(callees)} kinds, {raised} refused by both or the CPU, in {seconds:.0f} s"
    )
    print(f"{differing} with a difference; {sum(reasons.values())} expected ones, {ignored} ignored")
    for sentence, times in reasons.most_common():
        print(f"  {times} {sentence}")
    return 1 if differing else 0


def show(reduced: Reduced, number: int, words: str, output: Optional[Path]) -> None:
    script = reduced.script(f"program {number}: {words}")
    print(script, flush=True)
    if output:
        (output / f"{number}.py").write_text(script, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
