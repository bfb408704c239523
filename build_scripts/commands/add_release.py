"""``add-release``: the rows and files of a new upstream release, and a list of what is left to a person."""

import argparse
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from packaging.version import InvalidVersion, Version

from .. import cache, python_names, releases
from ..errors import FactoryError
from ..factory import package_index, survey, upstream
from ..factory.package_index import Found, Missing
from ..progress import note, step
from ..releases import CHECKOUT, COMPANIONS, TABLE, Companion, Release, Table, UpstreamWheel

PYTHONS = [f"3.{minor}" for minor in range(8, 17)] + [f"3.{minor}t" for minor in range(13, 17)]
ARCHITECTURES = ("x86_64", "aarch64")
# What is built here from upstream's wheels beside torch: what torch requires, and what requires torch.
REQUIRED, REQUIRING = "triton", ("torchvision", "torchaudio")


def configure(commands: Any) -> None:
    parser = commands.add_parser("add-release", help="add an upstream release to the tables, as far as a program can")
    parser.add_argument("version", help="the torch release, as 2.14.1")
    parser.add_argument("--python", action="append", metavar="VERSION", help="only these Pythons (may be repeated)")
    parser.add_argument("--tested", metavar="VERSION", help="the Python of the test runs (default: the running one)")
    parser.add_argument("--from", dest="given", type=Path, metavar="PATH", help="folder with upstream's wheels")
    parser.add_argument("--dry-run", action="store_true", help="say what would be written, and change nothing")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    table = releases.load()
    version = checked_version(arguments.version, table)
    pythons = [python_names.parse(text) for text in arguments.python] if arguments.python else PYTHONS
    found = wheels_of("torch", version, pythons)
    tested = arguments.tested or python_names.running()
    tested = tested if tested in found else next(iter(found))
    release = found[tested]
    wheels = [row(python, each) for python, each in found.items()]
    others = other_processors("torch", version, list(found), table)
    wheels += [row(python, each) for python, each in others]
    nearest = nearest_release(table, version)
    architectures = [name for name in ARCHITECTURES if any(wheel.architecture == name for wheel in wheels)]
    companions, rows = companions_of(release, tested, list(found), architectures, table)
    path = upstream.obtain(next(wheel for wheel in wheels if wheel.python == tested), arguments.given)
    with cache.lock("add-release"), cache.work_folder("add-release") as work:
        result = survey.survey(path, version, nearest, table, work / "wheel")
    text = release_text(version, result, tested, companions, wheels)
    print(said(version, nearest, result, companions))
    if arguments.dry_run:
        print(text + "".join(rows))
        return 0
    write(version, result, text, rows)
    return 0


def checked_version(text: str, table: Table) -> str:
    try:
        version = Version(text)
    except InvalidVersion:
        raise FactoryError(f"'{text}' is no version.", "Write it as 2.14.1.") from None
    if version.local or version.is_prerelease or len(version.release) != 3:
        raise FactoryError(f"'{text}' is no release of upstream's.", "Write it as 2.14.1.")
    if any(release.torch == str(version) for release in table.releases):
        raise FactoryError(f"torch {version} is in the table already.", "Remove its [[release]] to make it anew.")
    return str(version)


def wheels_of(
    project: str, version: str, pythons: Sequence[str], architecture: str = ARCHITECTURES[0]
) -> Dict[str, Found]:
    """Upstream's wheel for each Python that has one."""
    found, known = _ask(project, version, pythons, architecture)
    if found:
        return found
    for other in ARCHITECTURES:
        for python in pythons if other != architecture else ():
            try:
                package_index.find(f"{project}==={version}", python, other)
            except Missing:
                continue
            raise FactoryError(
                f"{project} {version} has no wheel for {architecture}; it has one for {other}.",
                "Only what upstream has wheels of can be built.",
            )
    newest = sorted(set(map(Version, known)), reverse=True)[:5]
    raise FactoryError(
        f"The package index has no wheel of {project} {version} for Python {', '.join(pythons)}.",
        f"It has {', '.join(map(str, newest))}." if newest else "Check `python -m pip config list`.",
    )


def _ask(project: str, version: str, pythons: Sequence[str], architecture: str) -> Tuple[Dict[str, Found], List[str]]:
    """The wheel for each Python that has one, and the versions that there are for the Pythons without."""
    found: Dict[str, Found] = {}
    known: List[str] = []
    with step(f"Asking the index for {project} {version} on {architecture}"):
        for python in pythons:
            try:
                found[python] = package_index.find(f"{project}==={version}", python, architecture)
            except Missing as missing:
                known += missing.versions
    return found, known


def other_processors(project: str, version: str, pythons: Sequence[str], table: Table) -> List[Tuple[str, Found]]:
    """Upstream's wheels for other processors, with their Pythons, as far as they are CUDA builds.

    A wheel for the CPU alone requires nothing of NVIDIA's on its processor: there is nothing to make a device of.
    """
    return [
        (python, each)
        for architecture in ARCHITECTURES[1:]
        for python, each in _ask(project, version, pythons, architecture)[0].items()
        if each.requires_any(table.nvidia.requirements, architecture)
    ]


