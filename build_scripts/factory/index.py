"""A simple index (PEP 503) over a folder of wheels."""

import html
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Dict, List, Sequence
from urllib.parse import quote

from packaging.utils import canonicalize_name

from .. import cache
from ..errors import FactoryError
from . import metadata
from .wheel import WheelReader

FOLDER = "simple"
HASHES = ".hashes.json"


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
    """Write ``folder/simple`` for all wheels in ``folder``, and for ``others`` below it. Returns the index's root."""
    wheels = own_wheels(folder) + list(others)
    root = folder / FOLDER
    root.mkdir(exist_ok=True)
    digests = _hashes(root, wheels)
    projects = defaultdict(list)
    for wheel in wheels:
        with WheelReader(wheel) as reader:
            text = reader.read(f"{reader.dist_info}/METADATA").decode("utf-8")
        requires = metadata.parse(text).get("Requires-Python", "")
        attribute = f' data-requires-python="{html.escape(requires)}"' if requires else ""
        link = f"../../{quote(wheel.relative_to(folder).as_posix())}#sha256={digests[wheel.name]}"
        projects[canonicalize_name(wheel.name.split("-")[0])].append(
            f'<a href="{link}"{attribute}>{html.escape(wheel.name)}</a>'
        )
    for project, links in projects.items():
        (root / project).mkdir(exist_ok=True)
        _replace(root / project / "index.html", _page(f"Links for {project}", links))
    for page in root.glob("*/index.html"):
        if page.parent.name not in projects:
            page.unlink()
            page.parent.rmdir()
    _replace(root / "index.html", _page("Simple index", [f'<a href="{name}/">{name}</a>' for name in sorted(projects)]))
    return root
