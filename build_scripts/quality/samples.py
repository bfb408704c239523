"""NVIDIA's samples, unedited: configured and built by the SDK's CMake, each run with a limit, and a table of all.

What a sample says of itself is its exit status: 0 it has checked its results and they are right, 2 it waives (there is
something that it needs and that no machine without it has), anything else a failure. ``tests/conformity/samples.toml``
says of those that do not end well why they do not.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from .. import children
from ..errors import FactoryError
from ..progress import bar, step
from ..releases import CHECKOUT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REASONS = CHECKOUT / "tests" / "conformity" / "samples.toml"
WAIVED = 2
PASSED, NOT_BUILT = "passes", "does not build"
# In this order stand the figures below the table.
OUTCOMES = (PASSED, "waives", "fails", "takes too long", NOT_BUILT)
ERROR = re.compile(r"(?:error: |error LNK|undefined reference|No such file).*")


@dataclass(frozen=True)
class Outcome:
    """What became of one sample. ``says``: the first error of the compiler, or the last line that it wrote."""

    category: str
    name: str
    outcome: str
    seconds: float = 0.0
    says: str = ""


def sources_of(given: Path, work: Path) -> Path:
    """A copy of the samples, from a folder or an archive, below ``work``.

    Raises:
        FactoryError: there are none.
    """
    target = work / "cuda-samples"
    shutil.rmtree(str(target), ignore_errors=True)
    if given.is_dir():
        shutil.copytree(str(given), str(target))
    elif given.is_file():
        with tarfile.open(given) as archive:
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(work, **safe)  # type: ignore[arg-type]
    if not (target / "Samples").is_dir():
        raise FactoryError(
            f"{given} holds no folder cuda-samples/Samples.",
            "Name NVIDIA's cuda-samples, a folder or a tar archive, with --samples PATH.",
        )
    # A selection of the samples lacks the list of the categories.
    listed = target / "Samples" / "CMakeLists.txt"
    if not listed.exists():
        found = sorted(path.parent.name for path in (target / "Samples").glob("*/CMakeLists.txt"))
        listed.write_text("".join(f"add_subdirectory({name})\n" for name in found), encoding="utf-8")
    return target


def build(sources: Path, folder: Path, program: Path, jobs: int) -> str:
    """Configure and build all samples. Returns what the build said."""
    code = "import pathlib, mxmaca; print(pathlib.Path(mxmaca.__file__).parent)"
    sdk = Path(subprocess.run([str(program), "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    tools = os.pathsep.join([os.path.dirname(sys.executable), str(program.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": tools}
    with step("Configuring the samples"):
        done = children.run(
            ["sh", str(sdk / "tools" / "cmake_maca"), "-S", str(sources), "-B", str(folder), "-G", "Ninja"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        raise FactoryError("The samples cannot be configured: " + "\n    ".join(done.stdout.splitlines()[-8:]))
    with step("Building the samples"):
        return children.run(
            ["ninja", "-C", str(folder), "-k", "0", f"-j{jobs}"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ).stdout


def run_all(sources: Path, folder: Path, said: str, limit: float) -> List[Outcome]:
    """Run what was built, one after the other."""
    arguments: Dict[str, Dict[str, object]] = {}
    if (sources / "test_args.json").is_file():
        arguments = json.loads((sources / "test_args.json").read_text(encoding="utf-8"))
    samples = sorted(path.parent for path in (sources / "Samples").glob("*/*/CMakeLists.txt"))
    found = []
    with bar("samples", len(samples), "sample") as shown:
        for sample in samples:
            found.append(_run(sample, folder, said, arguments.get(sample.name, {}), limit))
            shown.advance(1)
    return found


def _run(sample: Path, folder: Path, said: str, arguments: Dict[str, object], limit: float) -> Outcome:
    category, name = sample.parent.name, sample.name
    place = folder / "Samples" / category / name
    program = place / name
    if not program.is_file():
        return Outcome(category, name, NOT_BUILT, says=_first_error(said, f"Samples/{category}/{name}/"))
    runs = arguments.get("runs", [arguments])
    assert isinstance(runs, list)
    seconds, line = 0.0, ""
    for one in runs:
        begin = time.monotonic()
        try:
            done = subprocess.run(
                [str(program), *map(str, one.get("args", []))],
                cwd=str(place),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(category, name, "takes too long", limit, f"more than {limit:g} s")
        seconds += time.monotonic() - begin
        lines = [text.strip() for text in done.stdout.decode("utf-8", "replace").splitlines() if text.strip()]
        line = lines[-1] if lines else ""
        if done.returncode:
            wrong = next((text for text in lines if re.search(r"\berror\b|fail|abort", text, re.IGNORECASE)), line)
            outcome = "waives" if done.returncode == WAIVED else "fails"
            # Where the sources lie is of no interest to a reader of the table.
            says = re.sub(r"/\S*/cuda-samples/", "", line if outcome == "waives" else wrong)
            return Outcome(category, name, outcome, seconds, says)
    return Outcome(category, name, PASSED, seconds)


def _first_error(said: str, place: str) -> str:
    """The first error behind the build step that failed for files of a folder."""
    mine = False
    for line in said.splitlines():
        if line.startswith(("FAILED: ", "[")):
            mine = line.startswith("FAILED: ") and place in line
        elif mine and ERROR.search(line):
            return ERROR.search(line).group()  # type: ignore[union-attr]
    return "it is not configured"


def reasons() -> Dict[str, str]:
    return dict(tomllib.loads(REASONS.read_text(encoding="utf-8"))["reasons"])


def surprises(found: Sequence[Outcome], known: Dict[str, str]) -> List[str]:
    """Samples that do not end well without a reason, and reasons of those that do."""
    lines = []
    for one in found:
        if (one.outcome == PASSED) == (one.name in known):
            why = f"has a reason not to pass, and passes: {known[one.name]}" if one.name in known else one.outcome
            lines.append(f"{one.category}/{one.name} {why} {'' if one.outcome == PASSED else one.says}".rstrip())
    return lines


def table(found: Sequence[Outcome], known: Dict[str, str]) -> str:
    """The samples in the order of their outcomes, those that pass in one row."""
    counts = {outcome: sum(one.outcome == outcome for one in found) for outcome in OUTCOMES}
    total = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    rows = [f"Of {len(found)} samples: {total}.", "", "| sample | outcome | seconds | why |", "|---|---|---:|---|"]
    for outcome in OUTCOMES:
        for one in found:
            if one.outcome == outcome:
                why = known.get(one.name, "" if outcome == PASSED else one.says).replace("|", "\\|")[:160]
                seconds = f"{one.seconds:.1f}" if one.seconds else ""
                rows.append(f"| {one.name} | {outcome} | {seconds} | {why} |")
    return "\n".join(rows)


def write(path: Path, text: str, place: str = "samples") -> None:
    """Put the table between the two comments of its place in the document."""
    begin, end = f"<!-- table {place} -->", f"<!-- end {place} -->"
    document = path.read_text(encoding="utf-8")
    start, stop = document.find(begin), document.find(end)
    if start < 0 or stop < start:
        raise FactoryError(f"{path.name} has no place for the {place}.", f"Add the lines {begin} and {end}.")
    path.write_text(document[: start + len(begin)] + f"\n{text}\n" + document[stop:], encoding="utf-8")


def load(path: Path) -> Optional[List[Outcome]]:
    """What an earlier run has left, or None."""
    if not path.is_file():
        return None
    return [Outcome(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def save(path: Path, found: Sequence[Outcome]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([vars(one) for one in found], indent=1) + "\n", encoding="utf-8")
