"""``bench``: every program of tests/benchmarks in the test environment of a release."""

import argparse
from pathlib import Path
from typing import Any, List

from .. import cache
from ..factory import native
from ..products import distribution, torch_wheel
from ..progress import note
from ..quality import environment
from ..releases import CHECKOUT
from . import options

SCRIPTS = CHECKOUT / "tests" / "benchmarks"
# Their figures stand in docs/performance.md; the others have a page of their own.
ON_THE_PAGE = ("collectives", "graphs", "kernels", "memory", "models", "small_operators", "triton_kernels")

# It compares libraries that lack a part with the whole one, and is given them.
FAST_PARTS = "fast_parts"


def configure(commands: Any) -> None:
    parser = commands.add_parser("bench", help="run the benchmarks with the built wheels")
    options.add_release(parser)
    options.add_output(parser)
    parser.add_argument("--only", action="append", metavar="NAME", help="only these programs (may be repeated)")
    parser.add_argument("--docs", action="store_true", help="only what docs/performance.md shows, and write it there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    with cache.lock("bench"), cache.work_folder("bench") as work:
        return _run(arguments, work)


def _run(arguments: argparse.Namespace, work: Path) -> int:
    table, release, wheel = options.chosen(arguments, to_run=True)
    built = distribution.build(table, release, wheel, arguments.output, arguments.given)
    program = str(environment.for_tests("test", release, wheel, built.wheels))
    failed = 0
    results: List[Path] = []
    for script in sorted(SCRIPTS.glob("[!_]*.py")):
        if script.stem not in (arguments.only or (ON_THE_PAGE if arguments.docs else [script.stem])):
            continue
        note(f"== {script.name}, torch {release.torch}")
        command = [program, str(script)]
        if script.stem == FAST_PARTS:
            for part in native.FAST:
                folder = work / part
                rest = [other for other in native.FAST if other != part]
                torch_wheel.leave_libraries(table, release, wheel, arguments.given, folder / "libraries", rest)
                site = environment.overlay(Path(program), folder / "libraries", folder / "site")
                command += ["--without", f"{part}={site}"]
        if script.stem in ON_THE_PAGE:
            results.append(cache.folder("reports") / f"bench-{script.stem}-{release.torch}.json")
            results[-1].unlink(missing_ok=True)
            command += ["--json", str(results[-1])]
        failed += bool(environment.run(command, CHECKOUT))
    results = [path for path in results if path.exists()]
    if arguments.docs and results and not failed:
        failed += bool(environment.run([program, str(SCRIPTS / "_page.py"), *map(str, results)], CHECKOUT))
    return 1 if failed else 0
