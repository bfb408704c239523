"""Operations on single elements: the same code on scalars (width 1) and on vectors."""

import re
from typing import Dict, List, Optional, Sequence

from ..errors import LoweringError
from ..ir import Operation
from ..text import Builder
from ..types import Type
from .avx512 import extreme_number
from .conversions import MINI_FLOATS, Conversions, float_bits, float_constant

_INTEGER = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}
_INTEGER_CALLS = {"arith.maxsi": "smax", "arith.minsi": "smin", "arith.maxui": "umax", "arith.minui": "umin"}
_DIVISIONS = {
    "arith.divsi": "sdiv",
    "arith.remsi": "srem",
    "arith.divui": "udiv",
    "arith.remui": "urem",
}
_SHIFTS = {"arith.shli": "shl", "arith.shrsi": "ashr", "arith.shrui": "lshr"}
_FLOAT = {
    "arith.addf": "fadd",
    "arith.subf": "fsub",
    "arith.mulf": "fmul",
    "arith.divf": "fdiv",
    "tt.precise_divf": "fdiv",
    "tt.approx_divf": "fdiv",
}
_EXTREMES = {"arith.maxnumf": ("maximum", True), "arith.minnumf": ("minimum", True),
             "arith.maximumf": ("maximum", False), "arith.minimumf": ("minimum", False)}  # fmt: skip
_COMPARE_FLOAT = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)
# Functions that LLVM has an instruction for.
_INTRINSICS = {
    "math.sqrt": "sqrt",
    "tt.precise_sqrt": "sqrt",
    "math.absf": "fabs",
    "math.floor": "floor",
    "math.ceil": "ceil",
    "math.trunc": "trunc",
    "math.roundeven": "roundeven",
    "math.fma": "fma",
    "math.copysign": "copysign",
}
# The others, by the name of the C library's function for double.
_FUNCTIONS = {
    name: name.split(".")[1]
    for name in [
        "math.exp",
        "math.exp2",
        "math.log",
        "math.log2",
        "math.log10",
        "math.log1p",
        "math.expm1",
        "math.sin",
        "math.cos",
        "math.tan",
        "math.erf",
        "math.tanh",
        "math.sinh",
        "math.cosh",
        "math.asin",
        "math.acos",
        "math.atan",
        "math.atan2",
        "math.asinh",
        "math.acosh",
        "math.atanh",
        "math.cbrt",
        "math.round",
    ]
}
_FUNCTIONS["math.powf"] = "pow"


