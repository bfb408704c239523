"""Programs that the factory starts."""

import os
import shutil
import subprocess
import sys
from typing import Any, Optional, Sequence

from . import cache


def program(name: str) -> Optional[str]:
    """A program of the running virtual environment, else of PATH."""
    return shutil.which(name, path=os.path.dirname(sys.executable)) or shutil.which(name)


def run(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """``subprocess.run`` of a program that keeps the factory's locks.

    A kill -9 of the factory alone leaves its children running. While they do, the next run must not touch what they
    write: it waits until the last of them has ended.
    """
    return subprocess.run(command, check=False, text=True, pass_fds=cache.held_locks(), **options)
