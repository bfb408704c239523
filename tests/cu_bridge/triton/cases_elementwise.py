"""Operations on single elements, in every dtype that they take."""

import numpy as np
import torch
import triton
import triton.language as tl
from registry import FLOATS, INTEGERS, SIGNED, TOLERANCE, Outcome, array, case, data, pairs, torch_type

COUNT, BLOCK = 203, 256


@triton.jit
def binary_kernel(x, y, out, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    b = tl.load(y + at, mask=inside)
    if OP == "add":
        r = a + b
    elif OP == "sub":
        r = a - b
    elif OP == "mul":
        r = a * b
    elif OP == "div":
        r = a / b
    elif OP == "floordiv":
        r = a // b
    elif OP == "mod":
        r = a % b
    elif OP == "and":
        r = a & b
    elif OP == "or":
        r = a | b
    elif OP == "xor":
        r = a ^ b
    elif OP == "max":
        r = tl.maximum(a, b)
    elif OP == "min":
        r = tl.minimum(a, b)
    elif OP == "maxnan":
        r = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "lt":
        r = a < b
    elif OP == "le":
        r = a <= b
    elif OP == "eq":
        r = a == b
    elif OP == "ne":
        r = a != b
    elif OP == "shl":
        r = a << (b & 7)
    elif OP == "shr":
        r = a >> (b & 7)
    elif OP == "where":
        r = tl.where(a > b, a, b)
    tl.store(out + at, r, mask=inside)


def run_binary(device, op, name, x, y, result=None):
    out = torch.zeros(COUNT, dtype=result or x.dtype, device=device)
    binary_kernel[(1,)](x.to(device), y.to(device), out, COUNT, OP=op, BLOCK=BLOCK)
    return array(out)


@case(*pairs(("add", "sub", "mul", "and", "or", "xor", "max", "min", "lt", "eq", "where"), INTEGERS))
def integer_binary(device, which):
    op, name = which
    x, y = data(name, COUNT, 1), data(name, COUNT, 2)
    result = torch.bool if op in ("lt", "eq") else None
    a, b = array(x), array(y)
    with np.errstate(over="ignore"):
        expected = {"add": a + b, "sub": a - b, "mul": a * b, "and": a & b, "or": a | b, "xor": a ^ b,
                    "max": np.maximum(a, b), "min": np.minimum(a, b), "lt": a < b, "eq": a == b,
                    "where": np.where(a > b, a, b)}[op]  # fmt: skip
    return Outcome(run_binary(device, op, name, x, y, result), expected)


@case(*pairs(("floordiv", "mod", "shl", "shr"), INTEGERS))
def integer_division(device, which):
    op, name = which
    x, y = data(name, COUNT, 3), data(name, COUNT, 4)
    a, b = array(x), array(y)
    b[b == 0] = 3
    y = torch.from_numpy(b.view(name.replace("u", "")) if name not in ("uint8",) else b).view(torch_type(name))
    with np.errstate(over="ignore"):
        if op in ("shl", "shr"):
            expected = a << (b & 7) if op == "shl" else a >> (b & 7)
        else:
            # Triton truncates as C does. The quotient's size is below 2^53 but for int64, so it is computed in Python.
            quotient = [int(p) // int(q) if (p < 0) == (q < 0) else -((-int(p)) // int(q)) for p, q in zip(a, b)]
            if op == "floordiv":
                expected = np.array([q & (2**64 - 1) for q in quotient], dtype=np.uint64).astype(name)
            else:
                rest = [int(p) - q * int(d) for p, q, d in zip(a, quotient, b)]
                expected = np.array([r & (2**64 - 1) for r in rest], dtype=np.uint64).astype(name)
    return Outcome(run_binary(device, op, name, x, y), expected)


@case(*pairs(("add", "sub", "mul", "div", "max", "min", "maxnan", "lt", "le", "ne", "where"), FLOATS))
def float_binary(device, which):
    op, name = which
    x, y = data(name, COUNT, 5, special=True), data(name, COUNT, 6).roll(3)
    a, b = x, y
    result = torch.bool if op in ("lt", "le", "ne") else None
    wide_a, wide_b = (a.float(), b.float()) if name in ("float16", "bfloat16") else (a, b)
    expected = {"add": lambda: wide_a + wide_b, "sub": lambda: wide_a - wide_b, "mul": lambda: wide_a * wide_b,
                "div": lambda: wide_a / wide_b, "max": lambda: torch.fmax(wide_a, wide_b),
                "min": lambda: torch.fmin(wide_a, wide_b), "maxnan": lambda: torch.maximum(wide_a, wide_b),
                "lt": lambda: a < b, "le": lambda: a <= b, "ne": lambda: a != b,
                "where": lambda: torch.where(a > b, a, b)}[op]()  # fmt: skip
    expected = array(expected.to(result or x.dtype))
    return Outcome(run_binary(device, op, name, x, y, result), expected, 1e-6 if op == "div" else 0.0)


@triton.jit
def unary_kernel(x, out, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=1)
    if OP == "neg":
        r = -a
    elif OP == "not":
        r = ~a
    elif OP == "abs":
        r = tl.abs(a)
    elif OP == "exp":
        r = tl.exp(a)
    elif OP == "exp2":
        r = tl.exp2(a)
    elif OP == "log":
        r = tl.log(a)
    elif OP == "log2":
        r = tl.log2(a)
    elif OP == "sin":
        r = tl.sin(a)
    elif OP == "cos":
        r = tl.cos(a)
    elif OP == "sqrt":
        r = tl.sqrt(a)
    elif OP == "rsqrt":
        r = tl.rsqrt(a)
    elif OP == "erf":
        r = tl.erf(a)
    elif OP == "floor":
        r = tl.floor(a)
    elif OP == "ceil":
        r = tl.ceil(a)
    elif OP == "sigmoid":
        r = tl.sigmoid(a)
    elif OP == "clamp":
        r = tl.clamp(a, -1.0, 1.0)
    elif OP == "fma":
        r = tl.fma(a, a, a)
    tl.store(out + at, r, mask=inside)


@case(*pairs(("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil", "sigmoid"),
             ("float32", "float64")))  # fmt: skip
def function(device, which):
    op, name = which
    x = data(name, COUNT, 7, special=True)
    out = torch.zeros_like(x, device=device)
    unary_kernel[(1,)](x.to(device), out, COUNT, OP=op, BLOCK=BLOCK)
    expected = array(getattr(torch, op)(x.double()).to(x.dtype))
    return Outcome(array(out), expected, TOLERANCE[name])


@case(
    *pairs(("neg", "abs"), FLOATS + SIGNED),
    *pairs(("not",), INTEGERS),
    *pairs(("clamp", "fma"), ("float32", "float64")),
)
def simple_unary(device, which):
    op, name = which
    x = data(name, COUNT, 8, special=True)
    out = torch.zeros_like(x, device=device)
    unary_kernel[(1,)](x.to(device), out, COUNT, OP=op, BLOCK=BLOCK)
    a = array(x)
    with np.errstate(all="ignore"):
        if op == "clamp":
            return Outcome(array(out), np.where(np.isnan(a), -1, np.clip(a, -1, 1)).astype(a.dtype))
        expected = {
            "neg": lambda: -a,
            "abs": lambda: np.abs(a),
            "not": lambda: ~a,
            "fma": lambda: array((x.double() * x.double() + x.double()).to(x.dtype)),
        }[op]()
    return Outcome(array(out), expected, TOLERANCE.get(name, 0.0) if op == "fma" else 0.0)


@triton.jit
def cast_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside).to(out.dtype.element_ty), mask=inside)


