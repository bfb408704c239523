"""Loads, stores and atomic operations: masks, strides, block pointers, order."""

import numpy as np
import torch
import triton
import triton.language as tl
from registry import ATOMIC_ACCESSES, BLOCK_POINTERS, FLOATS, INTEGERS, Outcome, array, case, data, pairs


@triton.jit
def copy_kernel(x, out, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at * stride, mask=inside, other=0), mask=inside)


@case(*pairs(INTEGERS + FLOATS + ("bool",), (1, 3, -2)))
def strided_copy(device, which):
    name, stride = which
    n = 333
    x = data("int8", 3 * n, 30).bool() if name == "bool" else data(name, 3 * n, 30)
    source = x.to(device)
    start = source[2 * n :] if stride < 0 else source
    out = torch.zeros(n + 8, dtype=x.dtype, device=device)
    copy_kernel[(triton.cdiv(n, 64),)](start, out, n, stride, BLOCK=64)
    a = array(x)
    expected = np.concatenate([a[(2 * n if stride < 0 else 0) :: stride][:n], np.zeros(8, dtype=a.dtype)])
    return Outcome(array(out), expected)


@triton.jit
def mask_kernel(x, out, m, n, M: tl.constexpr, N: tl.constexpr, OTHER: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + rows * n + columns, mask=(rows < m) & (columns < n), other=OTHER)
    tl.store(out + rows * N + columns, a)


@case((5, 9), (16, 32), (1, 1), (7, 31), (16, 3))
def mask_of_two_sides(device, which):
    m, n = which
    x = data("float32", m * n, 31).reshape(m, n)
    out = torch.zeros(16, 32, device=device)
    mask_kernel[(1,)](x.to(device), out, m, n, M=16, N=32, OTHER=-7.0)
    expected = np.full((16, 32), -7.0, np.float32)
    expected[:m, :n] = array(x)
    return Outcome(array(out), expected)