class Elementwise(Conversions):
    """Writes elementwise operations through a builder."""

    def __init__(self, builder: Builder):
        self.b = builder

    def apply(self, operation: Operation, values: Sequence[str], width: int) -> List[str]:
        """The results of the operation for operands in registers (each a scalar or a vector of `width`)."""
        kinds = [operand.type.scalar for operand in operation.operands]
        result = operation.results[0].type.scalar if operation.results else None
        name = operation.name
        method = _METHODS.get(name)
        if method is not None:
            found = getattr(self, method)(operation, list(values), kinds, result, width)
            return found if isinstance(found, list) else [found]
        if name in _INTRINSICS or name in _FUNCTIONS:
            return [self.function(name, values, result, width)]
        raise LoweringError(name, "has no lowering to the CPU", operation.location)

    def knows(self, operation: Operation) -> bool:
        return operation.name in _METHODS or operation.name in _INTRINSICS or operation.name in _FUNCTIONS

    # ---- integers
    def _integer(self, operation, values, kinds, result, width):
        return self.op(_INTEGER[operation.name], result.llvm, width, *values)

    def _integer_call(self, operation, values, kinds, result, width):
        return self.intrinsic(_INTEGER_CALLS[operation.name], result.llvm, width, *values)

    def _division(self, operation, values, kinds, result, width):
        """x86 ends the process where NVIDIA's hardware gives a number: division by 0, and the one that overflows.

        By 0 quotient and remainder are all ones there. Of 64 bits, which are divided as 32 where these hold both
        operands, only the lower ones are.
        """
        name, kind = _DIVISIONS[operation.name], result.llvm
        top, bottom = values
        if known_constant(bottom) not in (None, 0, -1):
            return self.op(name, kind, width, top, bottom)
        zero, one = self.const(0, kind, width), self.const(1, kind, width)
        ones = self.const(-1, kind, width)
        by_zero = self.op("icmp eq", kind, width, bottom, zero)
        safe = self.choose(by_zero, one, bottom, kind, width)
        if name in ("sdiv", "srem"):
            by_minus = self.op("icmp eq", kind, width, bottom, ones)
            safe = self.choose(by_minus, one, safe, kind, width)
        found = self.op(name, kind, width, top, safe)
        if name == "sdiv":
            found = self.choose(by_minus, self.op("sub", kind, width, zero, top), found, kind, width)
        if result.bits == 64:
            low = self.const(0xFFFFFFFF, kind, width)
            ones = self.choose(self.op("icmp ule", kind, width, top, low), low, ones, kind, width)
        return self.choose(by_zero, ones, found, kind, width)

    def _rounded_division(self, operation, values, kinds, result, width):
        kind = result.llvm
        zero, one = self.const(0, kind, width), self.const(1, kind, width)
        remainder = Operation("arith.remsi" if "si" in operation.name else "arith.remui")
        quotient = Operation("arith.divsi" if "si" in operation.name else "arith.divui")
        found = self._division(quotient, values, kinds, result, width)
        rest = self._division(remainder, values, kinds, result, width)
        inexact = self.op("icmp ne", kind, width, rest, zero)
        if "si" in operation.name:
            signs = self.op("xor", kind, width, *values)
            same = self.op("icmp sge" if "ceil" in operation.name else "icmp slt", kind, width, signs, zero)
            inexact = self.op("and", "i1", width, inexact, same)
        moved = self.op("add" if "ceil" in operation.name else "sub", kind, width, found, one)
        return self.choose(inexact, moved, found, kind, width)

    def _shift(self, operation, values, kinds, result, width):
        """A count of the width or more shifts everything out, as PTX has it."""
        name, kind = _SHIFTS[operation.name], result.llvm
        limit = self.const(result.bits - 1, kind, width)
        number = known_constant(values[1])
        if number is not None and 0 <= number < result.bits:
            return self.op(name, kind, width, *values)
        inside = self.op("icmp ule", kind, width, values[1], limit)
        count = self.choose(inside, values[1], limit, kind, width)
        found = self.op(name, kind, width, values[0], count)
        if name == "ashr":
            return found
        return self.choose(inside, found, self.const(0, kind, width), kind, width)

    def _compare_integer(self, operation, values, kinds, result, width):
        return self.op("icmp " + operation.words[0], kinds[0].llvm, width, *values)

    def _high_product(self, operation, values, kinds, result, width):
        kind, double = result.llvm, f"i{2 * result.bits}"
        extend = "sext" if operation.name == "tt.mulhisi" else "zext"
        wide = [self.cast(extend, value, kind, double, width) for value in values]
        product = self.op("mul", double, width, *wide)
        product = self.op("lshr", double, width, product, self.const(result.bits, double, width))
        return self.cast("trunc", product, double, kind, width)

    def _extended(self, operation, values, kinds, result, width):
        kind, double = result.llvm, f"i{2 * result.bits}"
        if operation.name == "arith.addui_extended":
            total = self.op("add", kind, width, *values)
            return [total, self.op("icmp ult", kind, width, total, values[0])]
        extend = "sext" if "mulsi" in operation.name else "zext"
        wide = [self.cast(extend, value, kind, double, width) for value in values]
        product = self.op("mul", double, width, *wide)
        high = self.op("lshr", double, width, product, self.const(result.bits, double, width))
        return [self.cast("trunc", product, double, kind, width), self.cast("trunc", high, double, kind, width)]

    def _absolute(self, operation, values, kinds, result, width):
        negative = self.op("sub", result.llvm, width, self.const(0, result.llvm, width), values[0])
        return self.intrinsic("smax", result.llvm, width, values[0], negative)

    # ---- floating point
    def _float(self, operation, values, kinds, result, width):
        name = _FLOAT[operation.name]
        kind = "double" if result.element == "f64" else "float"
        wide = [self.widen(value, result, width) for value in values]
        fused = self.b.module.contract if name != "fdiv" else ""
        return self.narrow_result(self.op(f"{name} {fused}".strip(), kind, width, *wide), result, width)

    def narrow_result(self, value: str, result: Type, width: int) -> str:
        return value if result.element == "f64" else self.narrow(value, result, width)

    def _remainder(self, operation, values, kinds, result, width):
        wide = [self.widen(value, result, width) for value in values]
        return self.narrow_result(self.lanes("fmod", wide, result, width), result, width)

    def _negate(self, operation, values, kinds, result, width):
        if result.element in ("f32", "f64"):
            return self.op("fneg", result.llvm, width, values[0])
        sign = self.const(1 << (result.bits - 1), result.llvm, width)
        return self.op("xor", result.llvm, width, values[0], sign)

    def _extreme(self, operation, values, kinds, result, width):
        name, ignore = _EXTREMES[operation.name]
        return self.extreme(name, ignore, values, result, width)

    def extreme(self, name: str, ignore_nan: bool, values: Sequence[str], result: Type, width: int) -> str:
        """`maximum` or `minimum`, -0 below +0. A NaN is either ignored beside a number, or the result."""
        kind = "double" if result.element == "f64" else "float"
        first, second = [self.widen(value, result, width) for value in values]
        found = extreme_number(self.b, name, first, second, kind, width) if ignore_nan else None
        if found is not None:
            return self.narrow_result(found, result, width)
        found = self.intrinsic(name, kind, width, first, second)
        if ignore_nan:
            found = self.choose(self.op("fcmp uno", kind, width, second, second), first, found, kind, width)
            found = self.choose(self.op("fcmp uno", kind, width, first, first), second, found, kind, width)
        return self.narrow_result(found, result, width)

    def _clamp(self, operation, values, kinds, result, width):
        """min(max(x, low), high), as upstream computes it for capability 8.0."""
        ignore = "all" not in operation.attributes.get("propagateNan", "none")
        inner = self.extreme("maximum", ignore, [values[0], values[1]], result, width)
        return self.extreme("minimum", ignore, [inner, values[2]], result, width)

    def _compare_float(self, operation, values, kinds, result, width):
        wide = [self.widen(value, kinds[0], width) for value in values]
        kind = "double" if kinds[0].element == "f64" else "float"
        return self.op("fcmp " + operation.words[0], kind, width, *wide)

    # ---- functions
    def function(self, name: str, values: Sequence[str], result: Type, width: int) -> str:
        """A function of math.* on any floating-point element."""
        kind = "double" if result.element == "f64" else "float"
        wide = [self.widen(value, result, width) for value in values]
        if name in _INTRINSICS:
            found = self.intrinsic(_INTRINSICS[name], kind, width, *wide)
        else:
            found = self.lanes(_FUNCTIONS[name], wide, result, width)
        return self.narrow_result(found, result, width)

    def _rsqrt(self, operation, values, kinds, result, width):
        kind = "double" if result.element == "f64" else "float"
        root = self.intrinsic("sqrt", kind, width, self.widen(values[0], result, width))
        one = self.const(float_constant(1.0), kind, width)
        return self.narrow_result(self.op("fdiv", kind, width, one, root), result, width)

    def lanes(self, function: str, values: Sequence[str], result: Type, width: int) -> str:
        """A function on f32 or f64: ours on vectors where there is one, else the C library's, lane by lane."""
        kind = "double" if result.element == "f64" else "float"
        vector = self.vector_function(function, kind, width)
        full = self.b.vector_type(kind, width)
        if vector:
            return self.b.call(full, vector, [(full, value) for value in values])
        name = function if kind == "double" else function + "f"

        def one(single: Sequence[str]) -> str:
            return self.b.call(kind, name, [(kind, value) for value in single], " nounwind memory(none)")

        return self.each_lane(width, kind, values, [kind] * len(values), one)

    def vector_function(self, function: str, kind: str, width: int) -> str:
        from .vector_math import helper

        return helper(self.b.module, function, kind, width)

    def each_lane(self, width: int, kind: str, values: Sequence[str], kinds: Sequence[str], body) -> str:
        """Apply `body` to each lane of the vectors, and join what it returns."""
        if width == 1:
            return body(list(values))
        found = "poison"
        full = self.b.vector_type(kind, width)
        for lane in range(width):
            single = [self.b.emit(f"extractelement <{width} x {k}> {v}, i64 {lane}") for v, k in zip(values, kinds)]
            found = self.b.emit(f"insertelement {full} {found}, {kind} {body(single)}, i64 {lane}")
        return found

    # ---- conversions
    def _extend(self, operation, values, kinds, result, width):
        name = {"arith.extsi": "sext", "arith.extui": "zext", "arith.trunci": "trunc"}[operation.name]
        return self.cast(name, values[0], kinds[0].llvm, result.llvm, width)

    def _index_cast(self, operation, values, kinds, result, width):
        source, target = kinds[0].bits, result.bits
        if source == target:
            return values[0]
        widening = "zext" if operation.name == "arith.index_castui" else "sext"
        return self.cast(widening if source < target else "trunc", values[0], kinds[0].llvm, result.llvm, width)

    def _to_float(self, operation, values, kinds, result, width):
        name = "sitofp" if operation.name == "arith.sitofp" and kinds[0].bits > 1 else "uitofp"
        source, value = kinds[0].llvm, values[0]
        if result.element in ("f32", "f64"):
            return self.cast(name, value, source, result.llvm, width)
        if kinds[0].bits <= 16:
            return self.narrow(self.cast(name, value, source, "float", width), result, width)
        # Of 32 bits f64 is exact; of 64 bits two roundings may differ from one, so the low bits go into one first.
        if kinds[0].bits == 64:
            value = self._sticky(value, name == "sitofp", width)
        wide = self.cast(name, value, source, "double", width)
        return self.narrow(self._odd_float(wide, width), result, width)

    def _sticky(self, value: str, signed: bool, width: int) -> str:
        """The low 12 bits of an i64 of more than 52 bits become one bit that says whether any was set."""
        size = value
        if signed:
            negative = self.op("sub", "i64", width, self.const(0, "i64", width), value)
            size = self.intrinsic("smax", "i64", width, value, negative)
        low = self.op("and", "i64", width, value, self.const(4095, "i64", width))
        any_low = self.op("icmp ne", "i64", width, low, self.const(0, "i64", width))
        high = self.op("and", "i64", width, value, self.const(-4096, "i64", width))
        bit = self.cast("zext", any_low, "i1", "i64", width)
        bit = self.op("shl", "i64", width, bit, self.const(11, "i64", width))
        merged = self.op("or", "i64", width, high, bit)
        large = self.op("icmp ugt", "i64", width, size, self.const((1 << 52) - 1, "i64", width))
        return self.choose(large, merged, value, "i64", width)

    def _to_integer(self, operation, values, kinds, result, width):
        name = operation.name.split(".")[1]
        kind = "double" if kinds[0].element == "f64" else "float"
        wide = self.widen(values[0], kinds[0], width)
        if result.bits < 16:
            found = self.cast_sat(name, wide, kind, "i16", width)
            return self.cast("trunc", found, "i16", result.llvm, width)
        return self.cast_sat(name, wide, kind, result.llvm, width)

    def _float_to_float(self, operation, values, kinds, result, width):
        rtz = "rtz" in operation.attributes.get("rounding", "") or "toward_zero" in operation.words
        return self.convert_float(values[0], kinds[0], result, width, rtz)

    def _bitcast(self, operation, values, kinds, result, width):
        source, target = kinds[0].llvm, result.llvm
        if source == target:
            return values[0]
        if source == "ptr" or target == "ptr":
            return self.cast("ptrtoint" if source == "ptr" else "inttoptr", values[0], source, target, width)
        return self.cast("bitcast", values[0], source, target, width)

    def _select(self, operation, values, kinds, result, width):
        return self.choose(values[0], values[1], values[2], result.llvm, width)

    def _pointer_sum(self, operation, values, kinds, result, width):
        step, kind = values[1], kinds[1].llvm
        element = f"[{result.pointee.bytes} x i8]"
        if width == 1:
            return self.b.emit(f"getelementptr {element}, ptr {values[0]}, {kind} {step}")
        full = f"<{width} x {kind}>"
        return self.b.emit(f"getelementptr {element}, <{width} x ptr> {values[0]}, {full} {step}")

    def _poison(self, operation, values, kinds, result, width):
        zero = "null" if result.is_pointer else float_constant(0.0) if result.element in ("f32", "f64") else 0
        return self.const(zero, result.llvm, width)

    def _same(self, operation, values, kinds, result, width):
        return values[0]

    def _extern(self, operation, values, kinds, result, width):
        from .device_library import extern_call

        return extern_call(self, operation, values, kinds, result, width)

    def _assembly(self, operation, values, kinds, result, width):
        from .assembly import assembly_call

        return assembly_call(self, operation, values, kinds, width)


