"""Tiles of integers that need fewer bits than they have.

Note [Narrow tiles]
~~~~~~~~~~~~~~~~~~~
torch.compile writes numbers of rows and columns as 64-bit integers where they meet a constant, and computes with what
it loads from 8 bits in 32. A vector holds more of narrower ones, and AVX2 has no product of 64 bits and a quick one of
16. Where the bounds of all operands and of the result show that fewer bits hold them, the operation is done in those,
and its result is extended only where somebody wants all of them. Bounds come from what the text shows: constants,
remainders, narrower integers that were loaded. What is not known has those of its type, so a sum that may wrap is never
narrowed. 16 bits serve only what comes from 8 or 16: the numbers of elements stay sums of a scalar and a constant for
each lane (affine.py).
"""

from typing import Callable, Dict, List, Optional, Tuple

from ..ir import Block, Function, Operation, Value, walk
from ..types import I16, I32, Type
from .numbers import constant_number

Bounds = Tuple[int, int]  # the least and the greatest value, as signed integers

_SAME = {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.view", "tt.trans"}


def narrow(function: Function) -> None:
    """Do operations on tiles of integers in fewer bits where the bounds of their operands and results allow it."""
    known: Dict[Value, Bounds] = {}
    for operation in walk(function.blocks):
        for result in operation.results:
            if _is_integer(result.type):
                known[result] = _bounds(operation, known)
    blocks = list(function.blocks)
    for operation in walk(function.blocks):
        blocks += [block for region in operation.regions for block in region]
    for kind in (I16, I32):
        for block in blocks:
            _Narrowing(block, known, kind).run()


class _Narrowing:
    """The operations of one block."""

    def __init__(self, block: Block, known: Dict[Value, Bounds], kind: Type):
        self.block, self.known, self.kind = block, known, kind
        self.small: Dict[Value, Value] = {}  # the same as `kind`
        self.new: List[Operation] = []

    def run(self) -> None:
        for operation in self.block.operations:
            if self._may_narrow(operation):
                self._replace(operation)
            else:
                self.new.append(operation)
        self.block.operations[:] = self.new
        for position, operation in enumerate(self.new):
            operation.block, operation.position = self.block, position

    def _may_narrow(self, operation: Operation) -> bool:
        if operation.name not in _NARROWED or not operation.results[0].type.shape:
            return False
        wide = [value for value in [*operation.operands, *operation.results] if self._is_wide(value.type)]
        if not wide or not all(_within(self.known.get(value), _all(self.kind)) for value in wide):
            return False
        # What has to be cut first costs more than it saves, unless an operand is narrow by itself.
        return any(value in self.small or self._extended(value) is not None for value in operation.operands)

    def _replace(self, operation: Operation) -> None:
        done = Operation(operation.name)
        done.attributes, done.words, done.location = operation.attributes, operation.words, operation.location
        done.operands = [self._narrow(value) if self._is_wide(value.type) else value for value in operation.operands]
        for value in operation.operands:
            value.users = [user for user in value.users if user is not operation]
        for value in done.operands:
            value.users.append(done)
        [result] = operation.results
        if not self._is_wide(result.type):
            result.definition, done.results = done, [result]
            self.new.append(done)
            return
        # What wants all bits takes the extension; nothing is written for it where nobody does.
        small = self._add(done, result)
        extension = Operation("arith.extsi")
        extension.operands, extension.results, extension.location = [small], [result], operation.location
        small.users.append(extension)
        result.definition = extension
        self.new.append(extension)

    def _add(self, operation: Operation, of: Value) -> Value:
        """The result of an operation that gives the narrow form of a value."""
        small = Value(f"{of.name}.{self.kind}", self.kind.shaped(of.type.shape), operation)
        operation.results = [small]
        self.small[of], self.known[small] = small, self.known[of]
        self.new.append(operation)
        return small

    def _narrow(self, value: Value) -> Value:
        if value in self.small:
            return self.small[value]
        source, operation = self._extended(value), value.definition
        if source is not None and source.type.bits == self.kind.bits:
            return source
        if operation is not None and operation.name == "arith.constant":
            done = Operation("arith.constant")
            done.words = list(operation.words)
        elif source is not None:
            assert operation is not None
            done = Operation(operation.name)
            done.operands = [source]
        else:
            done = Operation("arith.trunci")
            done.operands = [value]
        for operand in done.operands:
            operand.users.append(done)
        if operation is not None:
            done.location = operation.location
        return self._add(done, value)

    def _is_wide(self, kind: Type) -> bool:
        return bool(kind.shape) and kind.element in ("i32", "i64") and kind.bits > self.kind.bits

    def _extended(self, value: Value) -> Optional[Value]:
        """What the value is the extension of, if that has no more bits than the narrow form."""
        operation = value.definition
        if operation is None or operation.name not in ("arith.extsi", "arith.extui"):
            return None
        source = operation.operands[0]
        bits = source.type.bits + (operation.name == "arith.extui")
        return source if 8 <= bits <= self.kind.bits else None


def _is_integer(kind: Type) -> bool:
    return not kind.is_float and not kind.is_pointer and kind.element != "index"


def _within(bounds: Optional[Bounds], limits: Bounds) -> bool:
    return bounds is not None and limits[0] <= bounds[0] and bounds[1] <= limits[1]


def _all(kind: Type) -> Bounds:
    if kind.bits == 1:
        return (0, 1)
    return (-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1)


# ---- bounds
def _bounds(operation: Operation, known: Dict[Value, Bounds]) -> Bounds:
    kind = operation.results[0].type
    method = _BOUNDS.get(operation.name)
    operands = [
        known.get(value) or _all(value.type) if _is_integer(value.type) else None for value in operation.operands
    ]
    found = method(operation, operands) if method is not None and kind.bits > 1 else None
    return found if _within(found, _all(kind)) else _all(kind)  # type: ignore[return-value]


def _of_constant(operation, operands):
    number = constant_number(operation.results[0])
    return None if number is None else (number, number)


def _of_range(operation, operands):
    return (operation.integer("start"), max(operation.integer("start"), operation.integer("end") - 1))


def _of_same(operation, operands):
    return operands[0]


def _of_extension(operation, operands):
    """A single bit extends to 0 and 1, or to 0 and -1."""
    signed, source = operation.name == "arith.extsi", operation.operands[0].type
    if source.bits == 1:
        return (-1, 0) if signed else (0, 1)
    return operands[0] if signed or operands[0][0] >= 0 else (0, (1 << source.bits) - 1)


def _of_sum(operation, operands):
    (a, b), (c, d) = operands
    return (a - d, b - c) if operation.name == "arith.subi" else (a + c, b + d)


def _of_product(operation, operands):
    corners = [a * b for a in operands[0] for b in operands[1]]
    return min(corners), max(corners)


def _of_quotient(operation, operands):
    """By a positive constant; what is divided as an unsigned number is not below 0."""
    (low, high), (bottom, top) = operands
    if bottom != top or bottom <= 0 or operation.name == "arith.divui" and low < 0:
        return None
    return (-(-low // bottom) if low < 0 else low // bottom, -(-high // bottom) if high < 0 else high // bottom)


def _of_remainder(operation, operands):
    (low, high), (bottom, top) = operands
    if bottom <= 0 or operation.name == "arith.remui" and low < 0:
        return None
    return (max(low, 1 - top) if low < 0 else 0, min(high, top - 1) if high > 0 else 0)


def _of_extreme(operation, operands):
    (a, b), (c, d) = operands
    return (max(a, c), max(b, d)) if operation.name == "arith.maxsi" else (min(a, c), min(b, d))


def _of_select(operation, operands):
    (a, b), (c, d) = operands[1:]
    return min(a, c), max(b, d)


def _of_and(operation, operands):
    """One operand that is not below 0 bounds the result."""
    natural = [high for low, high in operands if low >= 0]
    return (0, min(natural)) if natural else None


_BOUNDS: Dict[str, Callable] = {
    "arith.constant": _of_constant,
    "tt.make_range": _of_range,
    **dict.fromkeys(_SAME, _of_same),
    **dict.fromkeys(("arith.extsi", "arith.extui"), _of_extension),
    "arith.trunci": _of_same,  # where it fits: others have the bounds of their type
    **dict.fromkeys(("arith.addi", "arith.subi"), _of_sum),
    "arith.muli": _of_product,
    **dict.fromkeys(("arith.divsi", "arith.divui"), _of_quotient),
    **dict.fromkeys(("arith.remsi", "arith.remui"), _of_remainder),
    **dict.fromkeys(("arith.maxsi", "arith.minsi"), _of_extreme),
    "arith.select": _of_select,
    "arith.andi": _of_and,
}
# What gives the same in fewer bits, where they hold its operands and its result as signed integers. Comparisons of
# unsigned numbers are among them: the extension of a sign keeps their order.
_NARROWED = {
    "arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.remsi", "arith.maxsi", "arith.minsi",
    "arith.select", "arith.andi", "arith.ori", "arith.xori", "arith.cmpi",
}  # fmt: skip
