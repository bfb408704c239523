"""Indices into tiles, and the elements found there: one for each lane of the vectors of a nest."""

from typing import Callable, NamedTuple, Optional, Sequence, Tuple

from .text import Level
from .types import Type


class Index(NamedTuple):
    """Place along one dimension: `base` (a number or an i64 register) plus a constant for each lane.

    `depth` is that of the loop whose counter the base is, 0 for a constant. The bits of the base and of the pattern do
    not overlap, as extents are powers of two and a loop advances by the lanes' extent. `multiple`: a power of two that
    divides the base.
    """

    base: str
    pattern: Optional[Tuple[int, ...]]
    depth: int
    multiple: int = 1


ZERO = Index("0", None, 0)


class Facts(NamedTuple):
    """What is known of an integer: a power of two that divides it, whether it is a natural number, and which one.

    The number of an element, as a program computes it from its place in the grid, counts as natural: where it had
    wrapped below 0 it would be out of bounds.
    """

    multiple: int
    natural: bool
    number: Optional[int] = None


_ANY_POWER = 1 << 30  # 0 is a multiple of every power of two
_LARGEST_FACTOR = 1 << 16  # the size of a block; a larger factor may be meant to wrap, as those of hashes are
UNKNOWN = Facts(1, False)


def facts_of_number(number: int) -> Facts:
    return Facts(min(number & -number or _ANY_POWER, _ANY_POWER), number >= 0, number)


def facts_of_result(name: str, operands: Sequence[Facts]) -> Facts:
    """What is known of the result of the operation `name`."""
    least = min((facts.multiple for facts in operands), default=1)
    natural = all(facts.natural for facts in operands)
    if name in ("tt.get_program_id", "tt.get_num_programs"):
        return Facts(1, True)
    if name in ("arith.addi", "arith.remsi", "arith.remui", "arith.minsi"):
        return Facts(least, natural)
    if name == "arith.muli":
        factors = [facts.number for facts in operands if facts.number is not None]
        power = min(operands[0].multiple * operands[1].multiple, _ANY_POWER)
        return Facts(power, natural and bool(factors) and factors[0] <= _LARGEST_FACTOR)
    if name == "arith.extsi":
        return operands[0]
    if name == "arith.extui":
        return Facts(least, True)
    if name == "arith.subi":
        return Facts(least, False)
    if name == "arith.divsi":
        return Facts(1, natural)
    return UNKNOWN


class Lanes:
    """The elements of a tile for all lanes.

    kind "u": one scalar for all lanes. "a": a scalar plus a constant for each lane (for pointers in bytes). "v": a
    vector. An "a" may be inexact about wrapping round at the width of an integer: then `exact` gives the vector, and
    the sum serves addresses only, where such a wrap could not reach memory that belongs together. `facts` are those of
    the scalar.
    """

    __slots__ = ("kind", "type", "scalar", "offsets", "vector", "level", "exact", "facts")

    def __init__(
        self,
        kind: str,
        element: Type,
        level: Level,
        scalar: str = "",
        offsets: Optional[Tuple[int, ...]] = None,
        vector: Optional[str] = None,
        exact: Optional[Callable[[], str]] = None,
        facts: Facts = UNKNOWN,
    ):
        self.kind, self.type, self.level = kind, element, level
        self.scalar, self.offsets, self.vector, self.exact = scalar, offsets, vector, exact
        self.facts = facts