@triton.jit
def edges_kernel(x, sums, products, m, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    columns = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inside = (rows < m) & (columns < n)
    a = tl.load(x + rows * n + columns, mask=inside)
    b = tl.load(x + columns * m + rows, mask=inside)
    # The two go into one nest, and store other elements.
    tl.store(sums + rows * n + columns, a + b, mask=inside & (rows <= columns))
    tl.store(products + columns * m + rows, a * b, mask=inside & (rows > columns + 40))


@case((5, 9), (64, 64), (1, 130), (130, 1), (70, 77), (128, 3))
def edges_of_a_grid_that_is_too_large(device, which):
    m, n = which
    x = data("float32", m * n, 35)
    sums, products = (torch.full((m * n,), -3.0, device=device) for _ in range(2))
    edges_kernel[(3, 4)](x.to(device), sums, products, m, n, M=64, N=64)
    a, b = array(x).reshape(m, n), array(x).reshape(n, m).T
    rows, columns = np.mgrid[:m, :n]
    expected_sums = np.where(rows <= columns, a + b, np.float32(-3))
    expected_products = np.where(rows > columns + 40, a * b, np.float32(-3)).T
    return Outcome(
        np.concatenate([array(sums), array(products)]),
        np.concatenate([expected_sums.ravel(), expected_products.ravel()]),
    )


@triton.jit
def indirect_kernel(x, index, out, N: tl.constexpr):
    at = tl.arange(0, N)
    where = tl.load(index + at)
    tl.store(out + where, tl.load(x + where) + 1)


@case("int64", "float16", "int8", "float64")
def indirect(device, name):
    x = data(name, 128, 32)
    index = torch.from_numpy(np.random.RandomState(1).permutation(128).astype(np.int64))
    out = torch.zeros_like(x, device=device)
    indirect_kernel[(1,)](x.to(device), index.to(device), out, N=128)
    return Outcome(array(out), array((x.float() + 1).to(x.dtype) if name == "float16" else x + 1))


@triton.jit
def shift_kernel(x, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at + 1)
    tl.store(x + at, a)


@case(64, 256)
def load_comes_before_store(device, n):
    """A tile that is stored one place lower than it was loaded from: the whole of it is loaded first."""
    x = data("int32", n + 1, 33)
    there = x.to(device).clone()
    shift_kernel[(1,)](there, N=n)
    a = array(x)
    return Outcome(array(there), np.concatenate([a[1:], a[-1:]]))


@triton.jit
def order_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    tl.store(x + at, a + 1)
    b = tl.load(x + N - 1 - at)
    tl.store(out + at, a * 1000 + b)


@case(32, 128)
def load_after_store(device, n):
    x = data("int32", n, 34) % 100
    out = torch.zeros_like(x, device=device)
    order_kernel[(1,)](x.to(device).clone(), out, N=n)
    a = array(x)
    return Outcome(array(out), a * 1000 + a[::-1] + 1)


@triton.jit
def block_kernel(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_block_ptr(x, shape=(m, n), strides=(n, 1), offsets=(0, 0), block_shape=(M, N), order=(1, 0))
    target = tl.make_block_ptr(out, shape=(m, n), strides=(n, 1), offsets=(0, 0), block_shape=(M, N), order=(1, 0))
    for _ in range(0, n, N):
        tl.store(target, tl.load(source, boundary_check=(0, 1), padding_option="zero") * 2, boundary_check=(0, 1))
        source = tl.advance(source, (0, N))
        target = tl.advance(target, (0, N))


@case((13, 50), (16, 64), (3, 17), there=BLOCK_POINTERS)
def block_pointers(device, which):
    m, n = which
    x = data("float32", m * n, 35).reshape(m, n)
    out = torch.zeros_like(x, device=device)
    block_kernel[(1,)](x.to(device), out, m, n, M=16, N=16)
    return Outcome(array(out), array(x) * 2)


@triton.jit
def atomic_kernel(x, out, old, OP: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    place = out + at % 8
    if OP == "add":
        r = tl.atomic_add(place, a, mask=at < N - 3)
    elif OP == "max":
        r = tl.atomic_max(place, a, mask=at < N - 3)
    elif OP == "min":
        r = tl.atomic_min(place, a, mask=at < N - 3)
    elif OP == "and":
        r = tl.atomic_and(place, a, mask=at < N - 3)
    elif OP == "or":
        r = tl.atomic_or(place, a, mask=at < N - 3)
    elif OP == "xor":
        r = tl.atomic_xor(place, a, mask=at < N - 3)
    tl.store(old + at, r, mask=at < 0)


@case(*pairs(("add", "max", "min", "and", "or", "xor"), ("int32", "uint32", "int64", "uint64")),
      *pairs(("add",), ("float32", "float64", "float16")), *pairs(("max", "min"), ("float32",)))  # fmt: skip
def atomics(device, which):
    op, name = which
    n = 64
    x = data(name, n, 36)
    start = data(name, 8, 37)
    out = start.to(device).clone()
    atomic_kernel[(1,)](x.to(device), out, torch.zeros_like(x, device=device), OP=op, N=n)
    expected = array(start).copy()
    combine = {
        "add": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[op]
    a = array(x)
    with np.errstate(over="ignore"):
        for number in range(n - 3):
            expected[number % 8] = combine(expected[number % 8], a[number])
    return Outcome(array(out), expected, {"float16": 5e-2, "float32": 1e-4, "float64": 1e-12}.get(name, 0.0))


@triton.jit
def many_programs_kernel(counter, done, N: tl.constexpr):
    tl.atomic_add(counter, 1)
    first = tl.atomic_cas(done, 0, 1)
    if first == 0:
        tl.atomic_xchg(done + 1, 7)


@case(1, 300)
def atomics_of_programs(device, programs):
    counter, done = torch.zeros(1, dtype=torch.int32, device=device), torch.zeros(2, dtype=torch.int32, device=device)
    many_programs_kernel[(programs,)](counter, done, N=1)
    return Outcome(np.concatenate([array(counter), array(done)]), np.array([programs, 1, 7], dtype=np.int32))


@triton.jit
def access_kernel(x, y, out, seen, n, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.atomic_load(x + at, mask=at < n)
    tl.atomic_store(y + at, tl.where(at < n, a, 0), mask=at < n - 1, sem="relaxed", scope="sys")
    tl.atomic_store(y + N, tl.atomic_load(x))
    tl.store(out + at, tl.load(y + at))
    tl.store(seen + at, at < n)


@case("int8", "uint16", "int32", "int64", "float16", "float32", "float64", there=ATOMIC_ACCESSES)
def atomic_accesses(device, name):
    n = 21
    x = data(name, 32, 38)
    y = data(name, 33, 39)
    stored, out = y.to(device).clone(), torch.zeros_like(x, device=device)
    access_kernel[(1,)](x.to(device), stored, out, torch.zeros(32, dtype=torch.int8, device=device), n, N=32)
    a, expected = array(x), array(y).copy()
    expected[: n - 1], expected[32] = a[: n - 1], a[0]
    return Outcome(np.concatenate([array(stored), array(out)]), np.concatenate([expected, expected[:32]]))


@triton.jit
def poll_kernel(flags, wanted, out, N: tl.constexpr):
    at = tl.arange(0, N)
    # All elements share a hundredth of a second, in which nobody writes.
    found = tl.atomic_poll(flags + at, tl.load(wanted + at), timeout_ns=10000000)
    tl.store(out + at, found.to(tl.int8))


@case("int16", "int32", "uint64", there=ATOMIC_ACCESSES)
def polls_that_end(device, name):
    flags = data(name, 16, 40)
    wanted = flags.clone()
    wanted[3::4] = 7
    out = torch.zeros(16, dtype=torch.int8, device=device)
    poll_kernel[(1,)](flags.to(device), wanted.to(device), out, N=16)
    return Outcome(array(out), (array(flags) == array(wanted)).astype(np.int8))


@triton.jit
def signal_kernel(flag, values, out, N: tl.constexpr):
    at = tl.arange(0, N)
    if tl.program_id(0) == 0:
        tl.store(values + at, at + 5)
        tl.atomic_store(flag, 1)
    else:
        # What the first program has written before its signal is there: no load may come before the poll.
        tl.atomic_poll(flag, 1)
        tl.store(out + tl.program_id(0) * N + at, tl.load(values + at))


@case(2, 40, there=ATOMIC_ACCESSES)
def programs_wait_for_the_first(device, programs):
    flag, values = torch.zeros(1, dtype=torch.int32, device=device), torch.zeros(64, dtype=torch.int32, device=device)
    out = torch.zeros(programs, 64, dtype=torch.int32, device=device)
    signal_kernel[(programs,)](flag, values, out, N=64)
    expected = np.tile(np.arange(5, 69, dtype=np.int32), (programs, 1))
    expected[0] = 0
    return Outcome(array(out), expected)
