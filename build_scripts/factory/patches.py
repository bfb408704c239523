"""Applying patches/<release>/series without fuzz.

Patches are unified diffs, ``-p1`` relative to site-packages, with free text before the first ``---``. A hunk fits
where every context and removed line matches exactly: at its line number, else at the only other place where it does.
A series names patches of its own folder, or ``<folder>/<patch>``: what is the same in two releases stands once.
``@MACA_VERSION@`` in a patch stands for the SDK's version.
"""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional

from ..errors import FactoryError

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
PLACEHOLDER = "@MACA_VERSION@"
NO_FILE = "/dev/null"


@dataclass
class Hunk:
    """``old`` and ``new`` are lines with their line ends; ``start`` is the 1-based line in the old file."""

    start: int
    old: List[str] = field(default_factory=list)
    new: List[str] = field(default_factory=list)


@dataclass
class FilePatch:
    """The hunks of one file. ``creates``/``deletes``: the file is not there before/after."""

    path: str
    creates: bool = False
    deletes: bool = False
    hunks: List[Hunk] = field(default_factory=list)


@dataclass
class Patch:
    """One entry of a series."""

    name: str
    sha256: str
    files: List[FilePatch]


def series(folder: Path) -> List[str]:
    """The names in ``folder/series``, in order; ``#`` starts a comment."""
    listing = folder / "series"
    if not listing.is_file():
        raise FactoryError(
            f"{folder.parent.name}/{folder.name}/series is missing.", "Each release needs its series of patches."
        )
    lines = (line.split("#")[0].strip() for line in listing.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def place(folder: Path, name: str) -> Path:
    """Where the patch lies that the series in ``folder`` calls ``name``."""
    return folder.parent / name if "/" in name else folder / name


def _said(name: str, folder: str) -> str:
    return f"patches/{name}" if "/" in name else f"patches/{folder}/{name}"


def load(folder: Path, sdk_version: str) -> List[Patch]:
    """Read a release's series."""
    patches = []
    for name in series(folder):
        path = place(folder, name)
        if not path.is_file():
            raise FactoryError(f"patches/{folder.name}/series names {name}, which does not exist.")
        data = path.read_bytes()
        text = data.decode("utf-8").replace(PLACEHOLDER, sdk_version)
        files = parse(text, _said(name, folder.name))
        patches.append(Patch(name, hashlib.sha256(data).hexdigest(), files))
    return patches


def _target(old: str, new: str, where: str) -> str:
    path = (old if new == NO_FILE else new).split("\t")[0]
    parts = path.split("/")[1:]
    if not parts or ".." in parts or path.startswith("/"):
        raise FactoryError(f"{where}: {path} is no path of the form b/torch/….")
    return "/".join(parts)


def parse(text: str, where: str) -> List[FilePatch]:
    """The file patches of a unified diff. Raises FactoryError for what is none."""
    files: List[FilePatch] = []
    lines = text.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        if lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            old, new = lines[at][4:].split("\t")[0].rstrip(), lines[at + 1][4:].split("\t")[0].rstrip()
            files.append(FilePatch(_target(old, new, where), creates=old == NO_FILE, deletes=new == NO_FILE))
            at += 2
            continue
        match = HUNK.match(lines[at])
        if match and files:
            hunk = Hunk(int(match.group(1)))
            at = _read_hunk(lines, at + 1, hunk, int(match.group(2) or 1), int(match.group(4) or 1), where)
            files[-1].hunks.append(hunk)
            continue
        at += 1
    if not files or not all(file.hunks for file in files):
        raise FactoryError(f"{where} is no unified diff, or one of its files has no hunk.")
    return files


def _read_hunk(lines: List[str], at: int, hunk: Hunk, old_count: int, new_count: int, where: str) -> int:
    while len(hunk.old) < old_count or len(hunk.new) < new_count:
        line = lines[at] if at < len(lines) else ""
        kind, body = line[:1], line[1:]
        if line == "\n":
            # Some editors strip the blank that marks an empty context line.
            kind, body = " ", "\n"
        if kind not in (" ", "-", "+"):
            raise FactoryError(f"{where}: the hunk before line {at + 1} is shorter than its header says.")
        if kind in " -":
            hunk.old.append(body)
        if kind in " +":
            hunk.new.append(body)
        at += 1
        if at < len(lines) and lines[at].startswith("\\"):
            for side in [hunk.old] if kind == "-" else [hunk.new] if kind == "+" else [hunk.old, hunk.new]:
                side[-1] = side[-1].rstrip("\n")
            at += 1
    return at


def _place(lines: List[str], hunk: Hunk, expected: int) -> Optional[int]:
    size = len(hunk.old)
    if lines[expected : expected + size] == hunk.old and expected >= 0:
        return expected
    if not size:
        return None
    places = [i for i in range(len(lines) - size + 1) if lines[i] == hunk.old[0] and lines[i : i + size] == hunk.old]
    return places[0] if len(places) == 1 else None


def apply(patches: List[Patch], read: Callable[[str], Optional[bytes]], release: str) -> Dict[str, Optional[bytes]]:
    """The files that the series changes, with their new content (None: removed).

    ``read`` gives a file's content before the series, None where there is no such file. Nothing is applied in part:
    the first hunk that does not fit raises FactoryError and names itself, its patch and the release.
    """
    changed: Dict[str, Optional[bytes]] = {}
    for patch in patches:
        for file in patch.files:
            content = changed[file.path] if file.path in changed else read(file.path)
            changed[file.path] = _apply_file(file, content, _said(patch.name, release), release)
    return changed


def _apply_file(file: FilePatch, content: Optional[bytes], where: str, release: str) -> Optional[bytes]:
    way_out = f"Make the patch anew against torch {release} as it is after the patches before it in the series."
    if file.creates != (content is None):
        state = "exists already" if file.creates else "does not exist"
        raise FactoryError(f"{where} does not fit torch {release}: {file.path} {state}.", way_out)
    lines = (content or b"").decode("utf-8").splitlines(keepends=True)
    shift = 0
    for number, hunk in enumerate(file.hunks, start=1):
        expected = max(hunk.start - (1 if hunk.old else 0), 0) + shift
        place = _place(lines, hunk, expected)
        if place is None:
            first = next((line.strip() for line in hunk.old if line.strip()), "")
            raise FactoryError(
                f"{where} does not fit torch {release}: hunk {number} of {len(file.hunks)}, {file.path} line"
                f' {hunk.start} ("{first[:60]}").',
                way_out,
            )
        lines[place : place + len(hunk.old)] = hunk.new
        shift += len(hunk.new) - len(hunk.old) + place - expected
    if file.deletes:
        if lines:
            raise FactoryError(
                f"{where} does not fit torch {release}: {file.path} is not empty after its removal.", way_out
            )
        return None
    return "".join(lines).encode("utf-8")