def known_constant(value: str) -> Optional[int]:
    """The number that every lane of an integer constant has; None for anything else."""
    lanes = {lane.split()[-1] for lane in value.strip("<>").split(",")}
    only = lanes.pop()
    return int(only) if not lanes and re.match(r"-?\d+\Z", only) else None


def constant_value(text: str, kind: Type) -> str:
    """LLVM's form of a printed scalar, such as `1.0`, `0x7FC0`, `true`."""
    text = text.split(" : ")[0].strip()
    if text in ("true", "false"):
        return "1" if text == "true" else "0"
    if not kind.is_float:
        return str(int(text, 0))
    if text.lower().startswith(("0x", "-0x")):
        code = int(text, 16)
        return float_code(code, kind)
    return float_code(None, kind, float(text))


def float_code(code, kind: Type, number: float = 0.0) -> str:
    """A floating-point constant as kept in registers: LLVM's constant for f32 and f64, the bits below."""
    import struct

    if kind.element == "f64":
        return f"0x{code:016X}" if code is not None else float_constant(number)
    if kind.element == "f32":
        if code is None:
            return float_constant(struct.unpack("<f", struct.pack("<f", number))[0] if abs(number) < 3.5e38 else number)
        return single_constant(code)
    if code is not None:
        return str(code)
    if kind.element == "f16":
        return str(struct.unpack("<H", struct.pack("<e", number))[0])
    if kind.element == "bf16":
        return str(_bf16_code(number))
    return str(mini_code(number, kind.element))


