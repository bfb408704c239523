"""What a conformity run found, against what is expected to fail."""

import fnmatch
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from ..errors import FactoryError
from . import conformity, prose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXPECTED = conformity.TESTS / "expected.toml"
# Why a test is expected to fail. The last three are no fault of the distribution; the first two are.
CLASSES = ("missing", "wrong", "difference", "cpu kernel", "upstream", "environment")
BY_UPSTREAM = ("skipped", "expected failure", "unexpected success")
COLUMNS = ("collected", "run", "passed", "failed", "as expected", "crashed", "missing kernel", "upstream", "us")
# Marks a row of the document that stays, since this cache knows less of its file.
EARLIER = "†"
TITLES = {
    "collected": "tests",
    "as expected": "of these expected",
    "crashed": "crashes",
    "missing kernel": "kernels not there",
    "upstream": "skipped by upstream",
    "us": "skipped by us",
}


@dataclass(frozen=True)
class Expected:
    """Tests that are known to fail, or (``skip``) that cannot be run. Patterns know ``*`` and ``?``."""

    tests: Tuple[str, ...]
    reason: str
    sentence: str
    releases: Tuple[str, ...]
    skip: bool = False

    def covers(self, test: str) -> bool:
        return any(fnmatch.fnmatchcase(test, pattern.replace("[", "[[]")) for pattern in self.tests)


@dataclass
class FileSummary:
    """One row of the table; ``surprises``: failures that nothing expects; ``earlier``: taken over from the document.

    ``kept``: how many outcomes are of a run with earlier wheels; ``by_itself``: how many failed among the others, and
    passed in a process of their own.
    """

    file: str
    counts: Dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0))
    surprises: List[str] = field(default_factory=list)
    earlier: bool = False
    kept: int = 0
    by_itself: int = 0


@dataclass
class Summary:
    torch: str
    wheels: str
    files: List[FileSummary]

    @property
    def kept(self) -> int:
        return sum(row.kept for row in self.files)

    @property
    def by_itself(self) -> int:
        return sum(row.by_itself for row in self.files)

    @property
    def total(self) -> Dict[str, int]:
        return {column: sum(row.counts[column] for row in self.files) for column in COLUMNS}


