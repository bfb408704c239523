"""Functions on vectors of f32: polynomials, so that no library of the user's machine is needed for speed.

Each is within 3 units in the last place of the exact value over all of f32 (sin and cos: below 2^30; beyond that lanes
go to the C library one by one). Arguments are reduced as in W. J. Cody and W. Waite, "Software Manual for the
Elementary Functions" (1980). Coefficients are those of Taylor's series; for exp and exp2 of a least relative error, for
erf of a Chebyshev fit, both made in f64.
"""

import math
from typing import Dict, Sequence

from ..text import Builder, ModuleText
from .avx512 import scaled
from .conversions import Conversions, float_constant

_SHIFT = 1.5 * 2.0**23  # a sum with it is rounded to a whole number, which then lies in the low bits
# Fitted between -1/2 and 1/2 of a power of two, to 0.05 of a unit in the last place.
_EXP = (1.0, 1.0, 0.4999999344387195, 0.16666520573570293, 0.041668388731834885, 0.008368723935796985,
        0.0013814583915344597)  # fmt: skip
_EXP2 = (1.0, 0.6931472028809844, 0.24022647910290376, 0.05550332409586156, 0.00961843760574349, 0.0013398900204082762,
         0.00015353341189147145)  # fmt: skip
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440054690583e-4
_ERF_SMALL = (1.128379167062361, -0.3761263847599066, 0.11283782622053236, -0.02686543831002, 0.005221053411187171,
              -0.000848439653129711, 0.00011268253755413467, -9.673590415627437e-06)  # fmt: skip
_LOG_ERFC = (0.0004005005866059008, -1.1306044697610633, -0.6310888673362526, -0.11090741774271334, 0.02699949758514032,
             -0.005021044959738894, 0.000673337606095981, -6.006880573554545e-05, 3.095205635983686e-06,
             -6.582862216628086e-08)  # fmt: skip


def helper(module: ModuleText, function: str, kind: str, width: int) -> str:
    """The name of a function on vectors, written into the module at its first use; "" where there is none."""
    method = _FUNCTIONS.get(function)
    if kind != "float" or width == 1 or method is None or "fma" not in module.features:
        return ""
    name = f'"maca.{function}.v{width}"'
    if name not in module.helpers:
        writer = _Writer(module, width)
        result = getattr(writer, method)("%x")
        writer.b.put(f"ret <{width} x float> {result}")
        full = f"<{width} x float>"
        module.helpers[name] = f"define internal {full} @{name}({full} %x) #0 {{\n{writer.b.body()}\n}}"
    return name