def single_constant(code: int) -> str:
    """LLVM writes a float as the double of the same value; a NaN keeps its bits, moved."""
    sign, exponent, fraction = code >> 31, (code >> 23) & 255, code & 0x7FFFFF
    if exponent == 255:
        return f"0x{sign << 63 | 0x7FF << 52 | fraction << 29:016X}"
    import struct

    return float_constant(struct.unpack("<f", struct.pack("<I", code))[0])


def _bf16_code(number: float) -> int:
    """The nearest number of bf16: the printed form has no more digits than tell it from its neighbours."""
    bits = float_bits(number)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def mini_code(number: float, element: str) -> int:
    """The code of the nearest number of an 8-bit format."""
    form = MINI_FLOATS[element]
    sign = 0x80 if str(number).startswith("-") else 0

    def value(code: int) -> float:
        high, low = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
        fraction = low / (1 << form.mantissa)
        return (1 + fraction) * 2.0 ** (high - form.bias) if high else fraction * 2.0 ** (1 - form.bias)

    return sign | min(range(form.largest + 1), key=lambda code: abs(value(code) - abs(number)))


_METHODS: Dict[str, str] = {
    **dict.fromkeys(_INTEGER, "_integer"),
    **dict.fromkeys(_INTEGER_CALLS, "_integer_call"),
    **dict.fromkeys(_DIVISIONS, "_division"),
    **dict.fromkeys(("arith.ceildivsi", "arith.ceildivui", "arith.floordivsi"), "_rounded_division"),
    **dict.fromkeys(_SHIFTS, "_shift"),
    **dict.fromkeys(_FLOAT, "_float"),
    **dict.fromkeys(_EXTREMES, "_extreme"),
    **dict.fromkeys(("arith.extsi", "arith.extui", "arith.trunci"), "_extend"),
    **dict.fromkeys(("arith.index_cast", "arith.index_castui"), "_index_cast"),
    **dict.fromkeys(("arith.sitofp", "arith.uitofp"), "_to_float"),
    **dict.fromkeys(("arith.fptosi", "arith.fptoui"), "_to_integer"),
    **dict.fromkeys(("arith.extf", "arith.truncf", "tt.fp_to_fp"), "_float_to_float"),
    **dict.fromkeys(("arith.bitcast", "tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr"), "_bitcast"),
    **dict.fromkeys(("tt.mulhiui", "tt.mulhisi"), "_high_product"),
    **dict.fromkeys(("arith.addui_extended", "arith.mului_extended", "arith.mulsi_extended"), "_extended"),
    "arith.cmpi": "_compare_integer",
    "arith.cmpf": "_compare_float",
    "arith.select": "_select",
    "arith.negf": "_negate",
    "arith.remf": "_remainder",
    "math.absi": "_absolute",
    "math.rsqrt": "_rsqrt",
    "tt.clampf": "_clamp",
    "tt.addptr": "_pointer_sum",
    "tt.extern_elementwise": "_extern",
    "tt.elementwise_inline_asm": "_assembly",
    "ub.poison": "_poison",
    "llvm.mlir.undef": "_poison",
    "llvm.mlir.poison": "_poison",
}
