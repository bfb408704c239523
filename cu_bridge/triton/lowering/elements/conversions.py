"""Conversions between floating-point formats, on scalars and vectors.

Formats below 32 bits are kept as their bits. Rounding is to nearest even unless `rtz` is asked for. Formats:
IEEE 754 (f16), bfloat16, and the 8-bit formats of the OCP specification "OFP8" and of its FNUZ relatives, where a
negative zero is the one NaN.
"""

import struct
from typing import NamedTuple

from ..text import Builder, splat_constant
from ..types import Type


class MiniFloat(NamedTuple):
    """An 8-bit format: bits of exponent and mantissa, bias, and the codes (without sign) of its special values."""

    exponent: int
    mantissa: int
    bias: int
    largest: int  # code of the largest finite number
    infinity: int  # code, or -1
    nan: int  # smallest code that is a NaN; 0x80 with FNUZ: negative zero


MINI_FLOATS = {
    "f8E5M2": MiniFloat(5, 2, 15, 0x7B, 0x7C, 0x7D),
    "f8E4M3FN": MiniFloat(4, 3, 7, 0x7E, -1, 0x7F),
    "f8E4M3FNUZ": MiniFloat(4, 3, 8, 0x7F, -1, 0x80),
    "f8E5M2FNUZ": MiniFloat(5, 2, 16, 0x7F, -1, 0x80),
    # Triton's fp8e4b15: no infinity and no NaN; the largest code is 1.875 (0x7F).
    "f8E4M3B11FNUZ": MiniFloat(4, 3, 15, 0x7F, -1, -1),
}


def float_bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def float_constant(value: float) -> str:
    """A double in LLVM's exact hexadecimal form, which serves `float` too when the value is one."""
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return f"0x{bits:016X}"


