"""``conformity``: upstream's own tests and a sweep over all operators, on the simulated device."""

import argparse
import difflib
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .. import cache, releases
from ..errors import FactoryError
from ..factory import index
from ..products import distribution, given_wheel, sdk_wheel
from ..progress import bar, note
from ..quality import (
    conformity,
    conformity_report,
    downloads,
    ecosystem,
    environment,
    project_tests,
    samples,
    upstream_libraries,
)
from ..quality.upstream_tests import obtain
from ..releases import CHECKOUT, REQUIREMENTS, Release, Table, UpstreamWheel
from . import options

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEST_SECONDS = 600
# Files of requirements, beside those of our own tests.
UPSTREAM_NEEDS = ("conformity.txt",)
# A random kernel in Triton takes as long as so many programs of the fuzzer.
RANDOM_SHARE = 20
DESCRIPTION = "run upstream's own tests and a sweep over all operators, each in processes of their own"


def configure(commands: Any) -> None:
    parser = commands.add_parser("conformity", help=DESCRIPTION)
    options.add_release(parser)
    options.add_output(parser)
    parser.add_argument(
        "--wheels", type=Path, metavar="DIR", help="test the wheels in this folder as they are, instead of building"
    )
    parser.add_argument(
        "--tests",
        type=Path,
        metavar="PATH",
        help="upstream's source archive, instead of a download; or a project's sources (Triton's, apex's)",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="FILE",
        help="only this file, `sweep`, `fuzz` or a group such as `inductor` (may be repeated); `samples`; `ecosystem`; "
        "`triton`, `torchvision`, `torchaudio`, `apex`: their own tests",
    )
    parser.add_argument("--samples", type=Path, metavar="PATH", help="NVIDIA's cuda-samples, a folder or an archive")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the fuzzer's first program (default: 0)")
    parser.add_argument(
        "--programs", type=int, default=20000, metavar="N", help="programs of the fuzzer (default: 20000)"
    )
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="only part I of N of each file (default: all)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time (default: 1)")
    parser.add_argument(
        "--timeout", type=float, default=TEST_SECONDS, metavar="S", help="seconds a test may take (default: 600)"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="time for each file; what is run by then is a sample of all of it"
    )
    parser.add_argument(
        "--devices", type=int, metavar="N", help="devices for every file (default: what its tests ask for at most)"
    )
    parser.add_argument("--resume", action="store_true", help="keep outcomes that there are; run only what is left")
    parser.add_argument(
        "--failed", action="store_true", help="run again what failed, with these wheels or with those of the run before"
    )
    parser.add_argument("--report", action="store_true", help="run nothing; show what there is")
    parser.add_argument("--write", action="store_true", help="write the table into docs/conformity.md")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.only == ["samples"]:
        return run_samples(arguments)
    table, release, wheel = options.chosen(arguments, to_run=True)
    if arguments.only == ["ecosystem"]:
        return run_ecosystem(arguments, release, wheel, _wheels(table, release, wheel, arguments))
    shard_of(arguments.shard)
    projects = [name for name in project_tests.names() if name in (arguments.only or [])]
    if len(projects) > 1:
        raise FactoryError(
            f"--only {' --only '.join(projects)}: each is a run of its own.", "Name one project at a time."
        )
    if projects:
        return run_project(projects[0], arguments, table, release, wheel)
    settings_file = tomllib.loads((conformity.TESTS / "files.toml").read_text(encoding="utf-8"))
    groups = settings_file["groups"]
    listed = [*settings_file["files"], *(file for group in groups.values() for file in group["files"])]
    only = [file for name in arguments.only or [] for file in groups.get(name, {"files": [name]})["files"]]
    files = chosen_files(only, listed, release)
    expected = conformity_report.load(release.torch)
    wheels = _wheels(table, release, wheel, arguments)
    results = results_of(release.torch, wheels)
    if not arguments.report:
        # An environment of its own: a run takes hours, and would keep `make test` from the other.
        program = environment.for_tests("conformity", release, wheel, wheels, UPSTREAM_NEEDS)
        upstream = None
        if release.tests is not None and not set(files) <= set(conformity.OWN):
            upstream = obtain(release.tests, arguments.tests)
            files = there_are(files, upstream, arguments.only or [])
            downloads.provide(settings_file["downloads"])
            upstream_libraries.provide(program, upstream, settings_file["libraries"], files)
        programs = {"FUZZ_FIRST": str(arguments.first), "FUZZ_COUNT": str(arguments.programs)}
        variables = {
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            **settings_file["variables"],
            **programs,
        }
        skip = [(pattern, entry.sentence) for entry in expected if entry.skip for pattern in entry.tests]
        limits = {file: float(group["seconds"]) for group in groups.values() for file in group["files"]}
        leave_out = [pattern for group in groups.values() for pattern in group["leave_out"]]
        settings = conformity.Settings(
            program,
            results,
            upstream,
            variables,
            skip,
            arguments.timeout,
            arguments.failed,
            arguments.seconds,
            limits,
            leave_out,
            _devices(settings_file["devices"], files, arguments.devices),
            settings_file["alone"],
            settings_file["in_order"],
            settings_file["as_main"],
            settings_file["once_more"],
            settings_file["call_tools"],
            _tools_of(program, release),
            settings_file["file_variables"],
            settings_file["file_folders"],
            settings_file["programs"],
        )
        _run(files, arguments, settings, release)
    summary = conformity_report.summarise(release.torch, results, [*conformity.OWN, *listed], expected)
    print(conformity_report.table(summary))
    if arguments.write:
        conformity_report.write(CHECKOUT / "docs" / "conformity.md", summary)
    surprises = [line for row in summary.files if row.file in files for line in row.surprises]
    for line in surprises:
        print(line)
    if conformity.FUZZ in files:
        show_scripts(results, surprises)
    return 1 if surprises else 0


