"""Integers and addresses of a chunk as a sum: a scalar, and a constant for each lane."""

from typing import Callable, List, Optional

from .elements.elementwise import Elementwise
from .ir import Operation
from .lanes import UNKNOWN, Facts, Lanes, facts_of_number, facts_of_result
from .text import Builder, Level


class Affine:
    """Operations that keep such a sum one. Each gives None where the result is to be computed as a vector."""

    b: Builder
    e: Elementwise
    width: int

    def vector(self, lanes: Lanes) -> str:
        raise NotImplementedError

    def affine(self, operation: Operation, operands: List[Lanes], level: Level) -> Optional[Lanes]:
        name = _AFFINE.get(operation.name)
        return getattr(self, name)(operation, operands, level) if name is not None and self.width > 1 else None

    def _affine_sum(self, operation: Operation, operands: List[Lanes], level: Level) -> Optional[Lanes]:
        first, second = operands
        if "a" not in (first.kind, second.kind) or "v" in (first.kind, second.kind):
            return None
        negative = operation.name == "arith.subi"
        zeros = (0,) * self.width
        left, right = first.offsets or zeros, second.offsets or zeros
        kind = first.type.llvm
        offsets = tuple(a - b if negative else a + b for a, b in zip(left, right))
        scalar = self._sum(first.scalar, second.scalar, kind, "sub" if negative else "add")
        exact = None
        if first.exact is not None or second.exact is not None:
            exact = self._exact(operation, operands)
        facts = facts_of_result(operation.name, [first.facts, second.facts])
        return Lanes("a", first.type, level, scalar, offsets, exact=exact, facts=facts)

    def _sum(self, first: str, second: str, kind: str, name: str) -> str:
        if second == "0":
            return first
        if first == "0" and name == "add":
            return second
        return self.b.emit(f"{name} {kind} {first}, {second}")

    def _exact(self, operation: Operation, operands: List[Lanes]) -> Callable[[], str]:
        return lambda: self.e.apply(operation, [self.vector(lanes) for lanes in operands], self.width)[0]

    def _affine_product(self, operation: Operation, operands: List[Lanes], level: Level) -> Optional[Lanes]:
        for one, other in (operands, reversed(operands)):
            if one.kind == "a" and other.kind == "u" and _is_number(other.scalar):
                factor = int(other.scalar)
                kind = one.type.llvm
                scalar = "0" if one.scalar == "0" else self.b.emit(f"mul {kind} {one.scalar}, {factor}")
                assert one.offsets is not None
                exact = self._exact(operation, operands) if one.exact is not None else None
                facts = facts_of_result(operation.name, [one.facts, facts_of_number(factor)])
                offsets = tuple(offset * factor for offset in one.offsets)
                return Lanes("a", one.type, level, scalar, offsets, exact=exact, facts=facts)
        return None

    def _affine_quotient(self, operation: Operation, operands: List[Lanes], level: Level) -> Optional[Lanes]:
        """A quotient that is the same for all lanes."""
        bottom = _divisor_of_rows(*operands)
        if bottom is None:
            return None
        facts = facts_of_result(operation.name, [operands[0].facts, facts_of_number(bottom)])
        return Lanes("u", operands[0].type, level, self._divided(operation, operands[0], bottom), facts=facts)

    def _affine_remainder(self, operation: Operation, operands: List[Lanes], level: Level) -> Optional[Lanes]:
        """A remainder whose lanes stay side by side."""
        bottom = _divisor_of_rows(*operands)
        if bottom is None:
            return None
        scalar = self._divided(operation, operands[0], bottom)
        facts = facts_of_result(operation.name, [operands[0].facts, facts_of_number(bottom)])
        return Lanes("a", operands[0].type, level, scalar, operands[0].offsets, facts=facts)

    def _divided(self, operation: Operation, lanes: Lanes, bottom: int) -> str:
        if lanes.scalar == "0":
            return "0"
        name = {"divsi": "sdiv", "divui": "udiv", "remsi": "srem", "remui": "urem"}[operation.name.split(".")[1]]
        return self.b.emit(f"{name} {lanes.type.llvm} {lanes.scalar}, {bottom}")

    def _affine_extension(self, operation: Operation, operands: List[Lanes], level: Level) -> Optional[Lanes]:
        lanes = operands[0]
        if lanes.kind != "a" or operation.results[0].type.bits != 64:
            return None
        assert lanes.offsets is not None
        kind = operation.results[0].type.scalar
        small = all(0 <= offset < 1 << (lanes.type.bits - 1) for offset in lanes.offsets)
        if lanes.scalar == "0" and not lanes.exact and small:
            return Lanes("a", kind, level, "0", lanes.offsets, facts=facts_of_number(0))
        if operation.name == "arith.extui":
            # A scalar that is below 0 would carry into the upper half for some lanes and not for others.
            return None
        scalar = self.b.emit(f"sext {lanes.type.llvm} {lanes.scalar} to i64")
        exact = self._exact(operation, operands)
        return Lanes("a", kind, level, scalar, lanes.offsets, exact=exact, facts=lanes.facts)

    def _affine_pointer(self, operation: Operation, operands: List[Lanes], level: Level) -> Optional[Lanes]:
        pointer, step = operands
        if "v" in (pointer.kind, step.kind) or (pointer.kind, step.kind) == ("u", "u"):
            return None
        size = operation.results[0].type.pointee.bytes  # type: ignore[union-attr]
        zeros = (0,) * self.width
        offsets = tuple(a + size * b for a, b in zip(pointer.offsets or zeros, step.offsets or zeros))
        scalar = pointer.scalar
        if step.scalar != "0":
            scalar = self.b.emit(f"getelementptr [{size} x i8], ptr {scalar}, {step.type.llvm} {step.scalar}")
        # The sum is what addresses are made from, so wrapping of a narrower index is left out here.
        return Lanes("a", operation.results[0].type.scalar, level, scalar, offsets)


def facts_of_text(number: str) -> Facts:
    return facts_of_number(int(number)) if _is_number(number) else UNKNOWN


def _divisor_of_rows(lanes: Lanes, bottom: Lanes) -> Optional[int]:
    """The number that lanes are divided by, if it has no multiple between the first of them and the last.

    That is so where the lanes differ in low bits alone, which neither the scalar nor the divisor has. A scalar below 0
    would round the other way. None where it is not sure.
    """
    if lanes.kind != "a" or lanes.exact is not None or bottom.kind != "u" or not _is_number(bottom.scalar):
        return None
    assert lanes.offsets is not None
    number, row = int(bottom.scalar), 1 << max(lanes.offsets).bit_length()
    sure = min(lanes.offsets) >= 0 and lanes.facts.natural and lanes.facts.multiple % row == 0
    return number if sure and number > 0 and number % row == 0 else None


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


_AFFINE = {
    "arith.addi": "_affine_sum",
    "arith.subi": "_affine_sum",
    "arith.muli": "_affine_product",
    "arith.divsi": "_affine_quotient",
    "arith.divui": "_affine_quotient",
    "arith.remsi": "_affine_remainder",
    "arith.remui": "_affine_remainder",
    "arith.extsi": "_affine_extension",
    "arith.extui": "_affine_extension",
    "tt.addptr": "_affine_pointer",
}
