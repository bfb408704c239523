"""Arithmetic of the device that a processor's differs from."""

from typing import Iterator

from ..source import Edit, Source
from . import casts, shifts


def edits(source: Source) -> Iterator[Edit]:
    """The edits of operators and casts in device functions."""
    yield from shifts.edits(source)
    yield from casts.edits(source)
