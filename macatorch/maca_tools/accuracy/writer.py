"""The bounded background writer: files appear whole, in order, and the run waits when the disk is slower than it."""

import json
import os
import sys
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional

import torch

from maca_tools.accuracy import capture
from maca_tools.accuracy.errors import AccuracyError

_DEFAULT_QUEUE_MB = 256
_PROGRESS_EVERY_S = 5.0


class Item:
    """One file to write: values are Copied tensors in plain data; lines go to the order file before the file's own."""

    __slots__ = ("folder", "name", "part", "values", "extra", "bytes")

    def __init__(self, folder: str, name: str, part: str, values: Any, extra: Dict[str, Any]) -> None:
        self.folder, self.name, self.part, self.values, self.extra = folder, name, part, values, extra
        self.bytes = capture.size(values) + 4096


class Writer:
    def __init__(self, level: int) -> None:
        self._level = level
        self._limit = int(os.environ.get("MACA_ACCURACY_QUEUE_MB", _DEFAULT_QUEUE_MB)) << 20
        self._queue: Deque[Item] = deque()
        self._queued = 0
        self._changed = threading.Condition()
        self._closing = False
        self._error: Optional[AccuracyError] = None
        self._orders: Dict[str, Any] = {}
        self._files = 0
        self._bytes = 0
        self._shown = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="maca-accuracy-writer", daemon=True)
        self._thread.start()

    def put(self, item: Item) -> None:
        """Queue one file; waits while more than the limit is queued. Raises AccuracyError once writing has failed."""
        with self._changed:
            while self._error is None and self._queue and self._queued + item.bytes > self._limit:
                self._changed.wait()
            self._raise()
            self._queue.append(item)
            self._queued += item.bytes
            self._changed.notify_all()

    def close(self) -> None:
        """Write what is queued and stop. Raises AccuracyError if something could not be written."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        while self._thread.is_alive():
            self._thread.join(timeout=_PROGRESS_EVERY_S)
            if self._thread.is_alive():
                print(f"accuracy: {len(self._queue)} files ({self._queued >> 20} MB) still to write", file=sys.stderr)
        for order in self._orders.values():
            order.close()
        self._orders.clear()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if not self._queue:
                    return
                item = self._queue.popleft()
            try:
                self._write(item)
            except Exception as error:
                with self._changed:
                    self._error = AccuracyError(
                        f"the record cannot be written to {item.folder}: {error}. "
                        f"What is there is whole, but ends before {item.name}.{item.part}"
                    )
                    self._queue.clear()
                    self._queued = 0
                    self._changed.notify_all()
                return
            with self._changed:
                self._queued -= item.bytes
                self._changed.notify_all()
            del item
            self._progress()

    def _write(self, item: Item) -> None:
        file = f"{item.name}.{item.part}.pt"
        path = os.path.join(item.folder, file)
        layout: List[Dict[str, Any]] = []
        values = capture.stored(item.values, self._level, layout)
        content = {
            "name": item.name,
            "part": item.part,
            "level": self._level,
            "values": values,
            "tensors": layout,
            **item.extra,
        }
        # A name of its own until it is whole: a reader never meets half a file.
        partial = os.path.join(item.folder, "partial.tmp")
        try:
            torch.save(content, partial)
            size = os.path.getsize(partial)
            os.replace(partial, path)
        except BaseException:
            if os.path.exists(partial):
                os.unlink(partial)
            raise
        line = {"name": item.name, "part": item.part, "bytes": size, "tensors": _signature(values, layout)}
        self._order(item.folder).write(json.dumps(line) + "\n")
        self._order(item.folder).flush()
        self._files += 1
        self._bytes += size

    def _order(self, folder: str) -> Any:
        if folder not in self._orders:
            self._orders[folder] = open(os.path.join(folder, "order.jsonl"), "a", encoding="utf-8")  # noqa: SIM115
        return self._orders[folder]

    def _progress(self) -> None:
        if time.monotonic() - self._shown > _PROGRESS_EVERY_S:
            self._shown = time.monotonic()
            print(
                f"accuracy: {self._files} files, {self._bytes / 1e9:.2f} GB written, {len(self._queue)} queued",
                file=sys.stderr,
            )


def _signature(values: Any, layout: List[Dict[str, Any]]) -> List[Any]:
    """dtype and shape of each tensor, for alignment without opening the files."""
    if layout:
        return [[entry["dtype"], entry["shape"]] for entry in layout]
    found: List[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get(capture.KIND) == "summary":
                found.append([value["dtype"], value["shape"]])
            else:
                for part in value.values():
                    walk(part)
        elif isinstance(value, (list, tuple)):
            for part in value:
                walk(part)

    walk(values)
    return found
