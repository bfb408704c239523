"""Wheels of upstream's Python from its source distribution, with an extension of ours in the place of the compiled one.

The extension is Python over torch's operators, so that one wheel serves every release and every Python.
"""

import hashlib
import json
import tarfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Dict, List, Optional

from packaging.specifiers import SpecifierSet

from .. import cache, python_names
from ..errors import FactoryError
from ..factory import metadata, package_index, upstream
from ..factory.wheel import WheelWriter
from ..progress import step
from ..releases import CHECKOUT, Companion, SourceDistribution, Table, sdk_version
from . import sdk_wheel

MANIFEST = "maca.json"
TAG = "py3-none-any"
# A folder for each companion; what lies in it goes into the wheel.
SOURCES = "macatorch/companions"
LICENCES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS")


def file_name(companion: Companion, version: str) -> str:
    return f"{companion.name}-{metadata.local_version(companion.version, version)}-{TAG}.whl"


def build(
    table: Table, companion: Companion, python: str, output: Path, given: Optional[Path], checkout: Path = CHECKOUT
) -> Path:
    """Build the wheel. ``given`` counts where it is a folder with the source distribution."""
    source = companion.source
    assert source is not None
    version = sdk_version(checkout)
    own = own_files(companion, checkout)
    there = given is not None and given.is_dir() and (given / source.file).is_file()
    archive = upstream.obtain_file(source, given if there else None, lambda work: _download(source, work))
    with step(f"Reading {source.file}"):
        members = read(archive, source)
    text = members["PKG-INFO"].decode("utf-8")
    _check_python(text, companion, python)
    name = file_name(companion, version)
    writer = WheelWriter(f"{companion.name}-{metadata.local_version(companion.version, version)}.dist-info")
    removed = []
    for member, content in members.items():
        if not member.startswith(f"{companion.name}/"):
            continue
        if any(fnmatch(member, pattern) for pattern in companion.remove):
            removed.append(member)
        else:
            writer.add_bytes(member, content)
    for member, path in own.items():
        writer.add_file(member, path, executable=False)
    manifest = {
        "name": companion.name,
        "version": companion.version,
        "sdk": version,
        "upstream": {"file": source.file, "sha256": source.sha256},
        "extension": {member: _digest(path.read_bytes()) for member, path in own.items()},
        "removed": removed,
    }
    _add_metadata(writer, members, text, table, companion, version, manifest)
    with cache.lock(f"wheel-{name}"):
        return sdk_wheel.write_atomically(writer, output, name)


def _download(source: SourceDistribution, work: Path) -> Path:
    target = work / source.file
    with step(f"Fetching {source.file} ({source.size / 1e6:.0f} MB)"):
        package_index.fetch(package_index.link_of(source.project, source.file), target)
    return target


def read(archive: Path, source: SourceDistribution) -> Dict[str, bytes]:
    """The files of a source distribution by their name below its top folder; C++ sources and tests are left out."""
    wanted = f"{source.project}-{source.version}"
    members: Dict[str, bytes] = {}
    try:
        with tarfile.open(str(archive), "r:gz") as tar:
            for member in tar:
                parts = PurePosixPath(member.name).parts
                if not member.isfile() or ".." in parts or parts[:1] != (wanted,):
                    continue
                inner = "/".join(parts[1:])
                if inner.startswith((f"{source.project}/", f"{source.project}.egg-info/")) or len(parts) == 2:
                    file = tar.extractfile(member)
                    assert file is not None
                    members[inner] = file.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FactoryError(f"{archive.name} is damaged: {error}", "Fetch it again.") from error
    if "PKG-INFO" not in members or f"{source.project}/__init__.py" not in members:
        raise FactoryError(
            f"{archive.name} is no source distribution of {wanted}: it has no such folder with PKG-INFO."
        )
    return members


def own_files(companion: Companion, checkout: Path) -> Dict[str, Path]:
    """The files of our extension, by their name in the wheel."""
    folder = checkout / SOURCES / companion.name
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*.py"))
        if "__pycache__" not in path.parts
    }
    if not files:
        raise FactoryError(f"{SOURCES}/{companion.name} is missing.", "Run the command in a complete checkout.")
    return files


def _check_python(text: str, companion: Companion, python: str) -> None:
    wanted = metadata.parse(text).get("Requires-Python")
    if wanted and not SpecifierSet(wanted).contains(python_names.number(python)):
        raise FactoryError(
            f"{companion.name} {companion.version} is for Python {wanted}, not for {python}.",
            "Choose another Python, or name an older version for the release in releases.toml.",
        )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _add_metadata(
    writer: WheelWriter,
    members: Dict[str, bytes],
    text: str,
    table: Table,
    companion: Companion,
    version: str,
    manifest: Dict[str, Any],
) -> None:
    requirements = members.get(f"{companion.name}.egg-info/requires.txt", b"").decode("utf-8")
    if metadata.parse(text).get("Requires-Dist") is None:
        text = metadata.with_requirements(text, _plain(requirements))
    top_level = sorted({path.split("/")[0] for path in manifest["extension"]} | {companion.name})
    ours = {
        "METADATA": metadata.rewrite_companion(text, companion.version, table, version),
        "WHEEL": metadata.wheel_file([TAG], pure=True),
        "top_level.txt": "".join(f"{name}\n" for name in top_level),
        MANIFEST: json.dumps(manifest, indent=1, sort_keys=True) + "\n",
    }
    for name, content in members.items():
        if name.upper().startswith(LICENCES):
            writer.add_bytes(f"{writer.dist_info}/licenses/{name}", content)
    for rest, words in ours.items():
        writer.add_bytes(f"{writer.dist_info}/{rest}", words.encode("utf-8"))


def _plain(requirements: str) -> List[str]:
    """The requirements of setuptools' file that stand before its first section, which would be an extra's."""
    lines = requirements.split("[", 1)[0].splitlines()
    return [line.strip() for line in lines if line.strip()]


def failures(companion: Companion, members: List[str], contents: Dict[str, str], manifest: Dict[str, Any]) -> List[str]:
    """What is wrong with a finished wheel, beside what holds for all. ``contents``: sha256 of its files."""
    found = [f"{name} should not be there" for name in members if any(fnmatch(name, p) for p in companion.remove)]
    found += [f"{name} is compiled" for name in members if name.endswith((".so", ".cpp", ".cu"))]
    for name, path in own_files(companion, CHECKOUT).items():
        digest = _digest(path.read_bytes())
        if manifest["extension"].get(name) != digest:
            found.append(f"{name} is not in its present form; build the wheel again")
        elif contents.get(name) != digest:
            found.append(f"{name} is not as it was built")
    return found
