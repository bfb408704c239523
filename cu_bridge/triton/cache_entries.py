"""Entries of Triton's cache: whether one is whole, and where files go when the cache cannot be written.

The patches of the releases (patches/triton-RELEASE) call these functions from Triton's compiler and cache.
"""

import functools
import hashlib
import json
import os
import pathlib
import tempfile
import warnings
from typing import Any, Dict


def digests(group: Dict[str, str]) -> Dict[str, str]:
    """The digest of each file of an entry, by its name."""
    return {name: hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() for name, path in group.items()}


def is_whole(group: Dict[str, str], metadata: str) -> bool:
    """Whether every file of an entry is as it was written. `metadata`: the name of the file that has the digests."""
    rest = {name: path for name, path in group.items() if name != metadata}
    try:
        written = json.loads(pathlib.Path(group[metadata]).read_text())["digests"]
        return bool(digests(rest) == written)
    except (KeyError, OSError, TypeError, ValueError):
        return False


@functools.lru_cache(maxsize=None)
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="triton-cache-")


def make_folder(manager: Any) -> None:
    """Make the folder of an entry; where that fails, one that goes with the process."""
    try:
        os.makedirs(manager.cache_dir, exist_ok=True)
    except OSError as error:
        _leave(manager, error)


def put(manager: Any, data: Any, name: str, binary: bool) -> str:
    """Write a file of an entry and return its path; where the cache cannot be written, one that goes with the process.

    Raises:
        OSError: that folder cannot be written either.
    """
    try:
        return str(manager._put(data, name, binary))
    except OSError as error:
        _leave(manager, error)
        return str(manager._put(data, name, binary))


def _leave(manager: Any, error: OSError) -> None:
    root = _folder().name
    if manager.cache_dir.startswith(root):
        raise error
    warnings.warn(f"Triton's cache cannot be written ({error}); this process compiles for itself", stacklevel=4)
    manager.cache_dir = os.path.join(root, manager.key)
    os.makedirs(manager.cache_dir, exist_ok=True)
