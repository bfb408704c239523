"""libdevice's functions by name: what `tl.extra.libdevice` calls.

Arithmetic with directed rounding (`__nv_fadd_rd` and the like) is not there.
"""

import math
import re
from typing import Callable, Dict, List, Sequence

from ..errors import LoweringError
from ..types import F32, F64, Type
from .conversions import float_constant
from .special_functions import FUNCTIONS, SpecialFunctions

# The C library's functions of floating-point numbers only; f32 has them with an f behind.
_LIBRARY = {
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fdim",
    "fmod",
    "hypot",
    "j0",
    "j1",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "nextafter",
    "pow",
    "remainder",
    "sin",
    "sinh",
    "tan",
    "tanh",
    "tgamma",
    "y0",
    "y1",
}
_INTRINSICS = {"ceil": "ceil", "floor": "floor", "fabs": "fabs", "sqrt": "sqrt", "fma": "fma", "trunc": "trunc",
               "rint": "rint", "nearbyint": "nearbyint", "round": "round", "copysign": "copysign"}  # fmt: skip
# Faster and less exact on a GPU; here they are the exact ones.
_FAST = {"fast_cosf": "cos", "fast_exp10f": "exp10", "fast_expf": "exp", "fast_log10f": "log10", "fast_log2f": "log2",
         "fast_logf": "log", "fast_powf": "pow", "fast_sinf": "sin", "fast_tanf": "tan"}  # fmt: skip
_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_ROUND_BEFORE = {"rd": "floor", "ru": "ceil", "rz": "trunc", "rn": "rint"}
_INTEGERS = {"int": ("s", "i32"), "uint": ("u", "i32"), "ll": ("s", "i64"), "ull": ("u", "i64")}


def extern_call(writer, operation, values: List[str], kinds: Sequence[Type], result: Type, width: int) -> str:
    """The value of an external function for operands in registers."""
    symbol = operation.attributes.get("symbol", "").strip('"')
    name = symbol[5:] if symbol.startswith("__nv_") else symbol
    found = _Call(writer, values, kinds, result, width).value(name)
    if found is None:
        raise LoweringError(operation.name, f"the function {symbol} is not there", operation.location)
    return found


