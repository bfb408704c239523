"""A simple index over a folder of wheels: HTML (PEP 503) and JSON (PEP 691) pages, metadata as files (PEP 658)."""

import hashlib
import html
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence
from urllib.parse import quote

from packaging.utils import canonicalize_name, parse_wheel_filename

from .. import cache
from ..errors import FactoryError
from . import metadata
from .wheel import WheelReader

FOLDER = "simple"
HASHES = ".hashes.json"
PAGES = ("index.html", "index.json")
METADATA = ".metadata"
API = {"api-version": "1.1"}


class File(NamedTuple):
    """A wheel as the pages name it. ``url`` is relative to a project's page; the digests are sha256 in hex."""

    name: str
    url: str
    size: int
    digest: str
    metadata_digest: str
    requires_python: str

    def link(self) -> str:
        metadata_attributes = "".join(
            f' data-{key}-metadata="sha256={self.metadata_digest}"' for key in ("core", "dist-info")
        )
        python = f' data-requires-python="{html.escape(self.requires_python)}"' if self.requires_python else ""
        return f'<a href="{self.url}#sha256={self.digest}"{python}{metadata_attributes}>{html.escape(self.name)}</a>'

    def entry(self) -> Dict[str, object]:
        python = {"requires-python": self.requires_python} if self.requires_python else {}
        return {
            "filename": self.name,
            "url": self.url,
            "size": self.size,
            "hashes": {"sha256": self.digest},
            "core-metadata": {"sha256": self.metadata_digest},
            **python,
        }


def _page(title: str, links: List[str]) -> str:
    body = "".join(f"    {link}<br>\n" for link in links)
    return (
        '<!DOCTYPE html>\n<html>\n  <head>\n    <meta name="pypi:repository-version" content="1.0">\n'
        f"    <title>{html.escape(title)}</title>\n  </head>\n  <body>\n{body}  </body>\n</html>\n"
    )


def _hashes(folder: Path, wheels: List[Path]) -> Dict[str, str]:
    """Each wheel's sha256, remembered from the last time where size and time have not changed."""
    store = folder / HASHES
    try:
        known = json.loads(store.read_text())
    except (OSError, ValueError):
        known = {}
    result, kept = {}, {}
    for wheel in wheels:
        status = wheel.stat()
        stamp = f"{status.st_size}-{status.st_mtime_ns}"
        old = known.get(wheel.name, {})
        digest = old["sha256"] if old.get("stamp") == stamp else cache.sha256_of(wheel)
        result[wheel.name] = digest
        kept[wheel.name] = {"stamp": stamp, "sha256": digest}
    _replace(store, json.dumps(kept, indent=1, sort_keys=True))
    return result


def _replace(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(str(part), str(path))


def own_wheels(folder: Path) -> List[Path]:
    """The finished wheels in a folder."""
    wheels = sorted(path for path in folder.glob("*.whl") if not path.name.startswith("."))
    if not wheels:
        raise FactoryError(f"There is no wheel in {folder}.", "Build one first: python -m build_scripts build")
    return wheels


def build(folder: Path, others: Sequence[Path] = ()) -> Path:
    """Write ``folder/simple`` for all wheels in ``folder``, and for ``others`` below it. Returns the index's root.

    Each wheel's metadata is left beside it, as ``<wheel>.metadata``. Raises where ``folder/simple`` holds what no index
    wrote, before anything is changed.
    """
    wheels = own_wheels(folder) + list(others)
    root = folder / FOLDER
    _refuse_foreign(root)
    texts = {wheel: _metadata(wheel) for wheel in wheels}
    root.mkdir(exist_ok=True)
    digests = _hashes(root, wheels)
    projects: Dict[str, List[File]] = defaultdict(list)
    for wheel in wheels:
        _replace(wheel.with_name(wheel.name + METADATA), texts[wheel])
        file = File(
            wheel.name,
            f"../../{quote(wheel.relative_to(folder).as_posix())}",
            wheel.stat().st_size,
            digests[wheel.name],
            hashlib.sha256(texts[wheel].encode()).hexdigest(),
            metadata.parse(texts[wheel]).get("Requires-Python", ""),
        )
        projects[canonicalize_name(wheel.name.split("-")[0])].append(file)
    for project, files in projects.items():
        (root / project).mkdir(exist_ok=True)
        _replace(root / project / "index.html", _page(f"Links for {project}", [file.link() for file in files]))
        versions = sorted({str(parse_wheel_filename(file.name)[1]) for file in files})
        page = {"meta": API, "name": project, "versions": versions, "files": [file.entry() for file in files]}
        _replace(root / project / "index.json", json.dumps(page, indent=1))
    for old in root.iterdir():
        if old.is_dir() and old.name not in projects:
            for name in PAGES:
                (old / name).unlink(missing_ok=True)
            old.rmdir()
    for stray in {wheel.parent for wheel in wheels}:
        for path in stray.glob(f"*.whl{METADATA}"):
            if not path.with_name(path.name[: -len(METADATA)]).exists():
                path.unlink()
    names = sorted(projects)
    _replace(root / "index.html", _page("Simple index", [f'<a href="{name}/">{name}</a>' for name in names]))
    listed = {"meta": API, "projects": [{"name": name} for name in names]}
    _replace(root / "index.json", json.dumps(listed, indent=1))
    return root


def _metadata(wheel: Path) -> str:
    with WheelReader(wheel) as reader:
        return reader.read(f"{reader.dist_info}/METADATA").decode("utf-8")


def _refuse_foreign(root: Path) -> None:
    """What a run that was killed left (``*.part``) is our own."""
    for path in root.rglob("*") if root.is_dir() else ():
        depth = len(path.relative_to(root).parts)
        page = path.name.replace(".part", "") in (*PAGES, HASHES) and depth <= 2
        if not (page or (path.is_dir() and depth == 1)):
            raise FactoryError(
                f"{path} was not written by this command.",
                "Move it elsewhere: simple/ holds the index alone, and each run writes it anew.",
            )