class Conversions:
    """Mixed into what writes elementwise code; needs `self.b`."""

    b: Builder

    # ---- words of one instruction each
    def op(self, text: str, kind: str, width: int, *values: str) -> str:
        return self.b.emit(f"{text} {self.b.vector_type(kind, width)} {', '.join(values)}")

    def const(self, value: object, kind: str, width: int) -> str:
        return splat_constant(str(value), kind, width)

    def cast(self, text: str, value: str, source: str, target: str, width: int) -> str:
        return self.b.emit(f"{text} {self.b.vector_type(source, width)} {value} to {self.b.vector_type(target, width)}")

    def choose(self, condition: str, yes: str, no: str, kind: str, width: int) -> str:
        flags, values = self.b.vector_type("i1", width), self.b.vector_type(kind, width)
        return self.b.emit(f"select {flags} {condition}, {values} {yes}, {values} {no}")

    def intrinsic(self, name: str, kind: str, width: int, *values: str) -> str:
        """`llvm.NAME` of equal operands and result, of element type `kind`."""
        full = self.b.vector_type(kind, width)
        suffix = {"float": "f32", "double": "f64", "half": "f16"}.get(kind, kind)
        suffix = suffix if width == 1 else f"v{width}{suffix}"
        return self.b.call(full, f"llvm.{name}.{suffix}", [(full, value) for value in values])

    # ---- to f32
    def widen(self, value: str, kind: Type, width: int) -> str:
        """The value as f32 (f64 stays what it is)."""
        element = kind.element
        if element in ("f32", "f64"):
            return value
        if element == "f16":
            half = self.cast("bitcast", value, "i16", "half", width)
            return self.cast("fpext", half, "half", "float", width)
        if element == "bf16":
            word = self.cast("zext", value, "i16", "i32", width)
            word = self.op("shl", "i32", width, word, self.const(16, "i32", width))
            return self.cast("bitcast", word, "i32", "float", width)
        return self._widen_mini(value, MINI_FLOATS[element], width)

    def _widen_mini(self, value: str, form: MiniFloat, width: int) -> str:
        word = self.cast("zext", value, "i8", "i32", width)
        code = self.op("and", "i32", width, word, self.const(0x7F, "i32", width))
        sign = self.op("and", "i32", width, word, self.const(0x80, "i32", width))
        sign = self.op("shl", "i32", width, sign, self.const(24, "i32", width))
        scaled = self.op("shl", "i32", width, code, self.const(23 - form.mantissa, "i32", width))
        number = self.cast("bitcast", scaled, "i32", "float", width)
        # The multiplication by a power of two is exact, for subnormal codes too.
        number = self.op(
            "fmul", "float", width, number, self.const(float_constant(2.0 ** (127 - form.bias)), "float", width)
        )
        bits = self.cast("bitcast", number, "float", "i32", width)
        if form.infinity >= 0:
            is_infinite = self.op("icmp eq", "i32", width, code, self.const(form.infinity, "i32", width))
            bits = self.choose(is_infinite, self.const(0x7F800000, "i32", width), bits, "i32", width)
        if form.nan == 0x80:
            is_nan = self.op("icmp eq", "i32", width, word, self.const(0x80, "i32", width))
            bits = self.choose(is_nan, self.const(0x7FC00000, "i32", width), bits, "i32", width)
        elif form.nan > 0:
            is_nan = self.op("icmp uge", "i32", width, code, self.const(form.nan, "i32", width))
            bits = self.choose(is_nan, self.const(0x7FC00000, "i32", width), bits, "i32", width)
        bits = self.op("or", "i32", width, bits, sign)
        return self.cast("bitcast", bits, "i32", "float", width)

    # ---- from f32
    def narrow(self, value: str, kind: Type, width: int, rtz: bool = False) -> str:
        """Round an f32 to a format (f32 stays what it is)."""
        element = kind.element
        if element == "f32":
            return value
        if element == "f16":
            half = self.cast("fptrunc", value, "float", "half", width)
            bits = self.cast("bitcast", half, "half", "i16", width)
            return self._toward_zero(bits, value, kind, width) if rtz else bits
        if element == "bf16":
            return self._narrow_bf16(value, width, rtz)
        return self._narrow_mini(value, MINI_FLOATS[element], width, rtz, kind)

    def _toward_zero(self, bits: str, value: str, kind: Type, width: int) -> str:
        """One code less where rounding has gone away from zero; also from infinity to the largest number."""
        size = kind.llvm
        back = self.widen(bits, kind, width)
        larger = self.op(
            "fcmp ogt",
            "float",
            width,
            self.intrinsic("fabs", "float", width, back),
            self.intrinsic("fabs", "float", width, value),
        )
        less = self.op("sub", size, width, bits, self.const(1, size, width))
        return self.choose(larger, less, bits, size, width)

    def _narrow_bf16(self, value: str, width: int, rtz: bool) -> str:
        bits = self.cast("bitcast", value, "float", "i32", width)
        shifted = bits
        if not rtz:
            odd = self.op("lshr", "i32", width, bits, self.const(16, "i32", width))
            odd = self.op("and", "i32", width, odd, self.const(1, "i32", width))
            shifted = self.op("add", "i32", width, bits, self.const(0x7FFF, "i32", width))
            shifted = self.op("add", "i32", width, shifted, odd)
        shifted = self.op("lshr", "i32", width, shifted, self.const(16, "i32", width))
        is_nan = self.op("fcmp uno", "float", width, value, value)
        shifted = self.choose(is_nan, self.const(0x7FFF, "i32", width), shifted, "i32", width)
        return self.cast("trunc", shifted, "i32", "i16", width)

    def _narrow_mini(self, value: str, form: MiniFloat, width: int, rtz: bool, kind: Type) -> str:
        bits = self.cast("bitcast", value, "float", "i32", width)
        sign = self.op("lshr", "i32", width, bits, self.const(24, "i32", width))
        sign = self.op("and", "i32", width, sign, self.const(0x80, "i32", width))
        size = self.op("and", "i32", width, bits, self.const(0x7FFFFFFF, "i32", width))
        drop = 23 - form.mantissa
        # Normal numbers: round at the last kept bit, then exchange the biases.
        odd = self.op("lshr", "i32", width, size, self.const(drop, "i32", width))
        odd = self.op("and", "i32", width, odd, self.const(1, "i32", width))
        if rtz:
            rounded = size
        else:
            rounded = self.op("add", "i32", width, size, self.const((1 << (drop - 1)) - 1, "i32", width))
            rounded = self.op("add", "i32", width, rounded, odd)
        normal = self.op("lshr", "i32", width, rounded, self.const(drop, "i32", width))
        normal = self.op("sub", "i32", width, normal, self.const((127 - form.bias) << form.mantissa, "i32", width))
        # Subnormal results: the sum with a power of two leaves the code in the low bits, rounded by the addition.
        magic = 2.0 ** (23 - form.mantissa + 1 - form.bias)
        number = self.cast("bitcast", size, "i32", "float", width)
        if rtz:
            scaled = self.op(
                "fmul",
                "float",
                width,
                number,
                self.const(float_constant(2.0 ** (form.mantissa + form.bias - 1)), "float", width),
            )
            small = self.cast_sat("fptosi", scaled, "float", "i32", width)
        else:
            total = self.op("fadd", "float", width, number, self.const(float_constant(magic), "float", width))
            small = self.cast("bitcast", total, "float", "i32", width)
            small = self.op("sub", "i32", width, small, self.const(float_bits(magic), "i32", width))
        smallest = (127 - form.bias + 1) << 23
        is_small = self.op("icmp ult", "i32", width, size, self.const(smallest, "i32", width))
        code = self.choose(is_small, small, normal, "i32", width)
        over = self.op("icmp sgt", "i32", width, code, self.const(form.largest, "i32", width))
        # NVIDIA's conversions saturate: only an infinite or NaN operand gives a special code.
        code = self.choose(over, self.const(form.largest, "i32", width), code, "i32", width)
        if form.infinity >= 0:
            is_infinite = self.op("icmp eq", "i32", width, size, self.const(0x7F800000, "i32", width))
            code = self.choose(is_infinite, self.const(form.infinity, "i32", width), code, "i32", width)
        is_nan = self.op("icmp ugt", "i32", width, size, self.const(0x7F800000, "i32", width))
        if form.nan == 0x80:
            # The negative zero is the NaN, so zeros have no sign.
            is_zero = self.op("icmp eq", "i32", width, code, self.const(0, "i32", width))
            sign = self.choose(is_zero, self.const(0, "i32", width), sign, "i32", width)
        code = self.op("or", "i32", width, code, sign)
        if form.nan >= 0:
            nan = 0x80 if form.nan == 0x80 else 0x7F
            code = self.choose(is_nan, self.const(nan, "i32", width), code, "i32", width)
        return self.cast("trunc", code, "i32", "i8", width)

    # ---- between any two
    def convert_float(self, value: str, source: Type, target: Type, width: int, rtz: bool = False) -> str:
        """From one floating-point format to another."""
        if source.element == target.element:
            return value
        if target.element == "f64":
            return self.cast("fpext", self.widen(value, source, width), "float", "double", width)
        if source.element == "f64":
            if target.element == "f32":
                return self.cast("fptrunc", value, "double", "float", width)
            value = self._odd_float(value, width)
            return self.narrow(value, target, width, rtz)
        return self.narrow(self.widen(value, source, width), target, width, rtz)

    def _odd_float(self, value: str, width: int) -> str:
        """f64 to f32 rounded to odd: a second rounding, to a format below f32, then is as good as one."""
        near = self.cast("fptrunc", value, "double", "float", width)
        back = self.cast("fpext", near, "float", "double", width)
        exact = self.op("fcmp ueq", "double", width, back, value)
        bits = self.cast("bitcast", near, "float", "i32", width)
        size, other = self.intrinsic("fabs", "double", width, back), self.intrinsic("fabs", "double", width, value)
        larger = self.op("fcmp ogt", "double", width, size, other)
        less = self.op("sub", "i32", width, bits, self.const(1, "i32", width))
        down = self.choose(larger, less, bits, "i32", width)
        odd = self.op("or", "i32", width, down, self.const(1, "i32", width))
        bits = self.choose(exact, bits, odd, "i32", width)
        return self.cast("bitcast", bits, "i32", "float", width)

    def cast_sat(self, name: str, value: str, source: str, target: str, width: int) -> str:
        """fptosi and fptoui as NVIDIA's cvt does them: out of range saturates.

        NaN is 0, or the highest bit alone where either type has 64 bits (PTX ISA, "cvt").
        """
        kind, result = self.b.vector_type(source, width), self.b.vector_type(target, width)
        short = {"float": "f32", "double": "f64"}[source]
        names = (target, short) if width == 1 else (f"v{width}{target}", f"v{width}{short}")
        found = self.b.call(result, f"llvm.{name}.sat.{names[0]}.{names[1]}", [(kind, value)])
        bits = int(target[1:])
        if source != "double" and bits != 64:
            return found
        is_nan = self.op("fcmp uno", source, width, value, value)
        return self.choose(is_nan, self.const(-(1 << (bits - 1)), target, width), found, target, width)