class _Call:
    def __init__(self, writer, values, kinds, result, width):
        self.w, self.values, self.kinds, self.result, self.width = writer, values, kinds, result, width
        self.float_kind = "double" if result.element == "f64" else "float"

    def value(self, name: str):
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self)
        base = _FAST.get(name) or (
            name[:-1] if name.endswith("f") and name != "erf" and self.result.element == "f32" else name
        )
        if base in _LIBRARY:
            return self.w.lanes(base, self.values, self.result, self.width)
        if base in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[base], *self.values)
        if base in FUNCTIONS:
            return self.special(base)
        shared = _SHARED.get(base)
        if shared is not None:
            return shared(self)
        return self.converted(name)

    # ---- words
    def intrinsic(self, name: str, *values: str) -> str:
        return self.w.intrinsic(name, self.float_kind, self.width, *values)

    def op(self, name: str, *values: str) -> str:
        return self.w.op(name, self.float_kind, self.width, *values)

    def number(self, value: float) -> str:
        import struct

        if self.float_kind == "float":
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        return self.w.const(float_constant(value), self.float_kind, self.width)

    def library(self, name: str, *values: str) -> str:
        return self.w.lanes(name, values, F64 if self.float_kind == "double" else F32, self.width)

    def integer(self, name: str, *values: str) -> str:
        return self.w.op(name, self.kinds[0].llvm, self.width, *values)

    def whole(self, value: int) -> str:
        return self.w.const(value, self.kinds[0].llvm, self.width)

    def test(self, condition: str) -> str:
        """A truth value as the integer that C has."""
        return (
            condition if self.result.bits == 1 else self.w.cast("zext", condition, "i1", self.result.llvm, self.width)
        )

    def with_integer(self, name: str, kinds: Sequence[str], result: str) -> str:
        """A function of the C library that takes or gives integers, lane by lane."""
        name = name if "double" in list(kinds) + [result] else name + "f"

        def one(single: Sequence[str]) -> str:
            return self.w.b.call(result, name, list(zip(kinds, single)), " nounwind")

        return self.w.each_lane(self.width, result, self.values, kinds, one)

    # ---- conversions with a rounding in the name
    def converted(self, name: str):
        width = self.width
        match = re.match(r"(float|double)2(int|uint|ll|ull)_(r[dunz])\Z", name)
        if match:
            sign, size = _INTEGERS[match[2]]
            kind = "double" if match[1] == "double" else "float"
            rounded = self.w.intrinsic(_ROUND_BEFORE[match[3]], kind, width, self.values[0])
            return self.w.cast_sat(f"fpto{sign}i", rounded, kind, size, width)
        match = re.match(r"(int|uint|ll|ull)2(float|double)_(r[dunz])\Z", name)
        if match and (match[3] == "rn" or match[1] in ("int", "uint") and match[2] == "double"):
            sign, size = _INTEGERS[match[1]]
            return self.w.cast(f"{sign}itofp", self.values[0], size, match[2], width)
        match = re.match(r"[df](add|sub|mul|div)_rn\Z", name)
        if match:
            return self.op(_BINARY[match[1]], *self.values)
        if name == "double2float_rn":
            return self.w.cast("fptrunc", self.values[0], "double", "float", width)
        if name == "double2float_rz":
            return self._float_toward_zero()
        return None

    def _float_toward_zero(self) -> str:
        near = self.w.cast("fptrunc", self.values[0], "double", "float", self.width)
        back = self.w.cast("fpext", near, "float", "double", self.width)
        sizes = [self.w.intrinsic("fabs", "double", self.width, v) for v in (back, self.values[0])]
        larger = self.w.op("fcmp ogt", "double", self.width, *sizes)
        bits = self.w.cast("bitcast", near, "float", "i32", self.width)
        less = self.w.op("sub", "i32", self.width, bits, self.w.const(1, "i32", self.width))
        return self.w.cast("bitcast", self.w.choose(larger, less, bits, "i32", self.width), "i32", "float", self.width)

    # ---- functions that are put together from others
    def reciprocal(self, value: str) -> str:
        return self.op("fdiv", self.number(1.0), value)

    def norm(self) -> str:
        """The square root of the sum of squares, in f64 for f32 so that nothing overflows; else by hypot."""
        if self.float_kind == "double":
            total = self.library("hypot", self.values[0], self.values[1])
            for value in self.values[2:]:
                total = self.library("hypot", total, value)
            return total
        wide = [self.w.cast("fpext", value, "float", "double", self.width) for value in self.values]
        squares = [self.w.op("fmul", "double", self.width, value, value) for value in wide]
        total = squares[0]
        for square in squares[1:]:
            total = self.w.op("fadd", "double", self.width, total, square)
        return self.w.cast(
            "fptrunc", self.w.intrinsic("sqrt", "double", self.width, total), "double", "float", self.width
        )

    def turn(self, name: str) -> str:
        """sin or cos of pi x: x less its nearest even number is exact."""
        half = self.op("fmul", self.values[0], self.number(0.5))
        whole = self.intrinsic("rint", half)
        rest = self.op("fsub", self.values[0], self.op("fadd", whole, whole))
        if self.float_kind == "float":
            wide = self.w.cast("fpext", rest, "float", "double", self.width)
            angle = self.w.op(
                "fmul", "double", self.width, wide, self.w.const(float_constant(math.pi), "double", self.width)
            )
            return self.w.cast("fptrunc", self.w.lanes(name, [angle], F64, self.width), "double", "float", self.width)
        return self.library(name, self.op("fmul", rest, self.number(math.pi)))

    def saturate(self) -> str:
        value = self.values[0]
        value = self.w.choose(
            self.op("fcmp ogt", value, self.number(0.0)), value, self.number(0.0), self.float_kind, self.width
        )
        return self.w.choose(
            self.op("fcmp olt", value, self.number(1.0)), value, self.number(1.0), self.float_kind, self.width
        )

    def bit_function(self, name: str, *extra: str) -> str:
        """llvm.ctpop and the like; the result is an i32."""
        kind, full = self.kinds[0].llvm, self.w.b.vector_type(self.kinds[0].llvm, self.width)
        suffix = kind if self.width == 1 else f"v{self.width}{kind}"
        arguments = [(full, self.values[0])] + [("i1", value) for value in extra]
        found = self.w.b.call(full, f"llvm.{name}.{suffix}", arguments)
        if kind == self.result.llvm:
            return found
        return self.w.cast(
            "trunc" if self.kinds[0].bits > self.result.bits else "zext", found, kind, self.result.llvm, self.width
        )

    def first_set(self) -> str:
        kind = self.kinds[0].llvm
        place = self.bit_function("cttz", "false")
        more = self.w.op("add", self.result.llvm, self.width, place, self.w.const(1, self.result.llvm, self.width))
        none = self.w.op("icmp eq", kind, self.width, self.values[0], self.whole(0))
        return self.w.choose(none, self.w.const(0, self.result.llvm, self.width), more, self.result.llvm, self.width)

    def high_product(self, extend: str, bits: int, operand_bits: int = 0) -> str:
        wide = f"i{2 * bits}"
        parts = [self.w.cast(extend, value, f"i{bits}", wide, self.width) for value in self.values[:2]]
        product = self.w.op("mul", wide, self.width, *parts)
        product = self.w.op("lshr", wide, self.width, product, self.w.const(bits, wide, self.width))
        return self.w.cast("trunc", product, wide, f"i{bits}", self.width)

    def product24(self, shift: str) -> str:
        parts = []
        for value in self.values:
            up = self.integer("shl", value, self.whole(8))
            parts.append(self.integer(shift, up, self.whole(8)))
        return self.integer("mul", *parts)

    def average(self, extend: str, plus: int) -> str:
        wide = [self.w.cast(extend, value, "i32", "i64", self.width) for value in self.values]
        total = self.w.op("add", "i64", self.width, *wide)
        if plus:
            total = self.w.op("add", "i64", self.width, total, self.w.const(plus, "i64", self.width))
        half = self.w.op(
            "ashr" if extend == "sext" else "lshr", "i64", self.width, total, self.w.const(1, "i64", self.width)
        )
        return self.w.cast("trunc", half, "i64", "i32", self.width)

    def distance(self, signed: bool) -> str:
        high, low = ("smax", "smin") if signed else ("umax", "umin")
        top = self.w.intrinsic(high, "i32", self.width, *self.values[:2])
        bottom = self.w.intrinsic(low, "i32", self.width, *self.values[:2])
        return self.integer("add", self.integer("sub", top, bottom), self.values[2])

    def permuted(self) -> str:
        """byte_perm: four bytes of eight, each by three bits of the selector."""
        low, high, selector = self.values
        wide = self.w.cast("zext", high, "i32", "i64", self.width)
        wide = self.w.op("shl", "i64", self.width, wide, self.w.const(32, "i64", self.width))
        wide = self.w.op("or", "i64", self.width, wide, self.w.cast("zext", low, "i32", "i64", self.width))
        found = self.w.const(0, "i64", self.width)
        chosen = self.w.cast("zext", selector, "i32", "i64", self.width)
        for number in range(4):
            nibble = self.w.op("lshr", "i64", self.width, chosen, self.w.const(4 * number, "i64", self.width))
            nibble = self.w.op("and", "i64", self.width, nibble, self.w.const(7, "i64", self.width))
            shift = self.w.op("shl", "i64", self.width, nibble, self.w.const(3, "i64", self.width))
            byte = self.w.op("lshr", "i64", self.width, wide, shift)
            byte = self.w.op("and", "i64", self.width, byte, self.w.const(255, "i64", self.width))
            byte = self.w.op("shl", "i64", self.width, byte, self.w.const(8 * number, "i64", self.width))
            found = self.w.op("or", "i64", self.width, found, byte)
        return self.w.cast("trunc", found, "i64", "i32", self.width)

    def finite(self, kind: str) -> str:
        size = self.w.intrinsic("fabs", kind, self.width, self.values[0])
        infinity = self.w.const("0x7FF0000000000000", kind, self.width)
        return self.test(self.w.op("fcmp olt", kind, self.width, size, infinity))

    def infinite(self, kind: str) -> str:
        size = self.w.intrinsic("fabs", kind, self.width, self.values[0])
        infinity = self.w.const("0x7FF0000000000000", kind, self.width)
        return self.test(self.w.op("fcmp oeq", kind, self.width, size, infinity))

    def not_a_number(self, kind: str) -> str:
        return self.test(self.w.op("fcmp uno", kind, self.width, self.values[0], self.values[0]))

    def negative(self, kind: str) -> str:
        size = "i64" if kind == "double" else "i32"
        bits = self.w.cast("bitcast", self.values[0], kind, size, self.width)
        return self.test(self.w.op("icmp slt", size, self.width, bits, self.w.const(0, size, self.width)))

    def same_bits(self) -> str:
        return self.w.cast("bitcast", self.values[0], self.kinds[0].llvm, self.result.llvm, self.width)

    def word(self, shift: int) -> str:
        bits = self.w.cast("bitcast", self.values[0], "double", "i64", self.width)
        bits = self.w.op("lshr", "i64", self.width, bits, self.w.const(shift, "i64", self.width))
        return self.w.cast("trunc", bits, "i64", "i32", self.width)

    def two_words(self) -> str:
        high, low = (self.w.cast("zext", value, "i32", "i64", self.width) for value in self.values)
        high = self.w.op("shl", "i64", self.width, high, self.w.const(32, "i64", self.width))
        return self.w.cast("bitcast", self.w.op("or", "i64", self.width, high, low), "i64", "double", self.width)

    def rounded_to_integer(self, name: str) -> str:
        rounded = self.w.intrinsic(name, self.kinds[0].llvm, self.width, self.values[0])
        return self.w.cast_sat("fptosi", rounded, self.kinds[0].llvm, self.result.llvm, self.width)

    def power_of_integer(self) -> str:
        exponent = self.w.cast("sitofp", self.values[1], "i32", self.float_kind, self.width)
        return self.library("pow", self.values[0], exponent)

    def absolute(self) -> str:
        negated = self.integer("sub", self.whole(0), self.values[0])
        return self.w.intrinsic("smax", self.kinds[0].llvm, self.width, self.values[0], negated)

    def special(self, name: str) -> str:
        """A function that is computed in f64."""
        value, width = self.values[0], self.width
        if self.float_kind == "float":
            value = self.w.cast("fpext", value, "float", "double", width)
        found = FUNCTIONS[name](SpecialFunctions(self.w, width), value)
        return found if self.float_kind == "double" else self.w.cast("fptrunc", found, "double", "float", width)

    def normal_distribution(self) -> str:
        scaled = self.op("fmul", self.values[0], self.number(-math.sqrt(0.5)))
        return self.op("fmul", self.number(0.5), self.library("erfc", scaled))


