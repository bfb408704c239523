"""``conformity``: upstream's own tests and a sweep over all operators, on the simulated device."""

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

from .. import cache
from ..errors import FactoryError
from ..factory import index, sdk_wheel, torch_wheel
from ..progress import bar, note
from ..quality import conformity, conformity_report, environment
from ..quality.upstream_tests import obtain
from ..releases import CHECKOUT, Release, Table, UpstreamWheel
from . import options

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DESCRIPTION = "run upstream's own tests and a sweep over all operators, each in processes of their own"


def configure(commands: Any) -> None:
    parser = commands.add_parser("conformity", help=DESCRIPTION)
    options.add_release(parser)
    options.add_output(parser)
    parser.add_argument(
        "--wheels", type=Path, metavar="DIR", help="test the wheels in this folder as they are, instead of building"
    )
    parser.add_argument("--tests", type=Path, metavar="PATH", help="upstream's source archive, instead of a download")
    parser.add_argument(
        "--only", action="append", metavar="FILE", help="only this file, `sweep` or `fuzz` (may be repeated)"
    )
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the fuzzer's first program (default: 0)")
    parser.add_argument(
        "--programs", type=int, default=20000, metavar="N", help="programs of the fuzzer (default: 20000)"
    )
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="only part I of N of each file (default: all)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time (default: 1)")
    parser.add_argument(
        "--timeout", type=float, default=600, metavar="S", help="seconds a test may take (default: 600)"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="time for each file; what is run by then is a sample of all of it"
    )
    parser.add_argument("--resume", action="store_true", help="keep outcomes that there are; run only what is left")
    parser.add_argument(
        "--failed", action="store_true", help="run again what failed, with these wheels or with those of the run before"
    )
    parser.add_argument("--report", action="store_true", help="run nothing; show what there is")
    parser.add_argument("--write", action="store_true", help="write the table into docs/conformity.md")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    table, release, wheel = options.chosen(arguments)
    shard_of(arguments.shard)
    settings_file = tomllib.loads((conformity.TESTS / "files.toml").read_text(encoding="utf-8"))
    files = chosen_files(arguments.only, settings_file["files"], release)
    expected = conformity_report.load(release.torch)
    sdk, torch = _wheels(table, release, wheel, arguments)
    results = results_of(release, (sdk, torch))
    if not arguments.report:
        # An environment of its own: a run takes hours, and would keep `make test` from the other.
        program = environment.for_tests("conformity", release, wheel, sdk, torch)
        upstream = None
        if release.tests is not None and not set(files) <= set(conformity.OWN):
            upstream = obtain(release.tests, arguments.tests)
        programs = {"FUZZ_FIRST": str(arguments.first), "FUZZ_COUNT": str(arguments.programs)}
        variables = {
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            **settings_file["variables"],
            **programs,
        }
        skip = [(pattern, entry.sentence) for entry in expected if entry.skip for pattern in entry.tests]
        settings = conformity.Settings(
            program, results, upstream, variables, skip, arguments.timeout, arguments.failed, arguments.seconds
        )
        _run(files, arguments, settings, release)
    summary = conformity_report.summarise(release.torch, results, [*conformity.OWN, *settings_file["files"]], expected)
    print(conformity_report.table(summary))
    if arguments.write:
        conformity_report.write(CHECKOUT / "docs" / "conformity.md", summary)
    surprises = [line for row in summary.files if row.file in files for line in row.surprises]
    for line in surprises:
        print(line)
    if conformity.FUZZ in files:
        show_scripts(results, surprises)
    return 1 if surprises else 0


def show_scripts(results: Path, surprises: List[str]) -> None:
    """Print the scripts that show what the fuzzer found, one for each kind of difference."""
    shown: Set[str] = set()
    for line in surprises:
        found = re.search(r"::test_program\[(\d+)\]: (\w+: .*?): ", line)
        script = conformity.scripts_of(results) / f"{found.group(1)}.py" if found else None
        if found and script and script.is_file() and found.group(2) not in shown:
            shown.add(found.group(2))
            print(f"\n{'=' * 20} {script}\n{script.read_text(encoding='utf-8')}")


