"""The bounded background writer: files appear whole, in order, and the run waits when the disk is slower than it."""

import contextlib
import itertools
import json
import os
import sys
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, Iterable, List, NamedTuple, Optional, Tuple

from maca_tools.accuracy.data import capture, summary, tensor_file
from maca_tools.accuracy.data.direct_file import DirectFile
from maca_tools.accuracy.errors import AccuracyError

_DEFAULT_QUEUE_MB = 256
_PROGRESS_EVERY_S = 5.0
# Files whose ends are on the way to the disk while the next one is summed and copied.
_MOST_UNFINISHED = 3


class Item:
    """One file to write: values are Copied tensors in plain data, or the Summaries of tensors."""

    __slots__ = ("folder", "name", "part", "values", "extra", "bytes", "written")

    def __init__(
        self, folder: str, name: str, part: str, values: Any, extra: Dict[str, Any], written: "Optional[Written]" = None
    ) -> None:
        self.folder, self.name, self.part, self.values, self.extra = folder, name, part, values, extra
        self.written = written
        self.bytes = 4096
        if isinstance(values, capture.Summaries):
            self.bytes += len(values.signature) * summary.STORED_BYTES
        elif written is None:
            self.bytes += capture.size(values)


class Written(NamedTuple):
    """A file that is on the disk, or on its way there, under a name of its own until its turn comes."""

    partial: str
    size: int
    signature: List[Any]
    rest: "Optional[DirectFile]"

    def wait(self) -> None:
        if self.rest is not None:
            self.rest.wait()


