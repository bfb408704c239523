"""Reading a record. Every file is loaded with weights_only=True: nothing in it can run code."""

import io
import json
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from maca_tools.accuracy import names
from maca_tools.accuracy.data import capture, summary
from maca_tools.accuracy.errors import AccuracyError

# Of the whole folder. 1 kept layouts and sketches as other types.
FORMAT = 2
_META, _ORDER = "record.json", "order.jsonl"


class Entry(NamedTuple):
    """One operator of a record: its name and the files and tensor shapes that the order file promises."""

    name: names.FullName
    parts: Tuple[str, ...]
    signature: Tuple[Any, ...]
    position: int


class Part(NamedTuple):
    """The content of one file, flat: path -> tensor, TensorSummary or plain value. problem says why it is empty."""

    values: Dict[str, Any]
    stack: List[str]
    origin: Dict[str, Dict[str, Any]]
    content: Dict[str, Any]
    problem: str = ""


class Stream:
    """One folder with an order file: a rank, a thread, a child process, or all of a simple run."""

    def __init__(self, folder: str, key: str) -> None:
        self.folder, self.key = folder, key
        self.meta = _read_meta(folder)
        self.level = int(self.meta.get("options", {}).get("record_level", 2))
        self.warnings: List[str] = []
        self.entries = self._read_order()

    def _read_order(self) -> List[Entry]:
        path = os.path.join(self.folder, _ORDER)
        if not os.path.exists(path):
            return []
        found: Dict[str, Dict[str, Any]] = {}
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                try:
                    data = json.loads(line)
                    name, part = str(data["name"]), str(data["part"])
                    shapes = tuple((str(dtype), tuple(shape)) for dtype, shape in data.get("tensors", []))
                except (ValueError, KeyError, TypeError):
                    self.warnings.append(
                        f"{path}, line {number} is not whole (a killed run leaves one such line); passed over"
                    )
                    continue
                if part not in ("input", "output"):
                    self.warnings.append(f"{path}, line {number}: no such part: {part[:40]!r}")
                    continue
                found.setdefault(name, {})[part] = shapes
        entries: List[Entry] = []
        for text, parts in found.items():
            full = names.parse(text)
            if full is None:
                self.warnings.append(f"{path}: {text[:80]!r} is no operator's full name; passed over")
                continue
            shapes = tuple((part, parts[part]) for part in sorted(parts))
            entries.append(Entry(full, tuple(sorted(parts)), shapes, len(entries)))
        return entries

    def path(self, entry: Entry, part: str) -> str:
        return os.path.join(self.folder, f"{entry.name}.{part}.pt")

    def load(self, entry: Entry, part: str) -> Part:
        return load(self.path(entry, part))

    def size(self, name: names.FullName, part: str) -> Optional[int]:
        """Bytes of one file, None if it is missing."""
        try:
            return os.path.getsize(os.path.join(self.folder, f"{name}.{part}.pt"))
        except OSError:
            return None

    def content(self, name: names.FullName, part: str) -> Dict[str, Any]:
        """One file as it was stored. Raises what torch.load raises."""
        found: Dict[str, Any] = _load_plain(os.path.join(self.folder, f"{name}.{part}.pt"))
        return found


def _read_meta(folder: str) -> Dict[str, Any]:
    path = os.path.join(folder, _META)
    try:
        with open(path, encoding="utf-8") as file:
            meta = json.load(file)
    except (OSError, ValueError) as error:
        raise AccuracyError(f"{path} cannot be read: {error}") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise AccuracyError(f"{path} is of another format than this version reads ({FORMAT}): record it again")
    return meta


def check_torch() -> None:
    """AccuracyError where torch cannot load plain data with weights_only: 1.13 does not know floats there."""
    file = io.BytesIO()
    torch.save({"number": 1.5}, file)
    file.seek(0)
    try:
        torch.load(file, weights_only=True)
    except Exception as error:
        raise AccuracyError(
            f"torch {torch.__version__} records, but cannot load plain numbers with weights_only; "
            "read its records with torch 2 or later"
        ) from error


def streams(folder: str) -> Dict[str, Stream]:
    """All streams of a record by their relative path ("" for the folder itself); AccuracyError if it is no record."""
    check_torch()
    if not os.path.isdir(folder):
        raise AccuracyError(f"{folder} is not a folder")
    found: Dict[str, Stream] = {}
    for place, folders, files in os.walk(folder):
        folders.sort()
        key = os.path.relpath(place, folder)
        if key.count(os.sep) > 3:
            folders.clear()
        if _META in files:
            stream = Stream(place, "" if key == "." else key)
            found[stream.key] = stream
    if not found:
        raise AccuracyError(f"{folder} holds no record: no {_META} in it or below it")
    if len(found) > 1 and "" in found and not found[""].entries:
        del found[""]
    return found


def load(path: str) -> Part:
    """One file; what cannot be loaded is a Part without values whose problem names the file."""
    name = os.path.basename(path)
    if not os.path.exists(path):
        return Part({}, [], {}, {}, f"{name} is missing")
    try:
        content = _load_plain(path)
    except Exception as error:
        why = str(error).split("\n")[0][:160]
        text = f"{type(error).__name__} {error}"
        if "eights_only" in text or "Unpickling" in text or "Unsupported" in text:
            return Part({}, [], {}, {}, f"{name} is refused: it needs more than plain data to load ({why})")
        return Part({}, [], {}, {}, f"{name} is damaged ({why})")
    if not isinstance(content, dict) or "values" not in content:
        return Part({}, [], {}, {}, f"{name} is no file of a record")
    try:
        values: Dict[str, Any] = dict(_flat(content["values"], ""))
    except (TypeError, ValueError) as error:
        return Part({}, [], {}, {}, f"{name} is damaged ({error})")
    stack = [line for line in str(content.get("stack") or "").split("\n") if line]
    try:
        origin = {str(entry["path"]): entry for entry in layout(content)}
        for path, value in values.items():
            if isinstance(value, torch.Tensor) and list(value.shape) != list(origin[path]["shape"]):
                raise ValueError(f"{path} has the shape {list(value.shape)}")
    except (KeyError, TypeError, ValueError) as error:
        return Part({}, [], {}, {}, f"{name} is damaged (its tensors and the list of their layouts disagree: {error})")
    return Part(values, stack, origin, content)


def layout(content: Dict[str, Any]) -> List[Dict[str, Any]]:
    """What a file says of each of its tensors as it was before the copy: path, dtype, shape, stride, device.

    Raises TypeError or ValueError where it says no such thing.
    """
    found = json.loads(content["tensors"])
    if not all(isinstance(entry, dict) for entry in found):
        raise ValueError("no list of layouts")
    return list(found)


# A smaller file is read faster than it is mapped.
_MAPPED = 1 << 20


def _load_plain(path: str) -> Any:
    if os.path.getsize(path) >= _MAPPED:
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except TypeError as error:
            # torch before 2.1 cannot map a file.
            if "mmap" not in str(error):
                raise
    return torch.load(path, map_location="cpu", weights_only=True)


def _flat(value: Any, path: str) -> Iterator[Tuple[str, Any]]:
    if isinstance(value, dict):
        if value.get(capture.KIND) == "summary":
            yield path, summary.from_dict(value)
            return
        for key, part in value.items():
            if key != capture.KIND:
                yield from _flat(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from _flat(part, f"{path}[{index}]")
    elif value is not None:
        yield path, value
