"""Dtypes, shapes, layouts and values, as Python source."""

from __future__ import annotations

import math
from random import Random
from typing import Any, List, Sequence, Tuple

import torch

Shape = Tuple[int, ...]

FLOATING = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128", "complex32")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
# A dtype's share of the leaves.
DTYPES = (
    *("float32",) * 6, "float64", "float64", *("float16",) * 4, *("bfloat16",) * 3, "complex64", "complex64",
    "complex128", "complex32", *("int64",) * 3, "int32", "int16", "int8", "uint8", "bool", "bool",
)  # fmt: skip
RANGES = {
    "int64": (-(2**63), 2**63 - 1), "int32": (-(2**31), 2**31 - 1), "int16": (-(2**15), 2**15 - 1),
    "int8": (-128, 127), "uint8": (0, 255),
}  # fmt: skip
# Around ties of rounding, limits of half precision, subnormals, and where float32 stops to know integers.
SPECIAL = (
    "nan", "inf", "-inf", "-0.0", "0.0", "0.5", "-0.5", "1.5", "2.5", "65504.0", "65520.0", "70000.0", "6e-08", "6e-05",
    "1e-40", "1e-45", "1.00048828125", "2049.0", "16777217.0", "3.4e+38", "-3.4e+38", "1e+300", "0.3333333333333333",
    "-1.0", "1.0", "1.0001", "88.8", "-104.0", "3.141592653589793", "255.5", "-129.0", "2147483648.0", "1e+19",
)  # fmt: skip
SCALARS = (
    "2", "-1", "0", "3", "1", "0.5", "-1.5", "2.0", "0.1", "1e-5", "True", "False", "1j", "(1 + 2j)", "nan", "inf",
    "-0.0", "70000.0", "1e300", "255", "-129", "2**31", "2**40",
)  # fmt: skip


def of(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).split(".")[1]


def number(rng: Random, dtype: str, special: bool) -> str:
    """One value of a dtype."""
    if dtype == "bool":
        return rng.choice(("True", "False"))
    if dtype in INTEGERS:
        low, high = RANGES[dtype]
        if special and rng.random() < 0.3:
            return str(rng.choice((low, high, low + 1, high - 1, 0, 1)))
        return str(rng.randint(max(low, -4), 6))
    if dtype in COMPLEX:
        return f"complex({number(rng, 'float32', special)}, {number(rng, 'float32', special)})"
    if special and rng.random() < 0.4:
        return rng.choice(SPECIAL)
    return repr(rng.choice((rng.randint(-32, 32) / 8, round(rng.gauss(0, 1), 3), float(rng.randint(-3, 3)))))


def values(rng: Random, dtype: str, count: int, tame: bool = False) -> str:
    """A flat list; with special values sometimes, unless it is to be tame."""
    special = not tame and rng.random() < 0.3
    return "[" + ", ".join(number(rng, dtype, special) for _ in range(count)) + "]"


def of_value(value: Any) -> str:
    """A number as source; NaN and infinity by name."""
    if isinstance(value, complex):
        return f"complex({of_value(value.real)}, {of_value(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return repr(value)


def tensor(flat: str, count: int, dtype: str, shape: Shape) -> str:
    """A tensor of a flat list. One dimension at first: no rule of layouts concerns it."""
    made = f"torch.tensor({flat}, dtype=torch.{dtype}, device=device)"
    return made if shape == (count,) else f"{made}.view({list(shape)!r})"


def shape_near(rng: Random, base: Sequence[int]) -> Shape:
    """The base shape, one that broadcasts with it, or another."""
    kind = rng.random()
    shape = list(base)
    if kind < 0.5:
        return tuple(shape)
    if kind < 0.65:
        return tuple(1 if rng.random() < 0.4 else n for n in shape)
    if kind < 0.78:
        return tuple(shape[rng.randint(0, len(shape)) :])
    if kind < 0.85:
        rng.shuffle(shape)
        return tuple(shape)
    return random_shape(rng)


def random_shape(rng: Random) -> Shape:
    rank = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5))
    sizes = (1, 2, 3, 4, 5) if rank < 3 else (1, 2, 3)
    return tuple(0 if rng.random() < 0.02 else rng.choice(sizes) for _ in range(rank))


def numel(shape: Sequence[int]) -> int:
    return math.prod(shape) if shape else 1


def contiguous_strides(shape: Sequence[int]) -> List[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]
