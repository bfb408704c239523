"""Large files written past the page cache.

What is recorded is read back once, later, if at all. Through the page cache each byte costs a copy into fresh pages,
several times what its checksum costs, and pushes out what the program itself reads. So full blocks go straight to the
disk (O_DIRECT), from stages that are filled and written in turn, the end of one file while the next is filled; where a
file system cannot do that, as usual.
"""

import ctypes
import io
import mmap
import os
import queue
import threading
from typing import Any, List, Optional

try:
    import fcntl
except ImportError:
    # A system without it writes as usual.
    fcntl = None  # type: ignore[assignment]

# O_DIRECT wants addresses, places and lengths that are multiples of the disk's block.
_BLOCK = 4096
_STAGE = 4 << 20
_MOST_KEPT = 8
# Below this a copy by Python's own means is as fast.
_LARGE = 1 << 14
_DIRECT = getattr(os, "O_DIRECT", 0) if fcntl is not None else 0

_lock = threading.Lock()
_free: List[mmap.mmap] = []
_disk: "Optional[_Disk]" = None


class _Write:
    """One stage on its way to the disk; with the last one of a file the file is closed."""

    __slots__ = ("file", "stage", "length", "last", "done", "error")

    def __init__(self, file: "DirectFile", stage: mmap.mmap, length: int, last: bool = False) -> None:
        self.file, self.stage, self.length, self.last = file, stage, length, last
        self.done = threading.Event()
        self.error: Optional[BaseException] = None

    def run(self) -> None:
        try:
            self.file.put(memoryview(self.stage)[: self.length], self.last)
        except BaseException as error:
            self.error = error
        finally:
            _give(self.stage)
            self.done.set()


class _Disk:
    """A thread that writes while the next stage is filled."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.queue: Any = queue.Queue()
        threading.Thread(target=self._run, name="maca-accuracy-disk", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.queue.get().run()


def _start(write: _Write) -> None:
    global _disk
    with _lock:
        if _disk is None or _disk.process != os.getpid():
            try:
                _disk = _Disk()
            except RuntimeError:
                # Python, about to exit, starts no more threads.
                _disk = None
        disk = _disk
    if disk is None:
        write.run()
    else:
        disk.queue.put(write)


class DirectFile(io.RawIOBase):
    """Written from its start to its end; close() must be called. Raises OSError, if need be at the next call.

    end() instead of close() does not wait: the file is whole when wait() returns.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
        try:
            self._file = os.open(path, flags | _DIRECT, 0o666)
            self._direct = bool(_DIRECT)
        except OSError:
            self._file = os.open(path, flags, 0o666)
            self._direct = False
        self._stage = _take()
        self._filled = 0
        self._position = 0
        self._pending: Optional[_Write] = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, *_: Any) -> int:
        # zipfile, told so, puts checksum and size behind the data.
        raise io.UnsupportedOperation("a file that is written from its start to its end")

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        length, at = len(view), 0
        while at < length:
            step = min(length - at, _STAGE - self._filled)
            self._copy(view[at : at + step], step)
            self._filled += step
            at += step
            if self._filled == _STAGE:
                self._hand_over()
        self._position += length
        return length

    def _copy(self, view: memoryview, length: int) -> None:
        if length >= _LARGE and not view.readonly:
            # Other threads run meanwhile, which they do not while Python itself copies.
            stage = ctypes.addressof(ctypes.c_char.from_buffer(self._stage, self._filled))
            ctypes.memmove(stage, ctypes.addressof(ctypes.c_char.from_buffer(view)), length)
        else:
            self._stage[self._filled : self._filled + length] = view

    def _hand_over(self) -> None:
        self._settle()
        self._pending = _Write(self, self._stage, self._filled)
        _start(self._pending)
        self._stage, self._filled = _take(), 0

    def _settle(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        pending.done.wait()
        if pending.error is not None:
            raise pending.error

    def put(self, view: memoryview, last: bool) -> None:
        """All of view, now; what is no multiple of a block can only be the last of the file."""
        whole = len(view) // _BLOCK * _BLOCK if last else len(view)
        self._put(view[:whole])
        if last:
            if self._direct:
                self._usual()
            self._put(view[whole:])

    def _put(self, view: memoryview) -> None:
        while view:
            try:
                written = os.write(self._file, view)
            except OSError:
                if not self._direct:
                    raise
                # A file system that takes the flag and not the write, or room for less than a block.
                self._usual()
                continue
            view = view[written:]
            if self._direct and view and written % _BLOCK:
                self._usual()

    def _usual(self) -> None:
        self._direct = False
        fcntl.fcntl(self._file, fcntl.F_SETFL, fcntl.fcntl(self._file, fcntl.F_GETFL) & ~_DIRECT)

    def close(self) -> None:
        if self.closed:
            return
        self.end()
        self.wait()

    def end(self) -> None:
        """Nothing more is to come. Raises OSError if what came before could not be written."""
        super().close()
        try:
            self._settle()
        except BaseException:
            _give(self._stage)
            os.close(self._file)
            raise
        self._pending = _Write(self, self._stage, self._filled, last=True)
        _start(self._pending)

    def wait(self) -> None:
        """Until the file is whole and closed. Raises OSError if it could not be written."""
        if self._pending is not None:
            try:
                self._settle()
            finally:
                os.close(self._file)


def _take() -> mmap.mmap:
    with _lock:
        return _free.pop() if _free else mmap.mmap(-1, _STAGE)


def _give(stage: mmap.mmap) -> None:
    with _lock:
        if len(_free) < _MOST_KEPT:
            _free.append(stage)


def clear() -> None:
    with _lock:
        _free.clear()