def shard_of(text: str) -> Tuple[int, int]:
    words = text.split("/")
    if len(words) != 2 or not all(word.isdigit() for word in words) or not 1 <= int(words[0]) <= int(words[1]):
        raise FactoryError(f"--shard {text} is no part of a whole.", "Write it as I/N with 1 <= I <= N, such as 2/10.")
    return int(words[0]), int(words[1])


def chosen_files(only: Any, files: List[str], release: Release) -> List[str]:
    """The files to run, our own among them; upstream's only where the release has a source of them."""
    there = [*conformity.OWN, *(files if release.tests is not None else [])]
    for name in only or []:
        if name not in there:
            why = "" if release.tests is not None else f" torch {release.torch} has no source of upstream's tests."
            raise FactoryError(f"--only {name}: there is no such file.{why}", "Choose from: " + ", ".join(there))
    own = len(conformity.OWN)
    return list(only) if only else [*there[own:], *there[:own]]


def _wheels(table: Table, release: Release, wheel: UpstreamWheel, arguments: argparse.Namespace) -> Tuple[Path, Path]:
    if arguments.wheels is None:
        torch = torch_wheel.build(table, release, wheel, arguments.output, arguments.given)
        sdk = sdk_wheel.build(table.sdk, arguments.output)
        index.build(arguments.output)
        return sdk, torch
    found = []
    for pattern in (f"{table.sdk.name}-*.whl", f"torch-{release.torch}+maca*-{wheel.python_tag}-*.whl"):
        matches = sorted(arguments.wheels.glob(pattern))
        if len(matches) != 1:
            raise FactoryError(
                f"{arguments.wheels} holds {len(matches)} files {pattern}, not one.",
                "Choose a folder with one of each.",
            )
        found.append(matches[0])
    return found[0], found[1]


def results_of(release: Release, wheels: Tuple[Path, Path]) -> Path:
    digest = hashlib.sha256("".join(cache.sha256_of(path) for path in wheels).encode()).hexdigest()
    return cache.folder("conformity", release.torch) / digest[:16]


def _run(files: List[str], arguments: argparse.Namespace, settings: conformity.Settings, release: Release) -> None:
    units = conformity.split(files, arguments.shard, max(1, arguments.jobs))
    if arguments.failed:
        again = carry_over(files, settings.results)
        units = [unit for unit in units if unit.file in again]
    elif not arguments.resume:
        for unit in units:
            for path in (unit.record(settings.results), unit.record(settings.results).with_suffix(".log")):
                if path.exists():
                    path.unlink()
    note(f"== torch {release.torch}: {len(files)} files, part {arguments.shard}; results in {settings.results}")
    with cache.lock(f"use-{settings.program.parent.parent.name}", shared=True), bar("tests", None, "test") as shown:
        conformity.run(units, settings, max(1, arguments.jobs), conformity.Progress(shown))


def carry_over(files: List[str], results: Path) -> List[str]:
    """Keep the outcomes of the newest run of these files, with these wheels or others, less its failures.

    Returns the files that had some.
    """
    failed = []
    for file in files:
        target = conformity.folder_of(results, file)
        runs = [path for path in results.parent.glob(f"*/{target.name}") if any(path.glob("*.jsonl"))]
        if not runs:
            raise FactoryError(f"{file} was never run with this release.", "Leave --failed out.")
        newest = max(runs, key=lambda path: max(p.stat().st_mtime for p in path.glob("*.jsonl")))
        rows = conformity.outcomes(newest)
        kept: Dict[str, conformity.Row] = {n: r for n, r in rows.items() if r["outcome"] not in conformity.FAILURES}
        total = conformity.collected(newest)
        again = (set(rows) - set(kept)) | conformity.pending(newest)
        shutil.rmtree(str(target), ignore_errors=True)
        target.mkdir(parents=True)
        for row in kept.values():
            if newest != target:
                row.setdefault("wheels", newest.parent.name)
            conformity.append(target / "0-kept.jsonl", **row)
        conformity.append(target / "0-kept.jsonl", collected=total)
        if again:
            failed.append(file)
        (target / conformity.AGAIN).write_text(json.dumps(sorted(again)), encoding="utf-8")
    return failed
