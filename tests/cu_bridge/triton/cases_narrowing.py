"""Wide integers whose bounds the text shows, at and beyond the ends of what fewer bits hold."""

import numpy as np
import torch
import triton
import triton.language as tl
from registry import Outcome, array, case, pairs, torch_type

ALL = 256


@triton.jit
def narrow_kernel(x, y, out, OP: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at).to(WIDE)
    b = tl.load(y + at).to(WIDE)
    if OP == "last_of_16":
        r = a * 256 + 127
    elif OP == "beyond_16":
        r = a * 257 + 255
    elif OP == "last_of_32":
        r = a * 16777216 + 16777215
    elif OP == "beyond_32":
        r = a * 33554432 - b * 33554432
    elif OP == "squares":
        r = a * a * 2 - b * b
    elif OP == "quotient":
        r = a // 3 * 3 - a + b // 7
    elif OP == "remainder":
        r = a % 5 + (b - 1) % 7 * 1000
    elif OP == "floor":
        r = tl.where((a % 3 != 0) & (a < 0), a // 3 - 1, a // 3) * 112 + b
    elif OP == "bits":
        r = ((a & 60) | (b & 3)) ^ (a + 1)
    elif OP == "extremes":
        r = tl.maximum(a, b) * 255 - tl.minimum(a, b + 1)
    elif OP == "comparison":
        r = tl.where(a * 255 > b * 255 + 64, a * 3 - 1, 70000 - b)
    elif OP == "rows":
        row = ((at // 16) % 11).to(WIDE)
        r = tl.where((row * 2 - 1 >= a) & (row * 2 - 1 < 12), row * 1000 + b, a)
    elif OP == "both":
        r = (a * 127) * (b * 127) + (a - b)
    tl.store(out + at, r)


OPERATIONS = ("last_of_16", "beyond_16", "last_of_32", "beyond_32", "squares", "quotient", "remainder", "floor", "bits",
              "extremes", "comparison", "rows", "both")  # fmt: skip


def truncated(a: np.ndarray, by: int) -> np.ndarray:
    """The quotient as C rounds it."""
    return np.where(a < 0, -(-a // by), a // by)


def expected(op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What the kernel computes, on 64-bit integers."""
    third = truncated(a, 3)
    rest = lambda v, by: v - truncated(v, by) * by  # noqa: E731
    row = np.arange(ALL) // 16 % 11
    return {
        "last_of_16": lambda: a * 256 + 127,
        "beyond_16": lambda: a * 257 + 255,
        "last_of_32": lambda: a * 16777216 + 16777215,
        "beyond_32": lambda: (a - b) * 33554432,
        "squares": lambda: a * a * 2 - b * b,
        "quotient": lambda: third * 3 - a + truncated(b, 7),
        "remainder": lambda: rest(a, 5) + rest(b - 1, 7) * 1000,
        "floor": lambda: a // 3 * 112 + b,
        "bits": lambda: ((a & 60) | (b & 3)) ^ (a + 1),
        "extremes": lambda: np.maximum(a, b) * 255 - np.minimum(a, b + 1),
        "comparison": lambda: np.where(a * 255 > b * 255 + 64, a * 3 - 1, 70000 - b),
        "rows": lambda: np.where((row * 2 - 1 >= a) & (row * 2 - 1 < 12), row * 1000 + b, a),
        "both": lambda: a * 127 * (b * 127) + (a - b),
    }[op]()


@case(*((op, name, wide) for op, name in pairs(OPERATIONS, ("int8", "uint8", "int16", "uint16"))
        for wide in ("int32", "int64")))  # fmt: skip
def narrowed(device, which):
    op, name, wide = which
    limits = np.iinfo(name)
    random = np.random.RandomState(9)
    a = random.permutation(np.linspace(limits.min, limits.max, ALL).round().astype(name))
    b = random.permutation(a)
    a[:4] = b[1:5] = limits.min, limits.max, 0, limits.max
    x, y = (torch.from_numpy(v.view(name.replace("u", "")) if name == "uint16" else v).view(torch_type(name))
            for v in (a, b))  # fmt: skip
    out = torch.zeros(ALL, dtype=torch_type(wide), device=device)
    narrow_kernel[(1,)](x.to(device), y.to(device), out, OP=op, WIDE=getattr(tl, wide), BLOCK=ALL)
    with np.errstate(over="ignore"):
        return Outcome(array(out), expected(op, a.astype("int64"), b.astype("int64")).astype(wide))
