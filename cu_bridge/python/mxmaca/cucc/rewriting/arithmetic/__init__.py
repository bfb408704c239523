"""Arithmetic of the device that a processor's differs from."""

from typing import AbstractSet, Optional

from ..source import Source
from . import casts, shifts
from .casts import Found
from .type_names import type_names

__all__ = ["Found", "find", "type_names"]


def find(source: Source, type_names: Optional[AbstractSet[str]]) -> Found:
    """The edits of operators and casts in device functions.

    Args:
        type_names: of the program, that may be integers; what is cast to them may not compile. None: only casts to the
            language's own types.
    """
    of_casts = casts.find(source, type_names)
    return Found([*shifts.edits(source), *of_casts.edits], of_casts.named)
