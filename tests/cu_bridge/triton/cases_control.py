"""Control flow, and whole kernels as users write them."""

import numpy as np
import torch
import triton
import triton.language as tl
from registry import Outcome, array, case, data


@triton.jit
def loop_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    previous = tl.zeros([BLOCK], tl.float32)
    place = x + at
    for start in range(0, n, BLOCK):
        a = tl.load(place, mask=start + at < n, other=0.0)
        total, previous = total + a * previous, a
        place += BLOCK
    tl.store(out + at, total)


@case(64, 65, 300)
def loop_carries_tiles(device, n):
    x = data("float32", n, 40)
    out = torch.zeros(64, device=device)
    loop_kernel[(1,)](x.to(device), out, n, BLOCK=64)
    a = np.zeros((n + 63) // 64 * 64, np.float64)
    a[:n] = array(x)
    rows = a.reshape(-1, 64)
    return Outcome(array(out), (rows[1:] * rows[:-1]).sum(0).astype(np.float32), 1e-5)


@triton.jit
def swap_kernel(x, out, steps, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    b = tl.load(x + N + at)
    for _ in range(steps):
        a, b = b, a + b
    tl.store(out + at, a)
    tl.store(out + N + at, b)


@case(0, 1, 7)
def loop_exchanges_tiles(device, steps):
    x = data("int32", 64, 41) % 100
    out = torch.zeros_like(x, device=device)
    swap_kernel[(1,)](x.to(device), out, steps, N=32)
    a, b = array(x)[:32].copy(), array(x)[32:].copy()
    for _ in range(steps):
        a, b = b, a + b
    return Outcome(array(out), np.concatenate([a, b]))


@triton.jit
def turn_kernel(x, out, steps, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    for _ in range(steps):
        a = tl.trans(a) + a
    tl.store(out + at, a)


@case(1, 4)
def loop_turns_a_tile(device, steps):
    """Each element of the new tile needs two of the old."""
    x = data("int32", 256, 42).reshape(16, 16) % 10
    out = torch.zeros_like(x, device=device)
    turn_kernel[(1,)](x.to(device), out, steps, N=16)
    a = array(x)
    for _ in range(steps):
        a = a.T + a
    return Outcome(array(out), a)


@triton.jit
def while_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    steps = 0
    while tl.max(a, 0) > 1:
        a = tl.where(a % 2 == 0, a // 2, tl.where(a > 1, 3 * a + 1, a))
        steps += 1
    tl.store(out, steps)


@case(16)
def while_loop(device, n):
    x = torch.arange(1, n + 1, dtype=torch.int32)
    out = torch.zeros(1, dtype=torch.int32, device=device)
    while_kernel[(1,)](x.to(device), out, N=n)
    a, steps = array(x).copy(), 0
    while a.max() > 1:
        a = np.where(a % 2 == 0, a // 2, np.where(a > 1, 3 * a + 1, a))
        steps += 1
    return Outcome(array(out), np.array([steps], dtype=np.int32))


@triton.jit
def branch_kernel(x, out, which, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    if which == 0:
        tl.store(out + at, a)
        return
    if which > 1:
        a = a * which
        b = tl.sum(a, 0)
    else:
        b = 5
    tl.store(out + at, a + b)


@case(0, 1, 2, 5)
def branches(device, which):
    x = data("int32", 32, 43) % 100
    out = torch.zeros_like(x, device=device)
    branch_kernel[(1,)](x.to(device), out, which, N=32)
    a = array(x)
    return Outcome(
        array(out), a if which == 0 else a + 5 if which == 1 else a * which + (a * which).sum(dtype=np.int32)
    )


@triton.jit(noinline=True)
def helper(number, scale):
    if number > 50:
        return number * scale, 1
    return number, scale


@triton.jit
def call_kernel(x, out, N: tl.constexpr):
    for at in range(N):
        a, total = helper(tl.load(x + at), 3)
        b, more = helper(a, 2)
        tl.store(out + at, b + total + more)


@case(64)
def calls(device, n):
    x = data("int32", n, 44) % 1000
    out = torch.zeros_like(x, device=device)
    call_kernel[(1,)](x.to(device), out, N=n)
    a = array(x)

    def expected(number, scale):
        return (number * scale, 1) if number > 50 else (number, scale)

    values = []
    for number in a:
        first, total = expected(int(number), 3)
        second, more = expected(first, 2)
        values.append(second + total + more)
    return Outcome(array(out), np.array(values, dtype=np.int32))


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(a - tl.max(a, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), mask=at < columns)


@case(1, 77, 256)
def softmax(device, columns):
    x = data("float32", 5 * columns, 45).reshape(5, columns)
    out = torch.zeros_like(x, device=device)
    softmax_kernel[(5,)](x.to(device), out, columns, BLOCK=256)
    return Outcome(array(out), array(torch.softmax(x.double(), 1).float()), 1e-5)


@triton.jit
def attention_kernel(q, k, v, out, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    inner = tl.arange(0, D)
    columns = tl.arange(0, N)
    left = tl.load(q + rows[:, None] * D + inner[None, :], mask=rows[:, None] < n, other=0.0)
    most = tl.full([M], -float("inf"), tl.float32)
    weight = tl.zeros([M], tl.float32)
    total = tl.zeros([M, D], tl.float32)
    for start in range(0, n, N):
        there = start + columns
        right = tl.load(k + there[None, :] * D + inner[:, None], mask=there[None, :] < n, other=0.0)
        scores = tl.dot(left, right, input_precision="ieee") * scale
        scores = tl.where(there[None, :] < n, scores, -float("inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - now[:, None])
        alpha = tl.exp(most - now)
        weight = weight * alpha + tl.sum(p, 1)
        values = tl.load(v + there[:, None] * D + inner[None, :], mask=there[:, None] < n, other=0.0)
        total = total * alpha[:, None]
        total = tl.dot(p.to(values.dtype), values, total, input_precision="ieee")
        most = now
    tl.store(out + rows[:, None] * D + inner[None, :], total / weight[:, None], mask=rows[:, None] < n)


@case(("float32", 50), ("float16", 64))
def attention(device, which):
    name, n = which
    q, k, v = (data(name, n * 32, 46 + i).reshape(n, 32) / 4 for i in range(3))
    out = torch.zeros(n, 32, device=device)
    attention_kernel[(triton.cdiv(n, 16),)](q.to(device), k.to(device), v.to(device), out, n, 0.2, M=16, N=32, D=32)
    expected = torch.softmax(q.double() @ k.double().T * 0.2, 1) @ v.double()
    return Outcome(array(out), array(expected.float()), 1e-4 if name == "float32" else 5e-3)
