"""Operations on whole tiles: reductions, scans, rearrangements, products."""

import numpy as np
import torch
import triton
import triton.language as tl
from registry import FLOATS, SORTED_BYTES, Outcome, array, case, data, pairs, torch_type


@triton.jit
def reduce_kernel(x, out, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    columns = tl.arange(0, N)[None, :]
    a = tl.load(x + rows * N + columns)
    if OP == "sum":
        r = tl.sum(a, AXIS)
    elif OP == "max":
        r = tl.max(a, AXIS)
    elif OP == "min":
        r = tl.min(a, AXIS)
    elif OP == "argmax":
        r = tl.argmax(a, AXIS)
    elif OP == "argmin":
        r = tl.argmin(a, AXIS)
    elif OP == "xor":
        r = tl.xor_sum(a, AXIS)
    tl.store(out + tl.arange(0, M if AXIS == 1 else N), r)


def run_reduce(device, op, x, axis, result):
    m, n = x.shape
    out = torch.zeros(m if axis == 1 else n, dtype=result, device=device)
    reduce_kernel[(1,)](x.to(device), out, OP=op, M=m, N=n, AXIS=axis)
    return array(out)


@case(
    *[
        (op, name, axis)
        for op in ("sum", "max", "min")
        for name in ("int8", "int32", "int64", "uint32") + FLOATS
        for axis in (0, 1)
    ]
)
def reduction(device, which):
    op, name, axis = which
    x = data(name, 32 * 64, 11).reshape(32, 64)
    a = array(x)
    if name.startswith(("int", "uint")):
        result = (
            torch_type(name) if op != "sum" or "64" in name else torch_type("uint32" if name[0] == "u" else "int32")
        )
        with np.errstate(over="ignore"):
            # Before 3.3 sums of small integers are not widened.
            width = name if name == "int8" and not hasattr(tl, "gather") else str(result).split(".")[1]
            expected = (
                getattr(a, op)(axis) if op != "sum" else a.sum(axis, dtype=width).astype(str(result).split(".")[1])
            )
        return Outcome(run_reduce(device, op, x, axis, result), expected)
    result = x.dtype
    # Partial sums are some tens, where numbers of float16 are 0.03 apart; which there are depends on the vector width.
    tolerance = {"float16": 4e-2, "bfloat16": 6e-2}.get(name, 1e-5) if op == "sum" else 0.0
    wide = x.double().sum(axis) if op == "sum" else getattr(x.double(), "a" + op)(axis)
    return Outcome(run_reduce(device, op, x, axis, result), array(wide.to(result)), tolerance)


@case(*[(op, name, axis) for op in ("argmax", "argmin") for name in ("int32", "float32", "float16") for axis in (0, 1)])
def place_of_extreme(device, which):
    """With ties the first one counts."""
    op, name, axis = which
    x = (data("int32", 32 * 64, 12) % 7).to(torch_type(name)).reshape(32, 64)
    expected = getattr(np, op)(array(x), axis).astype(np.int32)
    return Outcome(run_reduce(device, op, x, axis, torch.int32), expected)


@case("int32", "uint8", "int64")
def xor_reduction(device, name):
    x = data(name, 16 * 32, 13).reshape(16, 32)
    if name == "uint8":
        return Outcome(run_reduce(device, "xor", x, 1, torch.int32))
    return Outcome(run_reduce(device, "xor", x, 1, torch_type(name)), np.bitwise_xor.reduce(array(x), 1))


@triton.jit
def combine_welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    ratio = count_b / count
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * count_a * ratio, count


@triton.jit
def welford_kernel(x, out, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    mean, m2, count = tl.reduce((a, tl.zeros_like(a), tl.full([N], 1.0, tl.float32)), 0, combine_welford)
    tl.store(out, mean)
    tl.store(out + 1, m2)
    tl.store(out + 2, count)


@case(8, 64, 1024)
def reduction_of_tuples(device, n):
    x = data("float32", n, 14)
    out = torch.zeros(3, device=device)
    welford_kernel[(1,)](x.to(device), out, N=n)
    a = array(x).astype(np.float64)
    return Outcome(array(out), np.array([a.mean(), a.var() * n, n], dtype=np.float32), 1e-5)


@triton.jit
def keep_later(a, b):
    return tl.where(b != 0, b, a)


@triton.jit
def scan_kernel(x, out, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    if OP == "sum":
        r = tl.cumsum(a, AXIS, reverse=REVERSE)
    elif OP == "prod":
        r = tl.cumprod(a, AXIS, reverse=REVERSE)
    else:
        r = tl.associative_scan(a, AXIS, keep_later, reverse=REVERSE)
    tl.store(out + at, r)


SCANS = (("sum", "int32"), ("sum", "float32"), ("prod", "float32"), ("own", "int32"))


@case(*[(op, name, axis, reverse) for op, name in SCANS for axis in (0, 1) for reverse in (False, True)])
def scan(device, which):
    op, name, axis, reverse = which
    x = data("int32", 16 * 32, 15).reshape(16, 32) % 3
    x = (x.float() * 0.25 + 1 if op == "prod" else x).to(torch_type(name))
    out = torch.zeros_like(x, device=device)
    scan_kernel[(1,)](x.to(device), out, OP=op, M=16, N=32, AXIS=axis, REVERSE=reverse)
    a = np.flip(array(x), axis) if reverse else array(x)
    if op == "own":
        expected = a.copy()
        lines = np.moveaxis(expected, axis, 0)
        for number in range(1, len(lines)):
            lines[number] = np.where(lines[number] != 0, lines[number], lines[number - 1])
    else:
        expected = (np.cumsum if op == "sum" else np.cumprod)(a, axis, dtype=a.dtype)
    expected = np.flip(expected, axis) if reverse else expected
    return Outcome(array(out), expected, 1e-5 if name == "float32" else 0.0)


@triton.jit
def shape_kernel(x, y, out, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    b = tl.load(y + at)
    flat = tl.arange(0, M * N)
    if OP == "trans":
        tl.store(out + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(a))
    elif OP == "reshape":
        tl.store(out + flat, tl.reshape(a, (M * N,)))
    elif OP == "reshape3":
        c = tl.permute(tl.reshape(a, (M, 4, N // 4)), (2, 0, 1))
        tl.store(out + flat, tl.reshape(c, (M * N,)))
    elif OP == "ravel":
        tl.store(out + flat, tl.ravel(tl.trans(a)))
    elif OP == "join":
        c = tl.reshape(tl.join(a, b), (M * N * 2,))
        tl.store(out + tl.arange(0, M * N * 2), c)
    elif OP == "interleave":
        c = tl.reshape(tl.interleave(a, b), (M * N * 2,))
        tl.store(out + tl.arange(0, M * N * 2), c)
    elif OP == "split":
        c, d = tl.split(tl.reshape(a, (M, N // 2, 2)))
        tl.store(out + flat, tl.reshape(tl.join(d, c), (M * N,)))
    elif OP == "broadcast":
        c = tl.sum(a, 1)[:, None] + tl.sum(b, 0)[None, :]
        tl.store(out + at, c)
    elif OP == "flip":
        tl.store(out + at, tl.flip(a, 1))
    elif OP == "sort":
        tl.store(out + at, tl.sort(a, 1))
    elif OP == "cat":
        c = tl.cat(tl.reshape(a, (M * N,)), tl.reshape(b, (M * N,)), can_reorder=True)
        tl.store(out + tl.arange(0, M * N * 2), c)


@case(*pairs(("trans", "reshape", "reshape3", "ravel", "join", "interleave", "split", "broadcast", "flip"),
             ("int32", "float16", "int8")),
      *pairs(("sort",), ("int32", "float16", "int8") if SORTED_BYTES else ("int32", "float16")))  # fmt: skip
def rearrangement(device, which):
    op, name = which
    m, n = 8, 32
    x, y = data(name, m * n, 16).reshape(m, n), data(name, m * n, 17).reshape(m, n)
    if op == "broadcast":
        x, y = (
            (x.float() / 8 if name == "float16" else x % 5).to(x.dtype),
            (y.float() / 8 if name == "float16" else y % 5).to(x.dtype),
        )
    a, b = array(x), array(y)
    expected = {"trans": lambda: a.T, "reshape": lambda: a,
                "reshape3": lambda: a.reshape(m, 4, n // 4).transpose(2, 0, 1),
                "ravel": lambda: a.T, "join": lambda: np.stack([a, b], -1), "interleave": lambda: np.stack([a, b], -1),
                "split": lambda: a.reshape(m, n // 2, 2)[..., ::-1], "flip": lambda: a[:, ::-1],
                "sort": lambda: np.sort(a, 1),
                "broadcast": lambda: (np.float64(a).sum(1)[:, None] + np.float64(b).sum(0)[None]).astype(a.dtype),
                }[op]().reshape(-1)  # fmt: skip
    out = torch.zeros(len(expected), dtype=x.dtype, device=device)
    shape_kernel[(1,)](x.to(device), y.to(device), out, OP=op, M=m, N=n)
    return Outcome(array(out), expected, 2e-2 if op == "broadcast" and name == "float16" else 0.0)


@case("int32", "float32")
def concatenation(device, name):
    """tl.cat may reorder, so the sorted results are compared."""
    x, y = data(name, 256, 18).reshape(8, 32), data(name, 256, 19).reshape(8, 32)
    out = torch.zeros(512, dtype=x.dtype, device=device)
    shape_kernel[(1,)](x.to(device), y.to(device), out, OP="cat", M=8, N=32)
    return Outcome(np.sort(array(out)), np.sort(np.concatenate([array(x).ravel(), array(y).ravel()])))


# tl.gather came with 3.3.
GATHERED = pairs(("float32", "int8", "int64"), (0, 1)) if hasattr(tl, "gather") else []


@triton.jit
def gather_kernel(x, index, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), AXIS))


def gather(device, which):
    name, axis = which
    x = data(name, 16 * 32, 20).reshape(16, 32)
    index = data("int32", 16 * 32, 21).reshape(16, 32) % (16, 32)[axis]
    out = torch.zeros_like(x, device=device)
    gather_kernel[(1,)](x.to(device), index.to(device), out, M=16, N=32, AXIS=axis)
    return Outcome(array(out), np.take_along_axis(array(x), array(index).astype(np.int64), axis))


if GATHERED:
    case(*GATHERED)(gather)


@triton.jit
def histogram_kernel(x, out, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


@case((256, 16), (64, 128))
def histogram(device, which):
    n, bins = which
    x = data("int32", n, 22) % bins
    out = torch.zeros(bins, dtype=torch.int32, device=device)
    histogram_kernel[(1,)](x.to(device), out, N=n, BINS=bins)
    return Outcome(array(out), np.bincount(array(x), minlength=bins).astype(np.int32))


@triton.jit
def dot_kernel(x, y, start, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    b = tl.load(y + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    c = tl.load(start + at)
    tl.store(out + at, tl.dot(a, b, c, input_precision=PRECISION, out_dtype=c.dtype))


@case(
    *[
        (name, shape)
        for name in ("float16", "bfloat16", "float32", "int8")
        for shape in ((16, 16, 32), (32, 64, 32), (64, 16, 128))
    ]
)
def product(device, which):
    name, (m, n, k) = which
    x, y = data(name, m * k, 23).reshape(m, k), data(name, k * n, 24).reshape(k, n)
    result = "int32" if name == "int8" else "float32"
    start = data(result, m * n, 25).reshape(m, n)
    if name == "int8":
        start = start % 1000
    out = torch.zeros_like(start, device=device)
    dot_kernel[(1,)](x.to(device), y.to(device), start.to(device), out, M=m, N=n, K=k, PRECISION="ieee")
    expected = array(start).astype(np.float64) + array(x).astype(np.float64) @ array(y).astype(np.float64)
    return Outcome(array(out), expected.astype(result), 1e-4 if result == "float32" else 0.0)


@case(*[("bfloat16", *shape) for shape in ((16, 16, 16), (64, 64, 32), (16, 128, 64), (128, 32, 16))])
def product_of_integers(device, which):
    """Numbers that bf16 and all sums are exact in: each element of each operand has to meet its partner."""
    _, m, n, k = which
    x, y = (data("float32", count, seed).mul(7).round().clamp(-100, 100) for count, seed in ((m * k, 28), (k * n, 29)))
    x, y = x.reshape(m, k).bfloat16(), y.reshape(k, n).bfloat16()
    start = (data("int32", m * n, 30) % 1000).reshape(m, n).float()
    out = torch.zeros_like(start, device=device)
    dot_kernel[(1,)](x.to(device), y.to(device), start.to(device), out, M=m, N=n, K=k, PRECISION="ieee")
    return Outcome(array(out), array(start.double() + x.double() @ y.double()).astype(np.float32))


@case("bfloat16")
def product_of_special_values(device, name):
    """NaN and infinities reach the rows and columns that they stand in."""
    x, y = (data(name, 16 * 16, seed, special=seed == 31).reshape(16, 16) for seed in (31, 32))
    y[3, 5], y[2, 7] = float("inf"), float("nan")
    out = torch.zeros(16, 16, device=device)
    dot_kernel[(1,)](x.to(device), y.to(device), out.clone(), out, M=16, N=16, K=16, PRECISION="ieee")
    return Outcome(array(out), array((x.double() @ y.double()).float()), 1e-4)


@triton.jit
def batched_kernel(x, y, out, B: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, B)[:, None, None] * M * M + tl.arange(0, M)[None, :, None] * M + tl.arange(0, M)[None, None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at), input_precision="ieee"))


@case("float32", "float16", "bfloat16")
def batched_product(device, name):
    x, y = data(name, 4 * 16 * 16, 26).reshape(4, 16, 16), data(name, 4 * 16 * 16, 27).reshape(4, 16, 16)
    out = torch.zeros(4, 16, 16, device=device)
    batched_kernel[(1,)](x.to(device), y.to(device), out, B=4, M=16)
    return Outcome(array(out), array((x.double() @ y.double()).float()), 1e-4)


@triton.jit
def philox_kernel(out, seed, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, at)
    tl.store(out + at, a)
    tl.store(out + N + at, b)
    tl.store(out + 2 * N + at, c)
    tl.store(out + 3 * N + at, d)


@case(5, 2**40 + 3)
def philox(device, seed):
    """The interpreter is the oracle: the numbers are upstream's."""
    out = torch.zeros(4 * 128, dtype=torch.int32, device=device)
    philox_kernel[(1,)](out, seed, N=128)
    return Outcome(array(out))