def load(torch: str, path: Path = EXPECTED) -> List[Expected]:
    """The entries for a release. Raises FactoryError for one without a known class, a sentence or a test."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise FactoryError(f"{path.name}: {error}") from error
    return [entry for row in data.get("expected", []) for entry in [_entry(row, path)] if torch in entry.releases]


def _entry(row: Dict[str, Any], path: Path) -> Expected:
    unknown = set(row) - {"tests", "class", "sentence", "releases", "skip"}
    if unknown:
        raise FactoryError(f"{path.name}: unknown keys {', '.join(sorted(unknown))} in {row}")
    if row.get("class") not in CLASSES:
        raise FactoryError(f"{path.name}: an entry's class must be one of {', '.join(CLASSES)}: {row}")
    if not row.get("sentence") or not row.get("tests") or not row.get("releases"):
        raise FactoryError(f"{path.name}: an entry needs tests, a sentence and releases: {row}")
    return Expected(
        tests=tuple(row["tests"]),
        reason=row["class"],
        sentence=row["sentence"],
        releases=tuple(row["releases"]),
        skip=bool(row.get("skip", False)),
    )


def summarise(torch: str, results: Path, files: Sequence[str], expected: Sequence[Expected]) -> Summary:
    rows = []
    for file in files:
        folder = conformity.folder_of(results, file)
        found = conformity.outcomes(folder) if folder.is_dir() else {}
        if not found:
            continue
        row = FileSummary(file)
        row.counts["collected"] = conformity.collected(folder)
        row.kept = sum("wheels" in outcome for outcome in found.values())
        row.by_itself = sum("by_itself" in outcome for outcome in found.values())
        for test in conformity.pending(folder):
            found[test] = {"outcome": "failed", "message": "failed before, and was not run again"}
        for test, outcome in sorted(found.items()):
            _add(row, test, outcome, expected)
        rows.append(row)
    return Summary(torch, results.name, rows)


def _add(row: FileSummary, test: str, found: conformity.Row, expected: Sequence[Expected]) -> None:
    outcome = found["outcome"]
    row.counts["run"] += 1
    if outcome == "passed":
        row.counts["passed"] += 1
    elif outcome in BY_UPSTREAM:
        row.counts["upstream"] += 1
    elif outcome == "skipped by us":
        row.counts["us"] += 1
    else:
        row.counts["failed"] += 1
        row.counts["crashed"] += outcome == "crashed"
        row.counts["missing kernel"] += outcome == "missing kernel"
        # A crash or a launch of a missing kernel is never expected.
        excused = outcome in ("failed", "timeout") and any(entry.covers(test) for entry in expected)
        row.counts["as expected"] += excused
        if not excused:
            words = found["message"].strip().splitlines() or [""]
            row.surprises.append(f"{outcome}: {test}: {words[0][:200]}")


def share(counts: Dict[str, int]) -> str:
    """How many of the tests that upstream does not leave out pass; those that we leave out count as failed."""
    asked = counts["passed"] + counts["failed"] + counts["us"]
    return f"{100 * counts['passed'] / asked:.2f} %" if asked else "–"


def table(summary: Summary) -> str:
    head = ["file", *(TITLES.get(column, column) for column in COLUMNS), "pass rate"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    titles = [(row.file + (f" {EARLIER}" if row.earlier else ""), row.counts) for row in summary.files]
    for title, counts in [*titles, ("all", summary.total)]:
        numbers = [str(counts[column]) for column in COLUMNS]
        if counts["run"] < counts["collected"]:
            numbers[1] += f" ({100 * counts['run'] // counts['collected']} %)"
        lines.append(f"| {title} | " + " | ".join(numbers) + f" | {share(counts)} |")
    return "\n".join(lines)


def rows_of(table: str) -> Dict[str, FileSummary]:
    """The files of a table that was written before."""
    rows = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        name = cells[0].replace(EARLIER, "").strip()
        if len(cells) == len(COLUMNS) + 2 and cells[1].isdigit() and name != "all":
            counts = (int(cell.split()[0]) for cell in cells[1:-1])
            rows[name] = FileSummary(name, dict(zip(COLUMNS, counts)), earlier=True)
    return rows


def merged(summary: Summary, earlier: Dict[str, FileSummary]) -> Summary:
    """Of each file the row that knows more of it; of two that know as much, the new one."""
    rows = dict(earlier)
    for row in summary.files:
        if row.file not in rows or row.counts["run"] >= rows[row.file].counts["run"]:
            rows[row.file] = row
    return Summary(summary.torch, summary.wheels, list(rows.values()))


def write(path: Path, summary: Summary) -> None:
    """Bring the release's table in the document up to date, between its two comments.

    A row stays where the document knows more of a file than this run, so that a machine that has run a few files
    can add what it found.
    """
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- table {summary.torch} -->", f"<!-- end {summary.torch} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    found = pattern.search(text)
    if not found:
        raise FactoryError(f"{path.name} has no place for {summary.torch}.", f"Add the lines {begin} and {end}.")
    summary = merged(summary, rows_of(found.group()))
    body = f"Wheels `{summary.wheels}`."
    if any(row.earlier for row in summary.files):
        body += f" Rows with {EARLIER} are of earlier wheels and another cache."
    if summary.kept:
        body += f" {summary.kept} outcomes were kept from a run with earlier wheels; "
        body += "what failed there was run again, or counts as failed."
    if summary.by_itself:
        body += f" {summary.by_itself} tests failed among the others and passed in a process of their own."
    body = f"{begin}\n{table(summary)}\n\n{prose.wrapped(body, 120)}\n{end}"
    path.write_text(pattern.sub(lambda _: body, text), encoding="utf-8")