def row(python: str, found: Found, project: str = "torch") -> UpstreamWheel:
    size = package_index.size_of(found)
    if size is None:
        # The file itself tells; it is kept, so nothing is fetched twice.
        size = (
            upstream.obtain(UpstreamWheel(found.version, python, found.file, 0, found.sha256, project)).stat().st_size
        )
    return UpstreamWheel(found.version, python, found.file, size, found.sha256, project)


def nearest_release(table: Table, version: str) -> Release:
    """The newest release before it, else the oldest one after it."""
    before = [r for r in table.releases if Version(r.torch) < Version(version)]
    return (
        max(before, key=lambda r: Version(r.torch)) if before else min(table.releases, key=lambda r: Version(r.torch))
    )


def companions_of(
    release: Found, tested: str, pythons: Sequence[str], architectures: Sequence[str], table: Table
) -> Tuple[Dict[str, str], List[str]]:
    """Versions of the companions, and the rows of those that are not in their table yet."""
    versions: Dict[str, str] = {}
    rows: List[str] = []
    wanted = release.requirement(REQUIRED)
    if wanted is not None:
        versions[REQUIRED] = package_index.find(f"{REQUIRED}{wanted.specifier}", tested, ARCHITECTURES[0]).version
    for project in REQUIRING:
        with step(f"Looking for a {project} that fits"):
            fitting = package_index.beside(project, release, tested, ARCHITECTURES[0])
        if fitting is not None:
            versions[project] = fitting.version
    for project, version in versions.items():
        if table.companion(project, version) is None:
            found = [_ask(project, version, pythons, architecture)[0] for architecture in architectures]
            wheels = [row(python, each, project) for part in found for python, each in part.items()]
            rows.append(companion_text(project, version, wheels, table))
    return versions, rows


def _wheel_lines(wheels: List[UpstreamWheel]) -> str:
    lines = [
        f'    {{ python = "{w.python}", size = {w.size}, sha256 = "{w.sha256}", file = "{w.file}" }},\n' for w in wheels
    ]
    return "wheels = [\n" + "".join(lines) + "]\n"


def release_text(
    version: str, result: survey.Survey, tested: str, companions: Dict[str, str], wheels: List[UpstreamWheel]
) -> str:
    named = ", ".join(f'{name} = "{companions[name]}"' for name in sorted(companions))
    head = f'\n[[release]]\ntorch = "{version}"\ncuda = "{result.cuda}"\ncxx11_abi = {result.cxx11_abi}\n'
    return head + f'tested = "{tested}"\ntrial = true\ncompanions = {{ {named} }}\n' + _wheel_lines(wheels)


def companion_text(project: str, version: str, wheels: List[UpstreamWheel], table: Table) -> str:
    """A row, treated as the newest one of the project is."""
    like: Companion = max((c for c in table.companions if c.name == project), key=lambda c: Version(c.version))
    removed = ", ".join(f'"{pattern}"' for pattern in like.remove)
    wants = "wants_torch = true\n" if like.wants_torch else ""
    head = f'\n[[companion]]\nname = "{project}"\nversion = "{version}"\n'
    return f"{head}{wants}remove = [{removed}]\n" + _wheel_lines(wheels)


def said(version: str, nearest: Release, result: survey.Survey, companions: Dict[str, str]) -> str:
    """What was found and what is left to do."""
    shared = sum(text is None for text in result.patches.values())
    lines = [
        f"torch {version}: CUDA {result.cuda}, C++11 ABI {result.cxx11_abi}, beside it "
        + (", ".join(f"{name} {companions[name]}" for name in sorted(companions)) or "nothing"),
        f"patches: {len(result.patches) - len(result.unfit)} of {len(result.patches)} fit, {shared} shared with others",
        *[f"  to do: {line}" for line in result.unfit],
        f"symbols: {sum(map(len, result.symbols.values()))} new, each refused by name until it is written",
        *[f"  {name}: {' '.join(new)}" for name, new in result.symbols.items()],
        *[f"  to do: a row of {name} in cu_bridge/shims/libraries.txt" for name in result.unknown_libraries],
        f"operators.toml: not in this release: {', '.join(result.gone) or 'nothing'}",
        f"operators with a CUDA kernel that nothing stands for: {', '.join(result.uncovered) or 'none'}",
        f"then, as CONTRIBUTING.md has it: build, macatorch/codegen/cpu_dtypes.py --write (the table is that of "
        f"{nearest.torch}), build again, verify, test",
    ]
    return "\n".join(lines)


def write(version: str, result: survey.Survey, text: str, rows: List[str], checkout: Path = CHECKOUT) -> None:
    """Write everything; the row of the release last, so that what was interrupted is begun anew."""
    folder = checkout / "patches" / version
    files: List[Tuple[Path, Optional[str]]] = [(folder / name, own) for name, own in result.patches.items()]
    files += [(folder / "series", "".join(f"{name}\n" for name in result.patches))]
    files += survey.added_symbols(checkout, result.symbols)
    files += [(checkout / survey.DTYPES / f"{version}.toml", result.dtypes)]
    if rows:
        table = TABLE.with_name(COMPANIONS)
        files += [(table, table.read_text(encoding="utf-8") + "".join(rows))]
    files += [(TABLE, TABLE.read_text(encoding="utf-8") + text)]
    for path, content in files:
        if content is None:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_text(content, encoding="utf-8")
        os.replace(str(part), str(path))
        note(f"  written: {path.relative_to(checkout)}")