class Writer:
    def __init__(self, level: int) -> None:
        self._level = level
        self._seen = summary.Seen()
        self._limit = int(os.environ.get("MACA_ACCURACY_QUEUE_MB", _DEFAULT_QUEUE_MB)) << 20
        # What is larger than this is not copied and queued: the run waits while it is written.
        self.large = self._limit // 4
        self._queue: Deque[Item] = deque()
        self._queued = 0
        self.most_queued = 0
        self._changed = threading.Condition()
        # What is put while the record is paused belongs to operators that had not ended by then: it is dropped.
        self._accepting = True
        self._closing = False
        # Threads that wait for room in the queue, and whether the writer's thread has work in its hands.
        self._waiting = 0
        self._busy = False
        self._error: Optional[AccuracyError] = None
        self._unfinished: Deque[Tuple[Item, Written]] = deque()
        self._orders: Dict[str, Any] = {}
        self._files = 0
        self._bytes = 0
        self._numbers = itertools.count()
        self._shown = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="maca-accuracy-writer", daemon=True)
        self._thread.start()

    def put(self, items: List[Item]) -> None:
        """Queue the files of one operator, all or, while the record is paused, none.

        Waits while more than the limit is queued. Raises AccuracyError once writing has failed.
        """
        size = sum(item.bytes for item in items)
        with self._changed:
            if not self._accepting:
                self._drop(items)
                return
            self._waiting += 1
            while self._error is None and self._queued and self._queued + size > self._limit:
                self._changed.wait()
            self._waiting -= 1
            if self._error is not None:
                self._drop(items)
                raise self._error
            self._queue.extend(items)
            self._queued += size
            self.most_queued = max(self.most_queued, self._queued)
            self._changed.notify_all()

    def _drop(self, items: Iterable[Item]) -> None:
        for item in items:
            if item.written is not None:
                self.discard(item.written)

    def summaries(self, values: Any) -> "capture.Summaries":
        """values with the summary of each tensor in its place, which takes no copy; for level 1."""
        return capture.summaries(values, self._seen)

    def write_through(self, folder: str, name: str, part: str, values: Any, extra: Dict[str, Any]) -> Written:
        """Write one file at once, tensor by tensor; it becomes a part of the record when it is put as an Item."""
        with self._changed:
            self._raise()
        try:
            written = self._write(folder, name, part, values, extra)
            try:
                written.wait()
            except OSError:
                self.discard(written)
                raise
            return written._replace(rest=None)
        except OSError as error:
            raise self._failure(folder, name, part, error) from error

    def discard(self, written: Written) -> None:
        with contextlib.suppress(OSError):
            os.unlink(written.partial)

    def pause(self) -> None:
        """Take nothing more, and wait until the files of everything put so far are complete.

        Raises AccuracyError if something could not be written.
        """
        with self._changed:
            self._accepting = False
            said = time.monotonic()
            while self._error is None and (self._queue or self._waiting or self._busy):
                self._changed.wait(_PROGRESS_EVERY_S)
                if time.monotonic() - said >= _PROGRESS_EVERY_S:
                    said = time.monotonic()
                    _say(f"{len(self._queue)} files ({self._queued >> 20} MB) still to write")
            self._raise()

    def resume(self) -> None:
        with self._changed:
            self._accepting = True

    def close(self) -> None:
        """Write what is queued and stop. Raises AccuracyError if something could not be written."""
        try:
            self.pause()
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            self._thread.join()
            self._seen.close()
            for order in self._orders.values():
                order.close()
            self._orders.clear()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing and not self._unfinished:
                    self._busy = False
                    self._changed.notify_all()
                    self._changed.wait()
                self._busy = True
                if not self._queue and not self._unfinished:
                    return
                item = self._queue.popleft() if self._queue else None
            current = item
            try:
                if item is not None:
                    written = item.written or self._write(item.folder, item.name, item.part, item.values, item.extra)
                    self._unfinished.append((item, written))
                while self._unfinished and (item is None or len(self._unfinished) > _MOST_UNFINISHED):
                    current = self._unfinished[0][0]
                    self._commit(*self._unfinished[0])
                    self._unfinished.popleft()
            except Exception as error:
                self._fail(current, item, error)
                return
            if item is not None:
                size = item.bytes
                # Its tensors go before their bytes are given back.
                if not isinstance(item.values, capture.Summaries):
                    capture.release(item.values)
                item.values = None
                del item, current
                with self._changed:
                    self._queued -= size
                    self._changed.notify_all()
            self._progress()

    def _fail(self, failed: Any, item: Optional[Item], error: Exception) -> None:
        """Nothing after failed is kept; what was written before it, and is on its way, is."""
        if failed is item:
            with contextlib.suppress(Exception):
                while self._unfinished:
                    failed = self._unfinished[0][0]
                    self._commit(*self._unfinished[0])
                    self._unfinished.popleft()
                failed = item
        with self._changed:
            self._error = self._failure(failed.folder, failed.name, failed.part, error)
            for _, written in self._unfinished:
                with contextlib.suppress(OSError):
                    written.wait()
                self.discard(written)
            self._unfinished.clear()
            self._drop([left for left in (item, *self._queue) if left is not None])
            self._queue.clear()
            self._queued = 0
            self._changed.notify_all()

    def _failure(self, folder: str, name: str, part: str, error: Exception) -> AccuracyError:
        return AccuracyError(
            f"the record cannot be written to {folder}: {error}. What is there is whole, but ends before {name}.{part}"
        )

    def _write(self, folder: str, name: str, part: str, values: Any, extra: Dict[str, Any]) -> Written:
        layout: List[Dict[str, Any]] = []
        if isinstance(values, capture.Summaries):
            stored, signature = values
        else:
            stored = capture.stored(values, self._level, layout, self._seen)
            signature = [[entry["dtype"], entry["shape"]] for entry in layout]
        content = {"name": name, "part": part, "level": self._level, "values": stored, **extra}
        # As text: loading with weights_only costs a microsecond for each number and string.
        content["tensors"] = json.dumps(layout)
        # A name of its own until it is whole: a reader never meets half a file.
        partial = os.path.join(folder, f"partial{next(self._numbers)}.tmp")
        try:
            if isinstance(values, capture.Summaries):
                size, rest = tensor_file.save_plain(content, partial), None
            else:
                size, rest = tensor_file.save(content, partial)
        except BaseException:
            if os.path.exists(partial):
                os.unlink(partial)
            raise
        return Written(partial, size, signature, rest)

    def _commit(self, item: Item, written: Written) -> None:
        written.wait()
        os.replace(written.partial, os.path.join(item.folder, f"{item.name}.{item.part}.pt"))
        line = {"name": item.name, "part": item.part, "bytes": written.size, "tensors": written.signature}
        self._order(item.folder).write(json.dumps(line) + "\n")
        self._order(item.folder).flush()
        self._files += 1
        self._bytes += written.size

    def _order(self, folder: str) -> Any:
        if folder not in self._orders:
            self._orders[folder] = open(os.path.join(folder, "order.jsonl"), "a", encoding="utf-8")  # noqa: SIM115
        return self._orders[folder]

    def _progress(self) -> None:
        if time.monotonic() - self._shown > _PROGRESS_EVERY_S:
            self._shown = time.monotonic()
            _say(f"{self._files} files, {self._bytes / 1e9:.2f} GB written, {len(self._queue)} queued")


def _say(text: str) -> None:
    """In one piece with its end of line: both threads speak."""
    sys.stderr.write(f"accuracy: {text}\n")
