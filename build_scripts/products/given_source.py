"""Sources that the user gives: a folder or an archive of a project that is in no index."""

import ast
import shutil
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Dict, List, NamedTuple, Optional

from .. import cache
from ..errors import FactoryError
from ..releases import Companion, Table

# What a build or a version control leaves beside sources. It counts for nothing.
LEFTOVERS = (*cache.IGNORED, ".git", "build", "dist")
SETUP = "setup.py"


class Project(NamedTuple):
    """What a setup.py says that it builds; None: it does not say so in plain words."""

    name: Optional[str]
    version: Optional[str]


def parse(table: Table, words: List[str]) -> Dict[str, Path]:
    """``name=path`` for each given source: the path by the companion's name."""
    known = sorted({companion.name for companion in table.companions if companion.is_given})
    found: Dict[str, Path] = {}
    for word in words:
        name, separator, path = word.partition("=")
        if not separator or not path:
            raise FactoryError(f"'{word}' names no source.", "Write it as --source NAME=PATH, as apex=/path/to/apex.")
        if name not in known:
            raise FactoryError(
                f"No companion called {name} is built from a given source.", f"Known: {', '.join(known)}."
            )
        found[name] = Path(path)
    return found


def project(text: str) -> Project:
    """The name and the version in the call of ``setup``."""
    for node in ast.walk(ast.parse(text)):
        function = node.func if isinstance(node, ast.Call) else None
        called = getattr(function, "id", None) or getattr(function, "attr", None)
        if isinstance(node, ast.Call) and called == "setup":
            said = {
                keyword.arg: str(keyword.value.value)
                for keyword in node.keywords
                if keyword.arg and isinstance(keyword.value, ast.Constant)
            }
            return Project(said.get("name"), said.get("version"))
    return Project(None, None)


def copy(source: Path, companion: Companion, work: Path) -> Path:
    """A copy of the source's top folder in ``work``, checked to be that companion's."""
    if not source.exists():
        raise FactoryError(
            f"{source} does not exist.",
            f"--source {companion.name}=PATH takes the folder of its sources, or an archive.",
        )
    if source.is_dir():
        if not (source / SETUP).is_file():
            raise FactoryError(
                f"{source} has no {SETUP}: it is not the top folder of {companion.name}'s sources.", _way_out(companion)
            )
        top = work / companion.name
        shutil.copytree(str(source), str(top), ignore=shutil.ignore_patterns(*LEFTOVERS))
    else:
        unpacked = work / "unpacked"
        unpacked.mkdir()
        _unpack(source, unpacked)
        tops = [path.parent for path in sorted(unpacked.glob(f"*/{SETUP}")) + sorted(unpacked.glob(SETUP))]
        if len(tops) != 1:
            raise FactoryError(f"{source} holds {len(tops)} folders with a {SETUP}, not one.", _way_out(companion))
        top = work / companion.name
        tops[0].rename(top)
    try:
        found = project((top / SETUP).read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise FactoryError(f"{SETUP} of {source} cannot be read: {error}", _way_out(companion)) from error
    if found != (companion.name, companion.version):
        raise FactoryError(
            f"{source} is the source of {found.name or 'something'} {found.version or 'of no version'}, "
            f"not of {companion.name} {companion.version}.",
            _way_out(companion),
        )
    return top


def _way_out(companion: Companion) -> str:
    return f"Give the sources of {companion.name} {companion.version}: --source {companion.name}=PATH."


def _unpack(archive: Path, target: Path) -> None:
    """Regular files alone, and none that would lie outside."""
    try:
        if zipfile.is_zipfile(str(archive)):
            with zipfile.ZipFile(str(archive)) as members:
                for info in members.infolist():
                    _require_inside(info.filename, archive)
                members.extractall(str(target))
            return
        with tarfile.open(str(archive)) as tar:
            wanted = [member for member in tar if member.isfile() or member.isdir()]
            for member in wanted:
                _require_inside(member.name, archive)
            tar.extractall(str(target), members=wanted)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise FactoryError(f"{archive} is no archive of sources, or is damaged: {error}") from error


def _require_inside(name: str, archive: Path) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise FactoryError(f"{archive} is refused: its member {name!r} leads out of it.")