@case(
    *pairs(("int8", "int32", "int64", "uint32"), FLOATS),
    *pairs(FLOATS, FLOATS),
    *pairs(("int8", "int32", "int64"), SIGNED),
)
def cast(device, which):
    source, target = which
    x = data(source, COUNT, 9, special=True)
    out = torch.zeros(COUNT, dtype=torch_type(target), device=device)
    cast_kernel[(1,)](x.to(device), out, COUNT, BLOCK=BLOCK)
    if source == "uint32":
        return Outcome(array(out), array(torch.from_numpy(array(x).astype(np.float64)).to(out.dtype)))
    return Outcome(array(out), array(x.to(out.dtype)))


@case(*pairs(("float16", "bfloat16", "float32", "float64"), ("int16", "int32", "int64", "int8")))
def cast_to_integer(device, which):
    """Towards zero; what does not fit is left out, as C has no answer to it."""
    source, target = which
    x = data(source, COUNT, 10)
    out = torch.zeros(COUNT, dtype=torch_type(target), device=device)
    cast_kernel[(1,)](x.to(device), out, COUNT, BLOCK=BLOCK)
    return Outcome(array(out), np.trunc(array(x)).astype(target))


@triton.jit
def saturating_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty))


@case(*pairs(("float32", "float64"), ("int32", "int64")))
def cast_out_of_range(device, which):
    """NVIDIA's conversion saturates; NaN is 0, or the highest bit where either type has 64 bits (PTX ISA, cvt)."""
    source, target = which
    numbers = [np.nan, np.inf, -np.inf, 3e9, -3e9, 2147483520.0, -2147483648.0, 0.5, 1e19, -1e19]
    x = torch.tensor([*numbers, 0, 1, 2, 3, 4, 5], dtype=torch_type(source))
    out = torch.zeros(16, dtype=torch_type(target), device=device)
    if device == "cpu":
        return Outcome(np.zeros(0))
    saturating_kernel[(1,)](x.to(device), out, BLOCK=16)
    least, most = (getattr(torch.iinfo(out.dtype), name) for name in ("min", "max"))
    for_nan = 0 if source == "float32" and target == "int32" else least
    wanted = [for_nan, *(least if n <= least else most if n >= most else int(n) for n in numbers[1:])]
    return Outcome(array(out), np.array([*wanted, 0, 1, 2, 3, 4, 5], dtype=target))


