"""tt.dot_scaled: products of small formats whose numbers share a power of two in groups of 32 (OCP's MX formats)."""

from typing import List, Optional, Tuple

from .dot import Dot
from .elements.conversions import float_constant
from .errors import LoweringError
from .ir import Operation, Value
from .lanes import Index
from .tiles import Buffer, Indices
from .types import F32, Type

_GROUP = 32
_FORMATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "bf16": "bf16", "fp16": "f16"}


class DotScaled(Dot):
    """The operands are widened to f32 with their scales, which is exact; the sum is that of tt.dot in f32."""

    def dot_scaled(self, operation: Operation) -> None:
        left, left_scale, right, right_scale, start = self._scaled_operands(operation)
        result = operation.results[0]
        if result.type.element != "f32":
            raise LoweringError(operation.name, f"a result of {result.type.element}", operation.location)
        packed = operation.attributes.get("lhs_k_pack", "true"), operation.attributes.get("rhs_k_pack", "true")
        formats = operation.attributes["lhs"], operation.attributes["rhs"]
        rank = len(result.type.shape)
        a = self._widened(left, left_scale, formats[0], rank - 1, rank - 1 if "true" in packed[0] else rank - 2, False)
        b = self._widened(right, right_scale, formats[1], rank - 2, rank - 2 if "true" in packed[1] else rank - 1, True)
        out = self.new_buffer(result.type)
        self.convert_into(start, out)
        self.multiply(a, b, out)
        self.buffers[result] = out

    @staticmethod
    def _scaled_operands(operation: Operation) -> Tuple[Value, Optional[Value], Value, Optional[Value], Value]:
        """Which operands are scales shows in the printed form: by a word, before 3.3 by the types beside the sign."""
        rest: List[Value] = list(operation.operands)
        if not any(name.startswith("scale ") for name in operation.attributes) and "factors" in operation.attributes:
            before = int(operation.attributes["factors"])
            left, right = rest[:before], rest[before:-1]
            return left[0], (left + [None])[1], right[0], (right + [None])[1], rest[-1]  # type: ignore[list-item]
        found: List[Optional[Value]] = []
        place = 0
        for _ in range(2):
            found.append(rest[place])
            place += 1
            if f"scale {place}" in operation.attributes:
                found.append(rest[place])
                place += 1
            else:
                found.append(None)
        left, left_scale, right, right_scale = found
        assert left is not None and right is not None
        return left, left_scale, right, right_scale, rest[place]

    def _widened(
        self, value: Value, scale: Optional[Value], form: str, inner: int, packed: int, scale_turned: bool
    ) -> Buffer:
        """The operand in f32. `inner` is the dimension that is summed over, two e2m1 share a byte along `packed`."""
        shape = list(value.type.shape)
        if form == "e2m1":
            shape[packed] *= 2
        buffer = self.new_buffer(F32.shaped(tuple(shape)))

        def body(indices: Indices) -> None:
            width = self.width
            if form == "e2m1":
                where, half = self._halved(indices, shape, packed, 2)
                number = self._small(self.vector(self.element(value, where)), half)
            else:
                kind = value.type.scalar if value.type.is_float else Type((), _FORMATS[form])
                number = self.e.widen(self.vector(self.element(value, indices)), kind, width)
            if scale is not None:
                group, _ = self._halved(indices, shape, inner, _GROUP)
                if scale_turned:
                    group = group[:-2] + (group[-1], group[-2])
                number = self._scaled(number, self.vector(self.element(scale, group)))
            self.write(buffer, indices, number)

        self.nest(tuple(shape), body)
        return buffer

    def _halved(self, indices: Indices, shape: List[int], dimension: int, parts: int) -> Tuple[Indices, Index]:
        """The indices with one dimension divided by `parts`, and the rest of the division."""
        split = tuple(shape[:dimension]) + (shape[dimension] // parts, parts) + tuple(shape[dimension + 1 :])
        found = self.reshaped(indices, shape, split)
        return found[: dimension + 1] + found[dimension + 2 :], found[dimension + 1]

    def _small(self, codes: str, half: Index) -> str:
        """e2m1 in a half of a byte, the low one first, as f32."""
        width = self.width
        word = self.e.cast("zext", codes, "i8", "i32", width)
        if half.pattern is not None:
            shift = "<" + ", ".join(f"i32 {4 * lane}" for lane in half.pattern) + ">"
            word = self.e.op("lshr", "i32", width, word, shift)
        elif half.base != "0":
            count = half.base if half.base.isdigit() else self.b.emit(f"trunc i64 {half.base} to i32")
            count = self.b.emit(f"mul i32 {count}, 4")
            word = self.e.op("lshr", "i32", width, word, self.b.splat(count, "i32", width))
        size = self.e.op("and", "i32", width, word, self.e.const(7, "i32", width))
        size = self.e.op("shl", "i32", width, size, self.e.const(22, "i32", width))
        number = self.e.cast("bitcast", size, "i32", "float", width)
        number = self.e.op("fmul", "float", width, number, self.e.const(float_constant(2.0**126), "float", width))
        sign = self.e.op("and", "i32", width, word, self.e.const(8, "i32", width))
        sign = self.e.op("shl", "i32", width, sign, self.e.const(28, "i32", width))
        bits = self.e.op("or", "i32", width, self.e.cast("bitcast", number, "float", "i32", width), sign)
        return self.e.cast("bitcast", bits, "i32", "float", width)

    def _scaled(self, number: str, scale: str) -> str:
        """The product with 2^(scale - 127); 255 stands for NaN."""
        width = self.width
        code = self.e.cast("zext", scale, "i8", "i32", width)
        bits = self.e.op("shl", "i32", width, code, self.e.const(23, "i32", width))
        lowest = self.e.op("icmp eq", "i32", width, code, self.e.const(0, "i32", width))
        bits = self.e.choose(lowest, self.e.const(0x00400000, "i32", width), bits, "i32", width)
        none = self.e.op("icmp eq", "i32", width, code, self.e.const(255, "i32", width))
        bits = self.e.choose(none, self.e.const(0x7FC00000, "i32", width), bits, "i32", width)
        power = self.e.cast("bitcast", bits, "i32", "float", width)
        return self.e.op("fmul", "float", width, number, power)
