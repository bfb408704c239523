"""Programs that the factory starts to write something that a lock protects."""

import subprocess
from typing import Any, Sequence

from . import cache


def run(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """``subprocess.run`` of a program that keeps the factory's locks.

    A kill -9 of the factory alone leaves its children running. While they do, the next run must not touch what they
    write: it waits until the last of them has ended.
    """
    return subprocess.run(command, check=False, text=True, pass_fds=cache.held_locks(), **options)
