"""A running record: options, writer, and one stream of operators for each thread that takes part."""

import atexit
import contextlib
import itertools
import json
import os
import shutil
import sys
import threading
import time
from typing import Any, Callable, Iterator, List, Optional

import torch

from maca_tools.accuracy import names
from maca_tools.accuracy.data import buffers, direct_file, record_dir
from maca_tools.accuracy.errors import AccuracyError
from maca_tools.accuracy.options import Options
from maca_tools.accuracy.recorder import intercept
from maca_tools.accuracy.recorder.check import Checker
from maca_tools.accuracy.recorder.stream import Stream
from maca_tools.accuracy.recorder.thread import local
from maca_tools.accuracy.recorder.writer import Writer

META = "record.json"
ORDER = "order.jsonl"
CHECKS = "check.jsonl"


def current_stream() -> "Optional[Stream]":
    """The stream of this thread; a thread of autograd's engine works for the stream whose mode it inherited.

    A thread that ran before the record began gets its stream here.
    """
    stream: Optional[Stream] = getattr(local, "stream", None)
    if stream is not None and stream.session.running:
        return stream
    thread = threading.current_thread()
    if isinstance(thread, threading._DummyThread):
        modes: List[Any] = getattr(torch.overrides, "_get_current_function_mode_stack", list)()
        for mode in modes:
            if isinstance(mode, intercept.Mode) and mode.stream.session.running:
                return mode.stream  # type: ignore[no-any-return]
        return None
    if _session is None or thread.name.startswith("maca-accuracy"):
        return None
    return _session.adopt_thread(stream)


class Session:
    """From start_record to the next start_record or the end of the process."""

    def __init__(self, options: Options, folder: str) -> None:
        self.options = options
        self.folder = folder
        self.running = False
        self.process = os.getpid()
        self._streams: List[Stream] = []
        self._installation: Optional[intercept.Installation] = None
        self._threads = itertools.count(1)
        self._backwards: List[bool] = []
        self.held = intercept.Held()
        self.writer = Writer(options.record_level)
        self.checker = Checker(options)
        try:
            self._main = Stream(self, folder)
        except BaseException:
            self.writer.close()
            self.checker.close()
            raise

    def prepare_folder(self, folder: str) -> None:
        """Make the folder, or empty it of an earlier record; AccuracyError for one that holds anything else."""
        try:
            os.makedirs(folder, exist_ok=True)
            present = os.listdir(folder)
            if (
                present
                and META not in present
                and any(entry.endswith(".pt") or os.path.isfile(os.path.join(folder, entry)) for entry in present)
            ):
                raise AccuracyError(
                    f"{folder} holds files but no record; name an empty folder or one of an earlier record"
                )
            for entry in present:
                path = os.path.join(folder, entry)
                if (
                    entry in (META, ORDER, CHECKS)
                    or (entry.startswith("partial") and entry.endswith(".tmp"))
                    or (entry.endswith(".pt") and names.parse(entry.rsplit(".", 2)[0]))
                ):
                    os.unlink(path)
                elif (
                    folder == self.folder
                    and entry.startswith(("thread", "process"))
                    and os.path.isfile(os.path.join(path, META))
                ):
                    shutil.rmtree(path)
            meta = {
                "format": record_dir.FORMAT,
                "torch": torch.__version__,
                "python": sys.version.split()[0],
                "argv": sys.argv[:20],
                "started": time.strftime("%Y-%m-%dT%H:%M:%S"),
                "options": self.options.as_dict(),
                "cuda": torch.cuda.is_available(),
            }
            with open(os.path.join(folder, META), "w", encoding="utf-8") as file:
                json.dump(meta, file, indent=1, default=str)
        except OSError as error:
            raise AccuracyError(f"{folder} cannot be written: {error}") from error

    def start(self) -> None:
        if self.running or os.getpid() != self.process:
            return
        self.writer.resume()
        self.running = True
        self._installation = intercept.Installation(current_stream, self._new_thread)
        local.stream = self._main
        intercept.enter(self._main.mode)

    def pause(self) -> None:
        """Stop, and wait until every file of what was recorded is complete. Raises AccuracyError if one cannot be."""
        self.stop()
        if os.getpid() == self.process:
            self.writer.pause()

    def stop(self) -> None:
        """Stop seeing operators; what is queued goes on being written."""
        if not self.running:
            return
        self.running = False
        local.inside = None
        self._main.leave_mode()
        local.stream = None
        if self._installation is not None:
            self._installation.undo()
            self._installation = None
        if os.getpid() == self.process:
            self.held.wait()

    def close(self) -> None:
        """Stop, and wait until everything is on the disk. Raises AccuracyError if it could not be written."""
        self.stop()
        if os.getpid() == self.process:
            try:
                self.writer.close()
            finally:
                self.checker.close()
                buffers.clear()
                direct_file.clear()

    @contextlib.contextmanager
    def backward_runs(self, keeps_graph: bool) -> Iterator[None]:
        """While one backward runs; several may, in different threads."""
        self._backwards.append(keeps_graph)
        try:
            yield
        finally:
            self._backwards.remove(keeps_graph)

    def graph_is_kept(self) -> bool:
        """Whether a backward may run over the same operator again."""
        return not self._backwards or any(self._backwards)

    def _new_thread(self) -> Optional[Callable[[], None]]:
        if self.adopt_thread(None) is None:
            return None

        def leave_thread() -> None:
            # None where the thread itself has ended the record.
            stream, local.stream = local.stream, None
            if stream is not None:
                stream.leave_mode()

        return leave_thread

    def adopt_thread(self, earlier: Optional[Stream]) -> Optional[Stream]:
        """A stream for this thread, in place of that of an earlier record; None while nothing is recorded."""
        if not self.running or os.getpid() != self.process:
            return None
        if earlier is not None:
            earlier.leave_mode()
        local.inside = None
        local.stream = stream = Stream(self, os.path.join(self.folder, f"thread{next(self._threads)}"))
        intercept.enter(stream.mode)
        return stream


_session: Optional[Session] = None


def begin(options: Options, folder: str) -> Session:
    global _session
    finish()
    _session = Session(options, folder)
    _session.start()
    return _session


def present() -> Optional[Session]:
    return _session


def finish() -> None:
    """Close the record that is open, if one is."""
    global _session
    session, _session = _session, None
    if session is not None:
        session.close()


def _in_child() -> None:
    """A forked child has the patches but not the writer's thread: it records only if it asks for it."""
    global _session
    session, _session = _session, None
    if session is not None:
        session.stop()
        session.checker.in_child()


@atexit.register
def _at_exit() -> None:
    try:
        finish()
    except AccuracyError as error:
        print(f"accuracy: {error}", file=sys.stderr)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