class _Writer(Conversions):
    def __init__(self, module: ModuleText, width: int):
        self.b = Builder(module)
        self.width = width

    # ---- words
    def f(self, number: float) -> str:
        import struct

        return self.const(float_constant(struct.unpack("<f", struct.pack("<f", number))[0]), "float", self.width)

    def i(self, number: int) -> str:
        return self.const(number, "i32", self.width)

    def do(self, name: str, *values: str) -> str:
        kind = "float" if name[0] == "f" else "i32"
        return self.op(name, kind, self.width, *values)

    def fma(self, a: str, b: str, c: str) -> str:
        return self.intrinsic("fma", "float", self.width, a, b, c)

    def bits(self, value: str) -> str:
        return self.cast("bitcast", value, "float", "i32", self.width)

    def number(self, value: str) -> str:
        return self.cast("bitcast", value, "i32", "float", self.width)

    def pick(self, condition: str, yes: str, no: str, kind: str = "float") -> str:
        return self.choose(condition, yes, no, kind, self.width)

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Horner's rule; the constant term comes first."""
        total = self.f(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, self.f(coefficient))
        return total

    def whole(self, x: str, scale: float):
        """The whole number nearest to x scale, as a float and as an i32."""
        shifted = self.fma(x, self.f(scale), self.f(_SHIFT))
        number = self.do("fsub", shifted, self.f(_SHIFT))
        return number, self.do("sub", self.bits(shifted), self.i(0x4B400000))

    def scale(self, value: str, number: str, power: str) -> str:
        """value 2^power, for powers beyond the exponents of f32 too; `number` is the power as a float."""
        found = scaled(self.b, value, number, self.width)
        if found is not None:
            return found
        # In two steps, as neither half of the power is beyond them.
        half = self.do("ashr", power, self.i(1))
        rest = self.do("sub", power, half)
        for part in (half, rest):
            exponent = self.do("shl", self.do("add", part, self.i(127)), self.i(23))
            value = self.do("fmul", value, self.number(exponent))
        return value

    def clamp(self, x: str, low: float, high: float) -> str:
        """A NaN stays one."""
        x = self.pick(self.do("fcmp ogt", x, self.f(high)), self.f(high), x)
        return self.pick(self.do("fcmp olt", x, self.f(low)), self.f(low), x)

    # ---- exp, exp2, expm1, tanh
    def exp(self, x: str) -> str:
        x = self.clamp(x, -104.0, 89.0)
        number, power = self.whole(x, 1 / math.log(2))
        rest = self.fma(number, self.f(-_LN2_HIGH), x)
        rest = self.fma(number, self.f(-_LN2_LOW), rest)
        return self.scale(self.polynomial(rest, _EXP), number, power)

    def exp2(self, x: str) -> str:
        x = self.clamp(x, -151.0, 129.0)
        number, power = self.whole(x, 1.0)
        rest = self.do("fsub", x, number)
        return self.scale(self.polynomial(rest, _EXP2), number, power)

    def expm1(self, x: str) -> str:
        """2^n (exp(r) - 1) + (2^n - 1): exact where n is 0, which is where 1 would cancel."""
        x = self.clamp(x, -30.0, 89.0)
        number, power = self.whole(x, 1 / math.log(2))
        rest = self.fma(number, self.f(-_LN2_HIGH), x)
        rest = self.fma(number, self.f(-_LN2_LOW), rest)
        square = self.do("fmul", rest, rest)
        tail = self.polynomial(rest, [1 / math.factorial(n) for n in range(2, 9)])
        small = self.fma(square, tail, rest)
        half = self.do("ashr", power, self.i(1))
        other = self.do("sub", power, half)
        first, second = (self.number(self.do("shl", self.do("add", p, self.i(127)), self.i(23))) for p in (half, other))
        one = self.do("fdiv", self.do("fdiv", self.f(1.0), first), second)
        total = self.do("fadd", small, self.do("fsub", self.f(1.0), one))
        large = self.do("fmul", self.do("fmul", total, first), second)
        return self.pick(self.do("icmp eq", power, self.i(0)), small, large)

    def tanh(self, x: str) -> str:
        size = self.intrinsic("fabs", "float", self.width, x)
        size = self.clamp(size, 0.0, 10.0)
        power = self.exp(self.do("fadd", size, size))
        quotient = self.do("fdiv", self.f(2.0), self.do("fadd", power, self.f(1.0)))
        large = self.do("fsub", self.f(1.0), quotient)
        square = self.do("fmul", size, size)
        # The convergent of tanh's continued fraction with seven levels, less x.
        top = self.polynomial(square, (-3465.0 / 10395, -189.0 / 10395, -1.0 / 10395))
        bottom = self.polynomial(square, (1.0, 4725.0 / 10395, 210.0 / 10395, 1.0 / 10395))
        cube = self.do("fmul", self.do("fmul", size, square), top)
        small = self.do("fadd", size, self.do("fdiv", cube, bottom))
        found = self.pick(self.do("fcmp olt", size, self.f(0.625)), small, large)
        found = self.intrinsic("copysign", "float", self.width, found, x)
        return self.pick(self.do("fcmp uno", x, x), x, found)

    # ---- logarithms
    def _split(self, x: str):
        """x = (1 + f) 2^k with 1 + f between sqrt(1/2) and sqrt(2): f and k as floats."""
        small = self.do("fcmp olt", x, self.f(2.0**-126))
        scaled = self.pick(small, self.do("fmul", x, self.f(2.0**23)), x)
        shift = self.pick(small, self.i(-23), self.i(0), "i32")
        bits = self.do("add", self.bits(scaled), self.i(0x3F800000 - 0x3F3504F3))
        k = self.do("add", self.do("sub", self.do("ashr", bits, self.i(23)), self.i(127)), shift)
        mantissa = self.do("add", self.do("and", bits, self.i(0x7FFFFF)), self.i(0x3F3504F3))
        f = self.do("fsub", self.number(mantissa), self.f(1.0))
        return f, self.cast("sitofp", k, "i32", "float", self.width)

    def _log1p_parts(self, f: str):
        """log(1 + f) = f - (h - s (h + r)), as h = f^2 / 2 and s (h + r)."""
        s = self.do("fdiv", f, self.do("fadd", f, self.f(2.0)))
        z = self.do("fmul", s, s)
        r = self.do("fmul", z, self.polynomial(z, [2 / n for n in (3, 5, 7, 9, 11)]))
        h = self.do("fmul", self.do("fmul", f, f), self.f(0.5))
        return h, self.do("fmul", s, self.do("fadd", h, r))

    def _log_limits(self, x: str, found: str) -> str:
        infinity = self.const("0x7FF0000000000000", "float", self.width)
        minus = self.const("0xFFF0000000000000", "float", self.width)
        nan = self.const("0x7FF8000000000000", "float", self.width)
        found = self.pick(self.do("fcmp oeq", x, infinity), infinity, found)
        found = self.pick(self.do("fcmp oeq", x, self.f(0.0)), minus, found)
        return self.pick(self.do("fcmp ult", x, self.f(0.0)), nan, found)

    def log(self, x: str) -> str:
        f, k = self._split(x)
        h, t = self._log1p_parts(f)
        inner = self.do("fsub", h, self.fma(k, self.f(_LN2_LOW), t))
        found = self.fma(k, self.f(_LN2_HIGH), self.do("fsub", f, inner))
        return self._log_limits(x, found)

    def _log_base(self, x: str, factor: float, unit: float) -> str:
        """log(1 + f) factor + k unit, with the first product in two parts."""
        f, k = self._split(x)
        h, t = self._log1p_parts(f)
        rounded = self.number(self.do("and", self.bits(self.do("fsub", f, h)), self.i(-4096)))
        low = self.do("fadd", self.do("fsub", self.do("fsub", f, rounded), h), t)
        high_factor = _truncated(factor)
        total = self.do("fmul", low, self.f(factor))
        total = self.fma(rounded, self.f(factor - high_factor), total)
        total = self.fma(rounded, self.f(high_factor), total)
        if unit == 1.0:
            total = self.do("fadd", total, k)
        else:
            high_unit = _truncated(unit)
            total = self.fma(k, self.f(unit - high_unit), total)
            total = self.fma(k, self.f(high_unit), total)
        return self._log_limits(x, total)

    def log2(self, x: str) -> str:
        return self._log_base(x, 1 / math.log(2), 1.0)

    def log10(self, x: str) -> str:
        return self._log_base(x, 1 / math.log(10), math.log10(2))

    # ---- sin, cos
    def _sine(self, x: str, function: str, turn: int) -> str:
        """Reduced by quarters of a turn in f64."""
        width = self.width
        wide = self.cast("fpext", x, "float", "double", width)
        scaled = self.op("fmul", "double", width, wide, self.const(float_constant(2 / math.pi), "double", width))
        number = self.intrinsic("rint", "double", width, scaled)
        half_pi, tail = 1.5707963267948966, 6.123233995736766e-17
        negative = self.op("fneg", "double", width, number)
        rest = self.intrinsic(
            "fma", "double", width, negative, self.const(float_constant(half_pi), "double", width), wide
        )
        rest = self.intrinsic("fma", "double", width, negative, self.const(float_constant(tail), "double", width), rest)
        r = self.cast("fptrunc", rest, "double", "float", width)
        quarter = self.cast_sat("fptosi", number, "double", "i32", width)
        quarter = self.do("add", quarter, self.i(turn))
        z = self.do("fmul", r, r)
        signs = [(-1) ** n for n in range(7)]
        sine = self.polynomial(z, [signs[n] / math.factorial(2 * n + 1) for n in range(1, 6)])
        sine = self.fma(self.do("fmul", z, r), sine, r)
        cosine = self.polynomial(z, [signs[n] / math.factorial(2 * n) for n in range(2, 7)])
        cosine = self.fma(self.do("fmul", z, z), cosine, self.fma(z, self.f(-0.5), self.f(1.0)))
        odd = self.do("icmp ne", self.do("and", quarter, self.i(1)), self.i(0))
        found = self.pick(odd, cosine, sine)
        sign = self.do("shl", self.do("and", quarter, self.i(2)), self.i(30))
        found = self.number(self.do("xor", self.bits(found), sign))
        return self._far(x, found, function)

    def _far(self, x: str, near: str, function: str) -> str:
        """Where an argument is too large for the reduction, each lane by the C library."""
        width, full = self.width, f"<{self.width} x float>"
        size = self.intrinsic("fabs", "float", width, x)
        far = self.do("fcmp ogt", size, self.f(2.0**30))
        some = self.b.call("i1", f"llvm.vector.reduce.or.v{width}i1", [(f"<{width} x i1>", far)])
        held = self.b.variable(full)
        self.b.put(f"store {full} {near}, ptr {held}")
        self.b.branch(some, "far", "near")
        self.b.mark("far")
        found = near
        for lane in range(width):
            single = self.b.emit(f"extractelement {full} {x}, i64 {lane}")
            value = self.b.call("float", f"{function}f", [("float", single)], " nounwind memory(none)")
            found = self.b.emit(f"insertelement {full} {found}, float {value}, i64 {lane}")
        self.b.put(f"store {full} {self.pick(far, found, near)}, ptr {held}")
        self.b.jump("near")
        self.b.mark("near")
        return self.b.emit(f"load {full}, ptr {held}")

    def sin(self, x: str) -> str:
        found = self._sine(x, "sin", 0)
        # A zero keeps its sign.
        return self.pick(self.do("fcmp oeq", x, self.f(0.0)), x, found)

    def cos(self, x: str) -> str:
        return self._sine(x, "cos", 1)

    # ---- erf
    def erf(self, x: str) -> str:
        size = self.intrinsic("fabs", "float", self.width, x)
        size = self.pick(self.do("fcmp ogt", size, self.f(4.0)), self.f(4.0), size)
        square = self.do("fmul", size, size)
        square = self.pick(self.do("fcmp ogt", square, self.f(1.0)), self.f(1.0), square)
        small = self.fma(x, self.polynomial(square, (_ERF_SMALL[0] - 1.0,) + _ERF_SMALL[1:]), x)
        large = self.do("fsub", self.f(1.0), self.exp(self.polynomial(size, _LOG_ERFC)))
        large = self.intrinsic("copysign", "float", self.width, large, x)
        return self.pick(self.do("fcmp ogt", size, self.f(1.0)), large, small)


def _truncated(number: float) -> float:
    """The number with 12 bits: its product with another of 12 is exact."""
    fraction, exponent = math.frexp(number)
    return math.ldexp(math.floor(fraction * 4096) / 4096, exponent)


_FUNCTIONS: Dict[str, str] = {
    name: name for name in ("exp", "exp2", "expm1", "tanh", "log", "log2", "log10", "sin", "cos", "erf")
}
