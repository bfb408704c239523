"""glibc told to keep freed memory while level 0 runs operators again in double precision.

Note [Fresh pages]
By default glibc maps a large piece of memory anew for each allocation and unmaps it when it is freed, so the kernel has
to clear every page of every copy in double precision: a third of what level 0 costs. mallopt(3) says otherwise while a
record of level 0 runs. Afterwards the limits are those that glibc comes to by itself in a program that has freed a
piece of 32 MB (it has no way back to finding them out), and what is free goes back to the kernel. With settings of the
user's own, and without glibc, nothing is changed.
Only the main arena can hold pieces of more than 64 MB, and threads of autograd's engine have others: what they would
compute is computed by a thread that is made for it (on_main_arena).
"""

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Optional

# malloc.h of glibc; mallopt(3) describes them.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -2, -3, -4, -8
_KEEP = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_TOP_PAD, 64 << 20))
_LEAVE = ((_MMAP_MAX, 65536), (_MMAP_THRESHOLD, 32 << 20), (_TRIM_THRESHOLD, 64 << 20), (_TOP_PAD, 128 << 10))


def _glibc() -> Optional[Any]:
    """The C library, if it is glibc and its settings are not the user's own."""
    own = any(name.startswith("MALLOC_") for name in os.environ)
    if own or "malloc" in os.environ.get("GLIBC_TUNABLES", "") or os.name != "posix":
        return None
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "gnu_get_libc_version") and hasattr(library, "mallopt") else None
    except OSError:
        return None


class Heap:
    """From the start of a record of level 0 to its end."""

    def __init__(self) -> None:
        self._library = _glibc()
        self._worker: Optional[ThreadPoolExecutor] = None
        if self._library is None:
            return
        for what, value in _KEEP:
            self._library.mallopt(what, value)
        self._worker = ThreadPoolExecutor(1, "maca-accuracy-check")
        # A thread gets its arena with its first allocation: with one arena at most, that is the main one.
        self._library.mallopt(_ARENA_MAX, 1)
        self._worker.submit(lambda: bytearray(1 << 12)).result()
        self._library.mallopt(_ARENA_MAX, 0)

    def on_main_arena(self, compute: Callable[[], Any]) -> Any:
        """compute(), in a thread whose large pieces of memory are kept when they are freed."""
        if self._worker is None or threading.current_thread() is threading.main_thread():
            return compute()
        return self._worker.submit(compute).result()

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown()
        self.leave()

    def leave(self) -> None:
        """Without waiting for the worker, which a forked child does not have."""
        library, self._library, self._worker = self._library, None, None
        if library is None:
            return
        for what, value in _LEAVE:
            library.mallopt(what, value)
        library.malloc_trim(0)
