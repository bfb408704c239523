"""Plants an error at random places, one at a time, and counts how often it is named.

nice -n 10 python tests/accuracy/planted_sweep.py [--places 20] [--seed 0] [--state sweep.jsonl] [--only report|bisect]
Each place is a line of the state file; what stands there already is not run again. The counts are printed last.
"""

import argparse
import contextlib
import io
import json
import os
import random
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import planted

from maca_tools import accuracy
from maca_tools.accuracy.__main__ import main as command
from maca_tools.accuracy.compare import bisect, report
from maca_tools.accuracy.data import record_dir

DTYPES = ("float32", "float16", "bfloat16")
WAYS = ("fwd", "bwd")


class Outcome(NamedTuple):
    """Whether the planted operator was named, and what was said."""

    named: bool
    expected: str
    text: str


def places(seed: str, dtype: str, way: str, number: int, layers: int) -> List[int]:
    """Random places, the same for the same seed."""
    there = len(planted.places(planted.Model(layers=layers)))
    return random.Random(f"{seed} {dtype} {way}").sample(range(there), number)


def expected(clean: str, place: int, way: str, layers: int) -> str:
    """The full name of a place, from the run without an error: modules are called in a known order."""
    model = planted.Model(layers=layers)
    called = [id(module) for module in planted.call_order(model)].index(id(planted.places(model)[place]))
    names = [entry.name for entry in record_dir.streams(clean)[""].entries if entry.name.way == "fwd"]
    modules = [name for name in names if name.api.startswith("torch.nn.") and name.api.count(".") == 2]
    return str(modules[called]._replace(way=way))


def record(device: str, dtype: str, folder: str, where: str = "", level: int = 2, layers: int = 12) -> str:
    """The record of one pass of a model that was made before the record began."""
    model = planted.build(device, getattr(torch, dtype), where, layers)
    with accuracy.record(output_dir=folder, record_level=level, record_stack=False):
        planted.train(model)
    return folder


def record_script(dtype: str, folder: str, layers: int = 12) -> str:
    """The clean record of the whole script, as bisect makes it: the making of the model has numbers too."""
    with accuracy.record(output_dir=folder, record_level=1, record_stack=False):
        planted.train(planted.build("cpu", getattr(torch, dtype), layers=layers))
    return folder


def by_report(clean: str, dtype: str, way: str, place: int, folder: str, layers: int = 12) -> Outcome:
    """Whether gen_report names the error that was planted on the device."""
    wrong = record(planted.DEVICE, dtype, os.path.join(folder, "device"), f"{way}:{place}", layers=layers)
    result = report.generate(clean, wrong, folder, lines_only=True)
    name = expected(clean, place, way, layers)
    return Outcome(result.culprit is not None and result.culprit.name0 == name, name, result.text())


def by_bisect(
    clean: str, dtype: str, way: str, place: int, folder: str, layers: int = 12, server: Any = None
) -> Outcome:
    """Whether bisect ends with the error that was planted on the device; its folder is folder/out.

    Without a server the command is called as a user calls it.
    """
    arguments = ["--device", "{device}", "--dtype", dtype, "--plant", f"{way}:{place}", "--only-on", "cuda"]
    arguments += ["--layers", str(layers)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        out = os.path.join(folder, "out")
        if server is None:
            code = command(["bisect", planted.__file__, "-o", out, "--", *arguments])
        else:
            code = bisect.run(planted.__file__, "cpu", "cuda", out, None, 0, arguments, server)
    name = expected(clean, place, way, layers)
    return Outcome(code == 1 and f"the operator is {name}\n" in printed.getvalue(), name, printed.getvalue())


def _cases(number: int, kinds: List[str]) -> Iterator[Tuple[str, str, str, int]]:
    # A place of each kind in turn: a run that is stopped early has tried them evenly.
    for index in range(number):
        for kind in kinds:
            for dtype in DTYPES:
                for way in WAYS:
                    yield kind, dtype, way, index


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=int, default=20)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--state", default="sweep.jsonl")
    parser.add_argument("--only", choices=["report", "bisect"])
    chosen = parser.parse_args()
    done: Dict[Tuple[Any, ...], bool] = {}
    if os.path.exists(chosen.state):
        with open(chosen.state, encoding="utf-8") as file:
            for line in file:
                case = json.loads(line)
                done[case["seed"], case["kind"], case["dtype"], case["way"], case["place"]] = case["named"]
    tried: Dict[Tuple[str, str, str], List[bool]] = {}
    with tempfile.TemporaryDirectory() as folder, open(chosen.state, "a", encoding="utf-8") as state:
        clean: Dict[Tuple[str, str], str] = {}
        server = bisect.Server()
        for kind, dtype, way, index in _cases(chosen.places, [chosen.only] if chosen.only else ["report", "bisect"]):
            place = places(chosen.seed, dtype, way, chosen.places, 12)[index]
            key = (chosen.seed, kind, dtype, way, place)
            if key not in done:
                if (kind, dtype) not in clean:
                    there = os.path.join(folder, f"{kind}-{dtype}")
                    clean[kind, dtype] = (
                        record("cpu", dtype, there) if kind == "report" else record_script(dtype, there)
                    )
                began = time.monotonic()
                if kind == "report":
                    found = by_report(clean[kind, dtype], dtype, way, place, folder)
                else:
                    found = by_bisect(clean[kind, dtype], dtype, way, place, folder, server=server)
                took = time.monotonic() - began
                print(f"{kind} {dtype} {way} {place} {found.expected}: {found.named} ({took:.0f} s)", flush=True)
                if not found.named:
                    print(found.text, flush=True)
                line = {"seed": chosen.seed, "kind": kind, "dtype": dtype, "way": way, "place": place}
                state.write(json.dumps({**line, "named": found.named, "expected": found.expected}) + "\n")
                state.flush()
                done[key] = found.named
            tried.setdefault((kind, dtype, way), []).append(done[key])
        server.close()
    for (kind, dtype, way), outcomes in sorted(tried.items()):
        print(f"{kind} {dtype} {way}: {sum(outcomes)} of {len(outcomes)}")
    for kind in sorted({kind for kind, _, _ in tried}):
        all_of_it = [outcome for key, outcomes in tried.items() if key[0] == kind for outcome in outcomes]
        print(f"{kind}: {sum(all_of_it)} of {len(all_of_it)}")
    return 0 if all(all(outcomes) for outcomes in tried.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
