"""Writes math_reference.txt: function, argument, value rounded to double, from mpmath with 60 digits.

python math_reference.py > math_reference.txt       (needs mpmath)
"""

import random
import struct
from typing import Callable, Dict, List

import mpmath as mp

mp.mp.dps = 60


def single(value: float) -> float:
    """Return the value rounded to float: an argument that both forms of a function take exactly."""
    return struct.unpack("f", struct.pack("f", value))[0]


def erfcinv(y: mp.mpf) -> mp.mpf:
    """Return x with erfc(x) = y, by bisection."""
    low, high = mp.mpf(-8), mp.mpf(30)
    for _ in range(220):
        middle = (low + high) / 2
        if mp.erfc(middle) > y:
            low = middle
        else:
            high = middle
    return low


FUNCTIONS: Dict[str, Callable[[mp.mpf], mp.mpf]] = {
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "rcbrt": lambda x: 1 / mp.cbrt(x) if x > 0 else -1 / mp.cbrt(-x),
    "erfinv": lambda x: erfcinv(1 - x),
    "erfcinv": erfcinv,
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "normcdf": mp.ncdf,
    "normcdfinv": lambda p: -mp.sqrt(2) * erfcinv(2 * p),
    "cyl_bessel_i0": lambda x: mp.besseli(0, x),
    "cyl_bessel_i1": lambda x: mp.besseli(1, x),
    "sinpi": lambda x: mp.sin(mp.pi * x),
    "cospi": lambda x: mp.cos(mp.pi * x),
    "exp10": lambda x: mp.mpf(10) ** x,
}

ARGUMENTS: Dict[str, List[float]] = {
    "rsqrt": [1e-30, 0.3, 2, 3, 7e20],
    "rcbrt": [-1e-30, -0.3, 2, 3, 7e20],
    "erfinv": [-0.999, -0.5, -1e-12, 1e-5, 0.1, 0.3, 0.49, 0.51, 0.9, 0.99999],
    "erfcinv": [1e-37, 1e-20, 1e-5, 0.01, 0.3, 0.7, 1.3, 1.9, 1.99999],
    "erfcx": [-9, -2, -0.1, 0.3, 2, 5, 11.9, 12.1, 50, 1e10],
    "normcdf": [-12, -8, -3, -0.2, 0.4, 2, 6],
    "normcdfinv": [1e-37, 1e-10, 0.001, 0.2, 0.6, 0.99, 0.9999],
    "cyl_bessel_i0": [-3, 0.1, 1, 5, 15, 19.9, 20.1, 40, 80],
    "cyl_bessel_i1": [-3, 0.1, 1, 5, 15, 19.9, 20.1, 40, 80],
    "sinpi": [-1.3, 0.2, 0.499, 0.999, 1.25, 1000.3, 123456.7],
    "cospi": [-1.3, 0.2, 0.499, 0.999, 1.25, 1000.3, 123456.7],
    "exp10": [-37, -3.3, 0.1, 2, 30.5],
}

if __name__ == "__main__":
    source = random.Random(5)
    for name, function in FUNCTIONS.items():
        given = ARGUMENTS[name]
        between = [source.uniform(a, b) for a, b in zip(given, given[1:]) for _ in range(2)]
        for argument in given + between:
            argument = single(argument)
            print(name, argument.hex(), float(function(mp.mpf(argument))).hex())