def run_project(name: str, arguments: argparse.Namespace, table: Table, release: Release, wheel: UpstreamWheel) -> int:
    """The tests of a companion's own project, unedited, with the companion's wheel that the release has."""
    project = project_tests.find(name, table, release, arguments.tests)
    files = [file for file in arguments.only if file != name] or list(project.files)
    for file in set(files) - set(project.files):
        raise FactoryError(f"--only {file}: {project.title} has no such file.", "It has: " + ", ".join(project.files))
    wheels = _wheels(table, release, wheel, arguments)
    companion = table.companion(name, project.version)
    if companion is not None and companion.is_given:
        folder = arguments.output if arguments.wheels is None else arguments.wheels
        wheels = [*wheels, _one(folder, str(given_wheel.file_name(table, companion, release, wheel, "*")))]
    # Other requirements would make the environment of the conformity runs anew each time.
    prefix = f"conformity-{name}" if project.needs else "conformity"
    results = results_of(project.title.replace(" ", "-"), wheels)
    expected = conformity_report.load(release.torch, project.expected)
    if not arguments.report:
        random = {"FUZZ_FIRST": str(arguments.first), "FUZZ_COUNT": str(arguments.programs // RANDOM_SHARE)}
        settings = conformity.Settings(
            environment.for_tests(prefix, release, wheel, wheels, (*UPSTREAM_NEEDS, *project.needs)),
            results,
            project.folder,
            {**project.variables, **random, "TRITON_CACHE_DIR": str(results / "triton-cache")},
            [(pattern, entry.sentence) for entry in expected if entry.skip for pattern in entry.tests],
            arguments.timeout,
            arguments.failed,
            arguments.seconds,
            marks=project.marks,
        )
        _run(files, arguments, settings, release)
    summary = conformity_report.summarise(project.title, results, project.files, expected)
    print(conformity_report.table(summary))
    if arguments.write:
        conformity_report.write(CHECKOUT / "docs" / "conformity.md", summary)
    surprises = [line for row in summary.files if row.file in files for line in row.surprises]
    for line in surprises:
        print(line)
    return 1 if surprises else 0


def _tools_of(program: Path, release: Release) -> Path:
    """The commands of the toolkit in the environment of that Python."""
    return next(program.parents[1].glob(f"lib/python*/site-packages/mxmaca/cuda{release.cuda_major}/bin"))


def run_samples(arguments: argparse.Namespace) -> int:
    """NVIDIA's samples, built and run with the SDK alone; a sample takes a minute at most unless --timeout is given."""
    if arguments.wheels is None:
        sdk = sdk_wheel.build(releases.load().sdk, arguments.output)
    else:
        sdk = _one(arguments.wheels, f"{releases.load().sdk.name}-*.whl")
    work = cache.folder("conformity", "samples") / cache.sha256_of(sdk)[:16]
    outcomes = work / "outcomes.json"
    found = samples.load(outcomes) if arguments.report or arguments.resume else None
    if found is None:
        if arguments.samples is None or arguments.report:
            raise FactoryError("There is no outcome of a run.", "Name NVIDIA's cuda-samples with --samples PATH.")
        work.mkdir(parents=True, exist_ok=True)
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        program = environment.obtain("samples", python, [sdk], [])
        sources = samples.sources_of(arguments.samples, work)
        said = samples.build(sources, work / "build", program, max(1, arguments.jobs))
        (work / "build.log").write_text(said, encoding="utf-8")
        limit = 60 if arguments.timeout == TEST_SECONDS else arguments.timeout
        found = samples.run_all(sources, work / "build", said, limit)
        samples.save(outcomes, found)
    known = samples.reasons()
    print(samples.table(found, known))
    if arguments.write:
        samples.write(CHECKOUT / "docs" / "conformity.md", samples.table(found, known))
    wrong = samples.surprises(found, known)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def run_ecosystem(arguments: argparse.Namespace, release: Release, wheel: UpstreamWheel, wheels: Sequence[Path]) -> int:
    """Programs of others' packages on both devices; each may take ten minutes unless --timeout is given."""
    outcomes = results_of(release.torch, wheels) / "ecosystem.json"
    table = ecosystem.load()
    chosen = ecosystem.families(table)
    found = samples.load(outcomes) if arguments.report or arguments.resume else None
    if found is None and arguments.report:
        raise FactoryError("There is no outcome of a run.", "Run it without --report first.")
    left = [] if arguments.report else ecosystem.without(chosen, found or [])
    if left:
        requirements = [REQUIREMENTS / "demo.txt", REQUIREMENTS / "ecosystem.txt"]
        bare = [f"torchvision=={release.companions['torchvision']}", *table["packages"]["without_requirements"]]
        name = f"ecosystem-{release.torch}-{wheel.python_tag}"
        program = environment.obtain(name, wheel.python, wheels, requirements, bare)
        found = (found or []) + ecosystem.run_all(left, program, table["variables"], arguments.timeout)
        samples.save(outcomes, found)
    found = ecosystem.in_order(chosen, found or [])
    known = table["reasons"]
    print(ecosystem.table(found, known))
    if arguments.write:
        samples.write(CHECKOUT / "docs" / "conformity.md", ecosystem.table(found, known), "ecosystem")
    wrong = ecosystem.surprises(found, known)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def _devices(table: Mapping[str, Sequence[str]], files: Sequence[str], asked: Optional[int]) -> Dict[str, int]:
    """How many devices each file gets."""
    if asked is None:
        return {file: int(number) for number, of in table.items() for file in of}
    if asked < 1:
        raise FactoryError(f"--devices {asked}: no test runs on so many.", "Give 1 or more.")
    return dict.fromkeys(files, asked)


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
            # There are some 260 for most releases: too many to name them all where one is near.
            near = difflib.get_close_matches(name, there, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else "Choose from: " + ", ".join(there)
            raise FactoryError(f"--only {name}: there is no such file.{why}", hint)
    own = len(conformity.OWN)
    return list(only) if only else [*there[own:], *there[:own]]


def there_are(files: List[str], upstream: Path, named: List[str]) -> List[str]:
    """Without the files that another release has; what the user has named stays, and fails if it is missing."""
    missing = [f for f in files if f not in (*conformity.OWN, *named) and not (upstream / f).is_file()]
    if missing:
        note(f"This release does not have {', '.join(missing)}")
    return [file for file in files if file not in missing]


def _wheels(table: Table, release: Release, wheel: UpstreamWheel, arguments: argparse.Namespace) -> List[Path]:
    if arguments.wheels is None:
        built = distribution.build(table, release, wheel, arguments.output, arguments.given)
        index.build(arguments.output)
        return built.wheels
    named = distribution.names(table, release, wheel, version="*")
    return [_one(arguments.wheels, file.name) for file in (named.sdk, *named.companions, named.torch)]


def _one(folder: Path, pattern: str) -> Path:
    """The one file of a folder that a pattern names."""
    matches = sorted(folder.glob(pattern))
    if len(matches) != 1:
        raise FactoryError(f"{folder} holds {len(matches)} files {pattern}, not one.", "Choose a folder with one.")
    return matches[0]


def results_of(of: str, wheels: Sequence[Path]) -> Path:
    """The folder of outcomes; ``of``: the release of torch, or the companion and its version."""
    digest = hashlib.sha256("".join(cache.sha256_of(path) for path in wheels).encode()).hexdigest()
    return cache.folder("conformity", of) / digest[:16]


def _run(files: List[str], arguments: argparse.Namespace, settings: conformity.Settings, release: Release) -> None:
    units = conformity.split(files, arguments.shard, max(1, arguments.jobs))
    if arguments.failed:
        again = carry_over(files, settings.results)
        units = [unit for unit in units if unit.file in again]
    elif not arguments.resume:
        forget(units, settings.results)
    note(f"== torch {release.torch}: {len(files)} files, part {arguments.shard}; results in {settings.results}")
    with cache.lock(f"use-{settings.program.parent.parent.name}", shared=True), bar("tests", None, "test") as shown:
        conformity.run(units, settings, max(1, arguments.jobs), conformity.Progress(shown))


def forget(units: Sequence[conformity.Unit], results: Path) -> None:
    """Take away the outcomes of earlier runs, of one that still goes on when it has ended."""
    for unit in units:
        with conformity.turn_of(unit, results):
            for path in (unit.record(results), unit.record(results).with_suffix(".log")):
                path.unlink(missing_ok=True)


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
