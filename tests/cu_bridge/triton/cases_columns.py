"""Tiles whose neighbours in memory lie along the first dimension, and element numbers that are taken apart.

All results are exact, so that no order of sums shows.
"""

import numpy as np
import torch
import triton
import triton.language as tl
from registry import Outcome, array, case, data


@triton.jit
def column_sums_kernel(x, y, sums, products, ROWS, COLUMNS, STRIDE, X: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    inside = at < COLUMNS
    total = tl.full([X, B], 0, x.dtype.element_ty)
    product = tl.full([X, B], 0, x.dtype.element_ty)
    for start in range(0, ROWS, B):
        row = start + tl.arange(0, B)[None, :]
        mask = inside & (row < ROWS)
        a = tl.load(x + at + row * STRIDE, mask, other=0)
        b = tl.load(y + at + row * STRIDE, mask, other=0)
        product = tl.where(mask, product + a * b, product)
        total = tl.where(mask, total + a, total)
    tl.store(sums + at, tl.sum(total, 1)[:, None], inside)
    tl.store(products + at, tl.sum(product, 1)[:, None], inside)


SIZES = [
    (name, r, c, b) for name in ("int32", "float32", "float64") for r, c, b in ((37, 70, 8), (64, 32, 1), (5, 3, 4))
]


@case(*SIZES)
def sums_of_columns(device, which):
    """Two sums are carried; rows and columns end within a block."""
    name, rows, columns, block = which
    x, y = ((data("int32", rows * (columns + 5), seed) % 9).to(getattr(torch, name)) for seed in (31, 32))
    x, y = x.reshape(rows, columns + 5), y.reshape(rows, columns + 5)
    # The interpreter of 3.2 adds int32 up in int64 and stores that, so that the last element reaches beyond.
    sums, products = (torch.zeros(columns + 1, dtype=x.dtype, device=device)[:columns] for _ in range(2))
    grid = (triton.cdiv(columns, 32),)
    column_sums_kernel[grid](x.to(device), y.to(device), sums, products, rows, columns, columns + 5, X=32, B=block)
    a, b = array(x)[:, :columns], array(y)[:, :columns]
    return Outcome(np.stack([array(sums), array(products)]), np.stack([a.sum(0), (a * b).sum(0)]).astype(a.dtype))


@triton.jit
def exchange_kernel(x, out, ROWS, COLUMNS: tl.constexpr, X: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, X)[:, None]
    first = tl.full([X, B], 1, tl.int32)
    second = tl.full([X, B], 2, tl.int32)
    most = tl.full([X], -1000, tl.int32)
    for start in range(0, ROWS, B):
        a = tl.load(x + at + (start + tl.arange(0, B)[None, :]) * COLUMNS)
        shifted = first + most[:, None]
        first, second = second, shifted + a
        most = tl.maximum(most, tl.max(a, 1))
    places = at + tl.arange(0, B)[None, :] * COLUMNS
    tl.store(out + places, first)
    tl.store(out + B * COLUMNS + places, second)
    tl.store(out + 2 * B * COLUMNS + tl.arange(0, X), most)


@case(4, 8)
def carried_tiles_that_change_places(device, block):
    """Each pass reads what the same pass overwrites, also through a tile of another shape."""
    rows, columns = 40, 64
    x = data("int32", rows * columns, 33).reshape(rows, columns) % 100
    out = torch.zeros((2 * block + 1) * columns, dtype=torch.int32, device=device)
    exchange_kernel[(1,)](x.to(device), out, rows, COLUMNS=columns, X=columns, B=block)
    a = array(x)
    first, second = np.full((block, columns), 1, np.int32), np.full((block, columns), 2, np.int32)
    most = np.full(columns, -1000, np.int32)
    for start in range(0, rows, block):
        part = a[start : start + block]
        first, second = second, first + most + part
        most = np.maximum(most, part.max(0))
    return Outcome(array(out), np.concatenate([first.ravel(), second.ravel(), most]))


@triton.jit
def transposed_kernel(x, out, PASSES, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    first = tl.load(x + at)
    second = first * 2
    for number in range(PASSES):
        first, second = tl.trans(second) + number, tl.trans(first) - second
    tl.store(out + at, first)
    tl.store(out + N * N + at, second)


@case(3)
def carried_tiles_that_are_transposed(device, passes):
    """What is overwritten is read at another place."""
    n = 16
    x = data("int32", n * n, 34).reshape(n, n) % 50
    out = torch.zeros(2 * n * n, dtype=torch.int32, device=device)
    transposed_kernel[(1,)](x.to(device), out, passes, N=n)
    first = array(x)
    second = first * 2
    for number in range(passes):
        first, second = second.T + number, first.T - second
    return Outcome(array(out), np.concatenate([first.ravel(), second.ravel()]))


@triton.jit
def first_pass_kernel(x, out, ROWS, COLUMNS: tl.constexpr, X: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, X)[:, None]
    value = tl.full([X, B], 0, tl.int32)
    count = tl.full([X, B], 0, tl.int32)
    for start in range(0, ROWS, B):
        a = tl.load(x + at + (start + tl.arange(0, B)[None, :]) * COLUMNS)
        if start == 0:
            value, count = a, tl.full([X, B], 1, tl.int32)
        else:
            value, count = (value * count + a) // count, count + 1
    tl.store(out + at, tl.sum(value, 1)[:, None])
    tl.store(out + COLUMNS + at, tl.max(count, 1)[:, None])


@case(8)
def first_pass_of_a_loop(device, block):
    """Both branches may be computed; the one that is not taken divides by zero."""
    rows, columns = 32, 16
    x = data("int32", rows * columns, 35).reshape(rows, columns) % 1000
    out = torch.zeros(2 * columns, dtype=torch.int32, device=device)
    first_pass_kernel[(1,)](x.to(device), out, rows, COLUMNS=columns, X=columns, B=block)
    a = array(x).astype(np.int64)
    value, count = a[:block], 1
    for start in range(block, rows, block):
        quotient = value * count + a[start : start + block]
        value = np.sign(quotient) * (np.abs(quotient) // count)
        count += 1
    return Outcome(array(out), np.concatenate([value.sum(0), np.full(columns, count)]).astype(np.int32))


@triton.jit
def extreme_kernel(x, places, sums, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    column, row = tl.arange(0, N)[:, None], tl.arange(0, M)[None, :]
    a = tl.load(x + column + row * N)
    if OP == "argmax":
        r = tl.argmax(a, 1)
    else:
        r = tl.argmin(a, 1)
    tl.store(places + tl.arange(0, N), r)
    tl.store(sums + column + row * N, tl.cumsum(a.to(tl.float32), 1))


@case("argmax", "argmin")
def extremes_and_running_sums_of_columns(device, op):
    """The first of several that are equal counts."""
    m, n = 32, 64
    x = data("int32", m * n, 36).reshape(m, n) % 7
    places, sums = torch.zeros(n, dtype=torch.int32, device=device), torch.zeros(m * n, device=device)
    extreme_kernel[(1,)](x.to(device), places, sums, OP=op, M=m, N=n)
    a = array(x)
    expected = np.concatenate([getattr(np, op)(a, 0).astype(np.float32), np.cumsum(a, 0, dtype=np.float32).ravel()])
    return Outcome(np.concatenate([array(places).astype(np.float32), array(sums)]), expected)


@triton.jit
def apart_kernel(x, loaded, quotients, remainders, COUNT, FIRST, C: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < COUNT
    j = i + FIRST
    tl.store(loaded + i, tl.load(x + i % C + 128 * ((i // C) % D), mask), mask)
    tl.store(quotients + i, j // C, mask)
    tl.store(remainders + i, j % C, mask)


@case(*[(c, d, first) for c in (8, 16, 24, 56, 7, 64) for d in (5, 8) for first in (0, 64, -72, 3)])
def element_numbers_taken_apart(device, which):
    """Quotients round to zero, remainders have the sign of what is divided."""
    c, d, first = which
    count = 1000
    x = data("float32", 128 * 8, 37)
    loaded = torch.zeros(count, device=device)
    quotients, remainders = (torch.zeros(count, dtype=torch.int32, device=device) for _ in range(2))
    apart_kernel[(triton.cdiv(count, 256),)](x.to(device), loaded, quotients, remainders, count, first, C=c, D=d, B=256)
    i = np.arange(count)
    j = i + first
    quotient = np.sign(j) * (np.abs(j) // c)
    expected = [
        array(x)[i % c + 128 * ((i // c) % d)],
        quotient.astype(np.float32),
        (j - c * quotient).astype(np.float32),
    ]
    got = [array(loaded), array(quotients).astype(np.float32), array(remainders).astype(np.float32)]
    return Outcome(np.stack(got), np.stack(expected))


@triton.jit
def twice_apart_kernel(x, out, C: tl.constexpr, X: tl.constexpr, B: tl.constexpr, ROWS: tl.constexpr):
    at = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    total = tl.full([X, B], 0, tl.float32)
    for start in range(0, ROWS, B):
        row = start + tl.arange(0, B)[None, :]
        place = row + ROWS * ((at // C) % 3)
        a = tl.load(x + at % C + C * (place % 40) + 1024 * (at // (3 * C)), row < ROWS, other=0.0)
        total += tl.where(place < 40, a, 0.0)
    tl.store(out + at, tl.sum(total, 1)[:, None])


@case(16, 64)
def parts_of_columns(device, c):
    """What torch.compile makes of a mean over the inner dimensions of an image whose channels are last."""
    rows, count = 14, 6 * c
    x = (data("int32", 4096 + 64 * 40, 38) % 50).float()
    out = torch.zeros(count, device=device)
    twice_apart_kernel[(count // 16,)](x.to(device), out, C=c, X=16, B=8, ROWS=rows)
    a, expected = array(x), np.zeros(count, np.float32)
    for at in range(count):
        for row in range(rows):
            place = row + rows * ((at // c) % 3)
            expected[at] += a[at % c + c * (place % 40) + 1024 * (at // (3 * c))] if place < 40 else 0
    return Outcome(array(out), expected)
