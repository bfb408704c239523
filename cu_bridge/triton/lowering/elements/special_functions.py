"""Functions of libdevice that the C library does not have: inverse and scaled error functions, Bessel's I.

All are computed in f64, for f32 as well. Series and the iteration are those of the NIST Digital Library of Mathematical
Functions, sections 7.17, 7.12 and 10.25 to 10.40; the iteration begins with S. Winitzki's approximation of erf (2008).
"""

import math
from typing import Callable, Dict, Sequence

from ..types import F64
from .conversions import Conversions, float_constant

_INFINITY, _NAN = "0x7FF0000000000000", "0x7FF8000000000000"
_WINITZKI = 0.147
# The first numbers of erfinv's series.
_SMALL = (0.8862269254527579, 0.2320136665346544, 0.1275561753055979, 0.08655212924154753)
_STEPS = 3
# Bessel's power series is exact enough below this argument, the asymptotic one above it.
_FAR, _POWER_TERMS, _FAR_TERMS = 20.0, 48, 36
# Above it erfc is about to vanish, and five numbers of erfcx's asymptotic series are enough.
_SCALED_FAR = 25.0


class SpecialFunctions:
    """Writes the functions on f64, on scalars (width 1) and on vectors."""

    def __init__(self, writer: Conversions, width: int):
        self.w, self.width = writer, width

    # ---- words
    def number(self, value: float) -> str:
        return self.w.const(float_constant(value), "double", self.width)

    def op(self, name: str, *values: str) -> str:
        return self.w.op(name, "double", self.width, *values)

    def intrinsic(self, name: str, *values: str) -> str:
        return self.w.intrinsic(name, "double", self.width, *values)

    def library(self, name: str, value: str) -> str:
        return self.w.lanes(name, [value], F64, self.width)  # type: ignore[attr-defined]

    def pick(self, condition: str, yes: str, no: str) -> str:
        return self.w.choose(condition, yes, no, "double", self.width)

    def constant(self, bits: str) -> str:
        return self.w.const(bits, "double", self.width)

    def chain(self, x: str, ratios: Sequence[float]) -> str:
        """1 + r1 x (1 + r2 x (1 + ...)): a series whose terms have these ratios."""
        one = self.number(1.0)
        total = one
        for ratio in reversed(ratios):
            total = self.intrinsic("fma", self.op("fmul", x, self.number(ratio)), total, one)
        return total

    # ---- inverse error functions
    def erfinv(self, x: str) -> str:
        size = self.intrinsic("fabs", x)
        return self.intrinsic("copysign", self._inverse(size, self.op("fsub", self.number(1.0), size)), x)

    def erfcinv(self, x: str) -> str:
        other = self.op("fsub", self.number(2.0), x)
        above = self.op("fcmp ogt", x, self.number(1.0))
        tail = self.pick(above, other, x)
        found = self._inverse(self.op("fsub", self.number(1.0), tail), tail)
        return self.pick(above, self.op("fneg", found), found)

    def normcdfinv(self, x: str) -> str:
        return self.op("fmul", self.number(-math.sqrt(2.0)), self.erfcinv(self.op("fadd", x, x)))

    def _inverse(self, size: str, tail: str) -> str:
        """The y with erf(y) = size and erfc(y) = tail; the exact one of the two is used."""
        one = self.number(1.0)
        near = self.op("fcmp ogt", tail, self.number(0.5))
        product = self.op("fmul", tail, self.op("fsub", self.number(2.0), tail))
        log = self.library("log", product)
        middle = self.intrinsic("fma", log, self.number(0.5), self.number(2 / (math.pi * _WINITZKI)))
        inner = self.op("fsub", self.op("fmul", middle, middle), self.op("fmul", log, self.number(1 / _WINITZKI)))
        far_start = self.intrinsic("sqrt", self.op("fsub", self.intrinsic("sqrt", inner), middle))
        square, near_start = self.op("fmul", size, size), self.number(_SMALL[-1])
        for coefficient in reversed(_SMALL[:-1]):
            near_start = self.intrinsic("fma", near_start, square, self.number(coefficient))
        y = self.pick(near, self.op("fmul", near_start, size), far_start)
        for _ in range(_STEPS):
            # Halley's step.
            near_rest = self.op("fsub", self.library("erf", y), size)
            rest = self.pick(near, near_rest, self.op("fsub", tail, self.library("erfc", y)))
            power = self.library("exp", self.op("fmul", y, y))
            step = self.op("fmul", self.op("fmul", rest, power), self.number(math.sqrt(math.pi) / 2))
            y = self.op("fsub", y, self.op("fdiv", step, self.intrinsic("fma", y, step, one)))
        y = self.pick(self.op("fcmp oeq", tail, self.number(0.0)), self.constant(_INFINITY), y)
        return self.pick(self.op("fcmp oge", tail, self.number(0.0)), y, self.constant(_NAN))

    # ---- exp(x^2) erfc(x)
    def erfcx(self, x: str) -> str:
        square = self.op("fmul", x, x)
        rest = self.intrinsic("fma", x, x, self.op("fneg", square))
        near = self.op("fmul", self.library("exp", square), self.library("erfc", x))
        exact = self.intrinsic("fma", near, rest, near)
        # Far below 0 the power overflows, and so does the result.
        near = self.pick(self.op("fcmp oeq", near, self.constant(_INFINITY)), near, exact)
        inverse = self.op("fdiv", self.number(1.0), x)
        series = self.chain(self.op("fmul", inverse, inverse), [0.5 - n for n in range(1, 8)])
        far = self.op("fmul", self.op("fmul", inverse, self.number(1 / math.sqrt(math.pi))), series)
        return self.pick(self.op("fcmp ogt", x, self.number(_SCALED_FAR)), far, near)

    # ---- Bessel's functions I
    def bessel(self, x: str, order: int) -> str:
        """I0 or I1."""
        size = self.intrinsic("fabs", x)
        quarter = self.op("fmul", self.op("fmul", x, x), self.number(0.25))
        near = self.chain(quarter, [1 / (n * (n + order)) for n in range(1, _POWER_TERMS)])
        if order:
            near = self.op("fmul", near, self.op("fmul", size, self.number(0.5)))
        inverse = self.op("fdiv", self.number(1.0), size)
        series = self.chain(inverse, [((2 * n - 1) ** 2 - 4 * order) / (8 * n) for n in range(1, _FAR_TERMS)])
        root = self.intrinsic("sqrt", self.op("fmul", size, self.number(2 * math.pi)))
        # The power overflows before the function does.
        half = self.library("exp", self.op("fmul", size, self.number(0.5)))
        far = self.op("fmul", half, self.op("fmul", half, self.op("fdiv", series, root)))
        far = self.pick(self.op("fcmp oeq", size, self.constant(_INFINITY)), size, far)
        found = self.pick(self.op("fcmp ogt", size, self.number(_FAR)), far, near)
        return self.intrinsic("copysign", found, x) if order else found


FUNCTIONS: Dict[str, Callable[[SpecialFunctions, str], str]] = {
    "erfinv": SpecialFunctions.erfinv,
    "erfcinv": SpecialFunctions.erfcinv,
    "normcdfinv": SpecialFunctions.normcdfinv,
    "erfcx": SpecialFunctions.erfcx,
    "cyl_bessel_i0": lambda c, x: c.bessel(x, 0),
    "cyl_bessel_i1": lambda c, x: c.bessel(x, 1),
}
