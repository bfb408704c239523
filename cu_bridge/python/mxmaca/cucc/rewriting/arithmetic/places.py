"""Which places of a text are device code of the program."""

import functools
import os

from ... import toolkit
from ..declarations import is_device_body
from ..source import Source


@functools.lru_cache(maxsize=None)
def is_own(file: str) -> bool:
    """Whether the file is one of the SDK's headers, which the headers of arithmetic may come behind."""
    return os.path.realpath(file).startswith(f"{toolkit.include()}{os.sep}")


def in_device_code(source: Source, place: int) -> bool:
    """Whether the place is in the body of a device function."""
    brace = source.enclosing_brace(place)
    while brace >= 0:
        if is_device_body(source, brace):
            return True
        brace = source.enclosing_brace(brace)
    return False
