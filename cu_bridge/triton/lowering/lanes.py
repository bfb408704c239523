"""Indices into tiles, and the elements found there: one for each lane of the vectors of a nest."""

from typing import Callable, NamedTuple, Optional, Tuple

from .text import Level
from .types import Type


class Index(NamedTuple):
    """Place along one dimension: `base` (a number or an i64 register) plus a constant for each lane.

    `depth` is that of the loop whose counter the base is, 0 for a constant. The bits of the base and of the pattern do
    not overlap, as extents are powers of two and a loop advances by the lanes' extent.
    """

    base: str
    pattern: Optional[Tuple[int, ...]]
    depth: int


ZERO = Index("0", None, 0)


class Lanes:
    """The elements of a tile for all lanes.

    kind "u": one scalar for all lanes. "a": a scalar plus a constant for each lane (for pointers in bytes). "v": a
    vector. An "a" may be inexact about wrapping round at the width of an integer: then `exact` gives the vector, and
    the sum serves addresses only, where such a wrap could not reach memory that belongs together.
    """

    __slots__ = ("kind", "type", "scalar", "offsets", "vector", "level", "exact")

    def __init__(
        self,
        kind: str,
        element: Type,
        level: Level,
        scalar: str = "",
        offsets: Optional[Tuple[int, ...]] = None,
        vector: Optional[str] = None,
        exact: Optional[Callable[[], str]] = None,
    ):
        self.kind, self.type, self.level = kind, element, level
        self.scalar, self.offsets, self.vector, self.exact = scalar, offsets, vector, exact
