"""Kernels in which a tile is read at places that the same kernel has written: where a fused loop could go wrong."""

import numpy as np
import torch
import triton
import triton.language as tl
from registry import HISTOGRAM_TYPES, Outcome, array, case, data


@triton.jit
def matrix_at(x, N: tl.constexpr):
    return x + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def in_place_kernel(x, MOVE: tl.constexpr, N: tl.constexpr):
    at = matrix_at(x, N)
    a = tl.load(at)
    if MOVE == "trans":
        a = tl.trans(a)
    elif MOVE == "reshape":
        a = tl.reshape(tl.trans(tl.reshape(a, (N * N // 4, 4))), (N, N))
    elif MOVE == "row":
        a = a + tl.broadcast_to(tl.reshape(tl.trans(a), (N, N)), (N, N))
    tl.store(at, a)


@case("trans", "reshape", "row")
def in_place_rearrangement(device, move):
    """A tile is stored where it was loaded, with its elements elsewhere."""
    n = 32
    x = data("float32", n * n, 3).reshape(n, n)
    y = x.to(device)
    in_place_kernel[(1,)](y, MOVE=move, N=n)
    a = array(x)
    moved = {"trans": a.T, "reshape": a.reshape(-1, 4).T.reshape(n, n), "row": a + a.T}[move]
    return Outcome(array(y), np.ascontiguousarray(moved))


@triton.jit
def turning_kernel(x, out, N: tl.constexpr):
    tl.store(matrix_at(out, N), tl.trans(tl.load(matrix_at(x, N))))


@case()
def one_tensor_as_two_arguments(device):
    n = 32
    x = data("float32", n * n, 3).reshape(n, n)
    y = x.to(device)
    turning_kernel[(1,)](y, y, N=n)
    return Outcome(array(y), np.ascontiguousarray(array(x).T))


@triton.jit
def in_place_atomic_kernel(x, N: tl.constexpr):
    at = matrix_at(x, N)
    tl.atomic_add(at, tl.trans(tl.load(at)))


@case()
def in_place_atomic_sum(device):
    n = 16
    x = data("float32", n * n, 4).reshape(n, n)
    y = x.to(device)
    in_place_atomic_kernel[(1,)](y, N=n)
    return Outcome(array(y), array(x) + array(x).T)


@triton.jit
def carried_kernel(x, out, STEP: tl.constexpr, TURNS: tl.constexpr, N: tl.constexpr):
    a = tl.load(matrix_at(x, N))
    b = a * 0.5
    for _ in range(TURNS):
        if STEP == "both":
            twice = a * 2
            a = twice + tl.trans(twice)
        elif STEP == "swap":
            a, b = tl.trans(b), a + 1
    tl.store(matrix_at(out, N), a - b)


@case("both", "swap")
def carried_tile_that_is_turned(device, step):
    """A loop's new tile needs elements of the old one in another order."""
    n, turns = 16, 3
    x = data("float32", n * n, 5).reshape(n, n)
    out = torch.zeros_like(x, device=device)
    carried_kernel[(1,)](x.to(device), out, STEP=step, TURNS=turns, N=n)
    a = array(x)
    b = a * np.float32(0.5)
    for _ in range(turns):
        a, b = (2 * a + (2 * a).T, b) if step == "both" else (b.T, a + 1)
    return Outcome(array(out), a - b)


@triton.jit
def power_kernel(x, out, FORM: tl.constexpr, TURNS: tl.constexpr, N: tl.constexpr):
    a = tl.load(matrix_at(x, N))
    b = a
    for _ in range(TURNS):
        if FORM == "left":
            b = tl.dot(b, a, input_precision="ieee")
        elif FORM == "right":
            b = tl.dot(a, b, input_precision="ieee")
        elif FORM == "square":
            b = tl.dot(b, b, input_precision="ieee")
        elif FORM == "sum":
            b = tl.dot(b, a, b, input_precision="ieee")
        elif FORM == "turned":
            b = tl.dot(a, a, b * 2 + tl.trans(b * 2), input_precision="ieee")
    tl.store(matrix_at(out, N), b)


@case("left", "right", "square", "sum", "turned")
def carried_product(device, form):
    """The sum of a product that a loop carries is an operand as well."""
    n, turns = 16, 3
    x = data("float32", n * n, 6).reshape(n, n) * 0.25
    out = torch.zeros_like(x, device=device)
    power_kernel[(1,)](x.to(device), out, FORM=form, TURNS=turns, N=n)
    a = array(x).astype(np.float64)
    b = a
    for _ in range(turns):
        turned = 2 * b + 2 * b.T
        b = {"left": b @ a, "right": a @ b, "square": b @ b, "sum": b + b @ a, "turned": a @ a + turned}[form]
    return Outcome(array(out), b.astype(np.float32), 1e-3)


@triton.jit
def walking_kernel(x, N: tl.constexpr, BLOCK: tl.constexpr):
    source = x
    target = x + 1
    at = tl.arange(0, BLOCK)
    for _ in range(N // BLOCK):
        tl.store(target + at, tl.load(source + at) + 1)
        source += BLOCK
        target += BLOCK


@case()
def carried_pointers_to_one_argument(device):
    """Two pointers that a loop moves may lead to the same memory."""
    n, block = 256, 64
    x = data("float32", n + 1, 7)
    y = x.to(device)
    walking_kernel[(1,)](y, N=n, BLOCK=block)
    expected = array(x).copy()
    for first in range(0, n, block):
        expected[first + 1 : first + 1 + block] = expected[first : first + block].copy() + 1
    return Outcome(array(y), expected)


@triton.jit(noinline=True)
def shifted_copy(source, target, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at))


@triton.jit
def calling_kernel(x, BLOCK: tl.constexpr):
    shifted_copy(x, x + 1, BLOCK)


@case()
def pointers_of_a_function_to_one_argument(device):
    block = 64
    x = data("float32", block + 1, 8)
    y = x.to(device)
    calling_kernel[(1,)](y, BLOCK=block)
    expected = array(x).copy()
    expected[1:] = expected[:-1].copy()
    return Outcome(array(y), expected)


@triton.jit
def constant_kernel(out, VALUE: tl.constexpr, DTYPE: tl.constexpr):
    tl.store(out, tl.full((), VALUE, DTYPE))
    tl.store(out + 1 + tl.arange(0, 4), tl.full((4,), VALUE, DTYPE))


@case("float16", "bfloat16", "float32", "float64")
def constant_numbers(device, name):
    """Decimal constants are the nearest numbers of their dtype."""
    values = (0.3, 0.1, 0.7, -1.1, 3.3, 1e-3, 123.456, 6.1e-5, 2.7182818, -0.0)
    out = torch.zeros(len(values), 5, dtype=getattr(torch, name), device=device)
    for place, value in enumerate(values):
        constant_kernel[(1,)](out[place], VALUE=value, DTYPE=getattr(tl, name))
    expected = torch.tensor(values, dtype=torch.float64)
    expected = (expected if name == "float64" else expected.float()).to(out.dtype)
    return Outcome(array(out), array(expected[:, None].expand(-1, 5).contiguous()))


@triton.jit
def swap_kernel(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at)
    tl.store(x + at, b)
    tl.store(y + at, a)


@case()
def swapped_tiles(device):
    """Both tiles have been loaded before the first is stored."""
    x, y = (data("float32", 256, seed) for seed in (1, 2))
    a, b = x.to(device), y.to(device)
    swap_kernel[(1,)](a, b, BLOCK=256)
    return Outcome(array(torch.cat([a, b])), array(torch.cat([y, x])))


@triton.jit
def counting_kernel(x, out, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


@case(*HISTOGRAM_TYPES)
def histogram_of_all_sizes(device, name):
    x = (data("int32", 512, 9) % 256).abs().to(getattr(torch, name))
    out = torch.zeros(256, dtype=torch.int32, device=device)
    counting_kernel[(1,)](x.to(device), out, N=512, BINS=256)
    return Outcome(array(out), np.bincount(array(x).astype(np.int64), minlength=256).astype(np.int32))
