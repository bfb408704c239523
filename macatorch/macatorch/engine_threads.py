"""Lets autograd's threads come to rest before Python ends.

Backward on a CUDA device runs in a thread of autograd's engine, and returns as soon as its results are there. That
thread then still drops its references to Python objects (the results, the caller's context, custom functions), for
which it needs Python's lock. Python, once it finalizes, ends every thread that asks for the lock, and to end a thread
within C++ is std::terminate(): a program whose last statement is a backward would abort as it exits. On an NVIDIA
machine the thread has long finished, as the program waited for the device; here it may not have run yet.
"""

import atexit
import os
import sys
import threading
import time
from typing import Dict, Set

_TASKS = "/proc/self/task"
_NAME = "pt_autograd"
_MOST_SECONDS = 5.0
_PAUSE = 0.001


def settle_at_exit() -> None:
    """Register the wait; whatever registers later, and may run a backward of its own at exit, runs before it."""
    atexit.register(settle)


def settle() -> None:
    """Wait until the engine's threads sleep, and slept while Python's lock was free to take."""
    deadline = time.monotonic() + _MOST_SECONDS
    before = _states()
    while before and time.monotonic() < deadline:
        # Sleeping gives the lock away: whoever waits for it wakes, and has another count of switches afterwards.
        time.sleep(_PAUSE)
        now = _states()
        if now == before and not any("State:\tR" in state or "State:\tD" in state for state in now.values()):
            return
        before = now


def _strangers() -> Set[str]:
    """Up to torch 2.2 the engine's threads have no names of their own: those that are not Python's, then, for all that
    can be told."""
    torch = sys.modules.get("torch")
    if torch is None or torch.__version__ >= (2, 3) or not torch.cuda.is_initialized():
        return set()
    return set(os.listdir(_TASKS)) - {str(thread.native_id) for thread in threading.enumerate()}


def _states() -> Dict[str, str]:
    """State and number of voluntary context switches of each thread of the engine."""
    found: Dict[str, str] = {}
    try:
        threads = os.listdir(_TASKS)
        strangers = _strangers()
    except OSError:
        return found  # no /proc: there is nothing to go by
    for thread in threads:
        try:
            with open(os.path.join(_TASKS, thread, "status")) as file:
                lines = file.read().splitlines()
        except OSError:
            continue  # it ended meanwhile
        if lines and (thread in strangers or lines[0].partition("\t")[2].startswith(_NAME)):
            found[thread] = "\n".join(line for line in lines if line.startswith(("State:", "voluntary_ctxt")))
    return found