_SHARED: Dict[str, Callable[[_Call], str]] = {
    "rsqrt": lambda c: c.reciprocal(c.intrinsic("sqrt", c.values[0])),
    "rcbrt": lambda c: c.reciprocal(c.library("cbrt", c.values[0])),
    "rhypot": lambda c: c.reciprocal(c.norm()),
    "norm3d": lambda c: c.norm(),
    "norm4d": lambda c: c.norm(),
    "rnorm3d": lambda c: c.reciprocal(c.norm()),
    "rnorm4d": lambda c: c.reciprocal(c.norm()),
    "sinpi": lambda c: c.turn("sin"),
    "cospi": lambda c: c.turn("cos"),
    "normcdf": lambda c: c.normal_distribution(),
    "powi": lambda c: c.power_of_integer(),
    "ldexp": lambda c: c.with_integer("ldexp", [c.float_kind, "i32"], c.float_kind),
    "scalbn": lambda c: c.with_integer("ldexp", [c.float_kind, "i32"], c.float_kind),
    "jn": lambda c: c.with_integer("jn", ["i32", c.float_kind], c.float_kind),
    "yn": lambda c: c.with_integer("yn", ["i32", c.float_kind], c.float_kind),
}  # fmt: skip
_SPECIAL: Dict[str, Callable[[_Call], str]] = {
    "abs": lambda c: c.absolute(),
    "llabs": lambda c: c.absolute(),
    "clz": lambda c: c.bit_function("ctlz", "false"),
    "clzll": lambda c: c.bit_function("ctlz", "false"),
    "popc": lambda c: c.bit_function("ctpop"),
    "popcll": lambda c: c.bit_function("ctpop"),
    "brev": lambda c: c.bit_function("bitreverse"),
    "brevll": lambda c: c.bit_function("bitreverse"),
    "ffs": lambda c: c.first_set(),
    "ffsll": lambda c: c.first_set(),
    "mulhi": lambda c: c.high_product("sext", 32),
    "umulhi": lambda c: c.high_product("zext", 32),
    "mul64hi": lambda c: c.high_product("sext", 64),
    "umul64hi": lambda c: c.high_product("zext", 64),
    "mul24": lambda c: c.product24("ashr"),
    "umul24": lambda c: c.product24("lshr"),
    "hadd": lambda c: c.average("sext", 0),
    "rhadd": lambda c: c.average("sext", 1),
    "uhadd": lambda c: c.average("zext", 0),
    "urhadd": lambda c: c.average("zext", 1),
    "sad": lambda c: c.distance(True),
    "usad": lambda c: c.distance(False),
    "byte_perm": lambda c: c.permuted(),
    "saturatef": lambda c: c.saturate(),
    "fast_fdividef": lambda c: c.op("fdiv", *c.values),
    "drcp_rn": lambda c: c.reciprocal(c.values[0]),
    "frcp_rn": lambda c: c.reciprocal(c.values[0]),
    "dsqrt_rn": lambda c: c.intrinsic("sqrt", c.values[0]),
    "fsqrt_rn": lambda c: c.intrinsic("sqrt", c.values[0]),
    "frsqrt_rn": lambda c: c.reciprocal(c.intrinsic("sqrt", c.values[0])),
    "fma_rn": lambda c: c.intrinsic("fma", *c.values),
    "fmaf_rn": lambda c: c.intrinsic("fma", *c.values),
    "finitef": lambda c: c.finite("float"),
    "isfinited": lambda c: c.finite("double"),
    "isinff": lambda c: c.infinite("float"),
    "isinfd": lambda c: c.infinite("double"),
    "isnanf": lambda c: c.not_a_number("float"),
    "isnand": lambda c: c.not_a_number("double"),
    "signbitf": lambda c: c.negative("float"),
    "signbitd": lambda c: c.negative("double"),
    "double_as_longlong": lambda c: c.same_bits(),
    "longlong_as_double": lambda c: c.same_bits(),
    "float_as_int": lambda c: c.same_bits(),
    "float_as_uint": lambda c: c.same_bits(),
    "int_as_float": lambda c: c.same_bits(),
    "uint_as_float": lambda c: c.same_bits(),
    "double2hiint": lambda c: c.word(32),
    "double2loint": lambda c: c.word(0),
    "hiloint2double": lambda c: c.two_words(),
    "llrint": lambda c: c.rounded_to_integer("rint"),
    "llrintf": lambda c: c.rounded_to_integer("rint"),
    "llround": lambda c: c.rounded_to_integer("round"),
    "llroundf": lambda c: c.rounded_to_integer("round"),
    "ilogb": lambda c: c.with_integer("ilogb", ["double"], "i32"),
    "ilogbf": lambda c: c.with_integer("ilogb", ["float"], "i32"),
}