@triton.jit
def division_kernel(x, y, quotients, remainders, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(quotients + at, tl.load(x + at) // tl.load(y + at))
    tl.store(remainders + at, tl.load(x + at) % tl.load(y + at))


@case(*INTEGERS)
def division_by_zero(device, dtype):
    """All ones, as upstream's tests of eager mode have it; of 64 bits the lower 32 where the dividend has no others."""
    if device == "cpu":
        return Outcome(np.zeros(0))
    x = torch.tensor([0, 1, 100, 7, -1 if dtype in SIGNED else 9, 5, 3, 2]).to(torch_type(dtype))
    y = torch.tensor([0, 0, 0, 2, 0, 5, 0, 0]).to(torch_type(dtype))
    quotients, remainders = (torch.zeros_like(x, device=device) for _ in range(2))
    division_kernel[(1,)](x.to(device), y.to(device), quotients, remainders, BLOCK=8)
    bits = torch.iinfo(x.dtype).bits
    ones = array(torch.tensor(0xFFFFFFFF if bits == 64 else -1).to(x.dtype))
    negative = array(torch.tensor(-1).to(x.dtype)) if dtype in SIGNED else ones
    return Outcome(
        np.stack([array(quotients), array(remainders)]),
        np.array([[ones, ones, ones, 3, negative, 1, ones, ones], [ones, ones, ones, 1, negative, 0, ones, ones]]),
    )


@triton.jit
def small_float_kernel(x, up, down, rtz, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    small = tl.load(x + at).to(tl.float8e5, bitcast=True)
    tl.store(up + at, small.to(tl.float32))
    back = small.to(tl.float32) * 1.0625
    tl.store(down + at, back.to(tl.float8e5).to(tl.int8, bitcast=True))
    tl.store(rtz + at, back.to(tl.float16, fp_downcast_rounding="rtz").to(tl.int16, bitcast=True))


@case("up", "down", "rtz")
def float8e5(device, which):
    """All 256 codes, against torch's conversions."""
    if device == "cpu":
        return Outcome(np.zeros(0))
    codes = torch.arange(-128, 128, dtype=torch.int8)
    up = torch.zeros(256, device=device)
    down = torch.zeros(256, dtype=torch.int8, device=device)
    rtz = torch.zeros(256, dtype=torch.int16, device=device)
    small_float_kernel[(1,)](codes.to(device), up, down, rtz, 256, BLOCK=256)
    wide = codes.view(torch.float8_e5m2).float()
    if which == "up":
        return Outcome(array(up), array(wide))
    scaled = wide * 1.0625
    finite = torch.isfinite(scaled) & (scaled.abs() < 57344)
    if which == "down":
        expected = scaled.to(torch.float8_e5m2).view(torch.int8)
        return Outcome(array(down)[finite.numpy()], array(expected)[finite.numpy()])
    got = rtz.cpu().view(torch.float16).float()
    exact = (scaled.abs() >= got.abs()) & ((scaled - got).abs() <= got.abs() * 2**-10 + 2**-24)
    return Outcome(array(exact[finite]), np.ones(int(finite.sum()), dtype=bool))


@triton.jit
def extremes_kernel(x, y, high, low, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(high + at, tl.maximum(a, b))
    tl.store(low + at, tl.minimum(a, b))


@case("float32-max", "float32-min", "float64-max", "float64-min")
def extremes(device, which):
    """Of every sort of number with every other: PTX gives a number beside any NaN, and takes -0 for less than +0."""
    if device == "cpu":
        return Outcome(np.zeros(0))
    name, op = which.split("-")
    kind, word = np.dtype(name), np.dtype(name.replace("float", "uint"))
    infinity, sign = np.array(np.inf, kind).view(word), word.type(1) << word.type(kind.itemsize * 8 - 1)
    quiet = np.array(np.nan, kind).view(word)
    sorts = np.array([0, 1, quiet ^ infinity, infinity - 1, infinity, infinity + 1, quiet, quiet + 5], word)
    sorts = np.concatenate([sorts, sorts | sign])
    x, y = np.repeat(sorts, 16).view(kind), np.tile(sorts, 16).view(kind)
    result = torch.zeros(2, 256, dtype=torch_type(name), device=device)
    extremes_kernel[(1,)](*(torch.from_numpy(each).to(device) for each in (x, y)), result[0], result[1], BLOCK=256)
    # Numbers in order as integers.
    bits = [each.view(word.name[1:]) for each in (x, y)]
    a, b = (np.where(each < 0, np.iinfo(each.dtype).min - each - 1, each) for each in bits)
    first = (a > b) if op == "max" else (a < b)
    expected = np.where(np.isnan(x), y, np.where(np.isnan(y) | first, x, y))
    got = array(result[0] if op == "max" else result[1])
    words = [np.where(np.isnan(each), quiet, each.view(word)) for each in (got, expected)]
    return Outcome(*words)


@case("exp", "exp2")
def power_of_every_size(device, which):
    """Within a unit in the last place of f32, from results below the least number to those above the largest."""
    if device == "cpu":
        return Outcome(np.zeros(0))
    x = torch.linspace(-152, 130, 1 << 16) * (np.log(2) if which == "exp" else 1)
    out = torch.zeros_like(x, device=device)
    unary_kernel[(1,)](x.to(device), out, x.numel(), OP=which, BLOCK=1 << 16)
    exact = getattr(np, which)(x.double().numpy())
    unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 24, -149))
    got = array(out)
    near = np.where(exact >= 2.0**128, np.isinf(got), np.abs(got - exact) <= unit)
    return Outcome(near, np.ones(x.numel(), dtype=bool))
