"""Others' programs on the device beside the CPU: packages of the index, their versions pinned, and a table of all.

``tests/conformity/ecosystem.toml`` lists packages and programs; ``tests/conformity/ecosystem/run.py`` runs those of a
family in one process, which is started again behind a program that ends it.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Sequence

from ..progress import bar
from ..releases import CHECKOUT
from .samples import Outcome

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = CHECKOUT / "tests" / "conformity" / "ecosystem.toml"
SCRIPT = CHECKOUT / "tests" / "conformity" / "ecosystem" / "run.py"
EQUAL = "equal"
# In this order stand the columns of the table. `not run`: the CPU does not run it either.
OUTCOMES = (EQUAL, "differs", "fails", "ends the process", "takes too long", "not run")


@dataclass(frozen=True)
class Family:
    module: str
    name: str
    programs: List[str]


def load() -> Dict[str, Any]:
    return dict(tomllib.loads(TABLE.read_text(encoding="utf-8")))


def families(table: Dict[str, Any]) -> List[Family]:
    return [Family(**row) for row in table["family"]]


def without(chosen: Sequence[Family], found: Sequence[Outcome]) -> List[Family]:
    """The programs that have no outcome yet."""
    known = {(one.category, one.name) for one in found}
    rest = [
        Family(family.module, family.name, [name for name in family.programs if (family.name, name) not in known])
        for family in chosen
    ]
    return [family for family in rest if family.programs]


def in_order(chosen: Sequence[Family], found: Sequence[Outcome]) -> List[Outcome]:
    """The outcomes of the table's programs, in its order; what has left the table is left out."""
    known = {(one.category, one.name): one for one in found}
    names = [(family.name, name) for family in chosen for name in family.programs]
    return [known[name] for name in names if name in known]


def run_all(chosen: Sequence[Family], program: Path, variables: Dict[str, str], limit: float) -> List[Outcome]:
    """Run every program of the families, one after the other; each may take ``limit`` seconds."""
    found: List[Outcome] = []
    with bar("programs", sum(len(family.programs) for family in chosen), "program") as shown:
        for family in chosen:
            left = list(family.programs)
            while left:
                ended = _process(family, left, [str(program), str(SCRIPT)], variables, limit)
                found += ended
                left = left[len(ended) :]
                shown.advance(len(ended))
    return found


def _process(
    family: Family, left: Sequence[str], command: Sequence[str], variables: Dict[str, str], limit: float
) -> List[Outcome]:
    """Outcomes of the first programs of ``left``, at least of one: what one process came to."""
    found: List[Outcome] = []
    lines: queue.Queue[str] = queue.Queue()
    # Away from the checkout, whose folders would hide packages of the same name.
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        [*command, family.module, family.name, *left],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        reader = threading.Thread(target=_read, args=(process, lines), daemon=True)
        reader.start()
        while len(found) < len(left):
            began = time.monotonic()
            row = _row(lines, limit)
            name = left[len(found)]
            if row is not None and row:
                found.append(Outcome(family.name, row["program"], row["outcome"], row["seconds"], row.get("says", "")))
                continue
            process.kill()
            status = process.wait()
            outcome, says = ("takes too long", f"more than {limit:g} s")
            if row is not None:
                outcome, says = "ends the process", f"status {status}"
            found.append(Outcome(family.name, name, outcome, round(time.monotonic() - began, 1), says))
            break
        reader.join()
    return found


def _read(process: "subprocess.Popen[str]", lines: "queue.Queue[str]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    process.wait()
    lines.put("")


def _row(lines: "queue.Queue[str]", limit: float) -> Any:
    """The next outcome; an empty one where the process ended, None where the time ran out first."""
    until = time.monotonic() + limit
    while True:
        try:
            line = lines.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None
        if not line:
            return {}
        if line.startswith('{"program"'):
            return json.loads(line)


def surprises(found: Sequence[Outcome], known: Dict[str, str]) -> List[str]:
    """Programs that are not equal without a reason, and reasons of those that are."""
    lines = []
    for one in found:
        key = f"{one.category}/{one.name}"
        if (one.outcome == EQUAL) == (key in known):
            why = (
                f"has a reason to differ, and is equal: {known[key]}" if key in known else f"{one.outcome}: {one.says}"
            )
            lines.append(f"{key} {why}")
    return lines


def table(found: Sequence[Outcome], known: Dict[str, str]) -> str:
    """A row a family, and one for each program that is not equal."""
    rows = ["| family | programs | " + " | ".join(OUTCOMES) + " |", "|---|" + "---:|" * (len(OUTCOMES) + 1)]
    names = list(dict.fromkeys(one.category for one in found))
    for name in [*names, "all"]:
        mine = [one for one in found if name in ("all", one.category)]
        counts = [str(sum(one.outcome == outcome for one in mine)) for outcome in OUTCOMES]
        rows.append(f"| {name} | {len(mine)} | " + " | ".join(counts) + " |")
    others = [one for one in found if one.outcome != EQUAL]
    if others:
        rows += ["", "| program | outcome | why |", "|---|---|---|"]
    for one in others:
        key = f"{one.category}/{one.name}"
        rows.append(f"| {key} | {one.outcome} | {known.get(key, one.says)[:160]} |".replace("\n", " "))
    return "\n".join(rows)
