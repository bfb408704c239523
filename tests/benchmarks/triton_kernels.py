"""Kernels in Triton on the device beside the same work of torch's own on the CPU, launches and compilations.

    python tests/benchmarks/triton_kernels.py [--rounds N] [--json FILE]

Prints ratios of seconds (below 1: the device is faster), then a launch of a small kernel and a compilation, cold and
from Triton's cache, in units of the times that they are to keep. docs/triton.md says how such kernels become machine
code.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, List, Tuple

import torch
import triton
import triton.language as tl
from _measure import Ratio, Table, compare, parser

# Name, work on the CPU, the same on the device.
Work = Tuple[str, Callable[[], Any], Callable[[], Any]]

LAUNCHES = 5000
FIRST_LAUNCH = "--first-launch"
KERNELS, TIMES = "kernels in Triton, to the CPU's operator", "Triton's own times, to their goals"
# Seconds of a launch from Python, of a compilation, and of one that Triton's cache has.
LAUNCH_GOAL, COLD_GOAL, CACHED_GOAL = 12e-6, 0.4, 10e-3


@triton.jit
def add(x, y, out, count, BLOCK: tl.constexpr):
    """One block of a sum."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(source, out, columns, BLOCK: tl.constexpr):
    """One row."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def layer_norm(source, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    """One row."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(source + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(mask, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    result = centred * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, result, mask=mask)


@triton.jit
def rotary(source, cosines, sines, out, tokens, HALF: tl.constexpr):
    """One head of one token: each pair of features is turned by the token's angle."""
    row, at = tl.program_id(0), tl.arange(0, HALF)
    angle = row % tokens * HALF + at
    cosine, sine = tl.load(cosines + angle), tl.load(sines + angle)
    left, right = tl.load(source + row * 2 * HALF + at), tl.load(source + row * 2 * HALF + HALF + at)
    tl.store(out + row * 2 * HALF + at, left * cosine - right * sine)
    tl.store(out + row * 2 * HALF + HALF + at, right * cosine + left * sine)


@triton.jit
def attention(q, k, v, out, tokens, scale, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr):
    """M queries of one head against all its keys, N at a time, with sums that are rescaled to the largest score yet."""
    head, size = tl.program_id(1) * tokens * SIZE, tl.arange(0, SIZE)
    rows = tl.program_id(0) * M + tl.arange(0, M)
    queries = tl.load(q + head + rows[:, None] * SIZE + size[None, :])
    largest = tl.full((M,), -float("inf"), dtype=tl.float32)
    weight = tl.zeros((M,), dtype=tl.float32)
    total = tl.zeros((M, SIZE), dtype=tl.float32)
    for start in range(0, tokens, N):
        columns = start + tl.arange(0, N)
        keys = tl.load(k + head + columns[None, :] * SIZE + size[:, None])
        scores = tl.dot(queries, keys) * (scale * 1.44269504)
        now = tl.maximum(largest, tl.max(scores, 1))
        powers = tl.exp2(scores - now[:, None])
        shrink = tl.exp2(largest - now)
        values = tl.load(v + head + columns[:, None] * SIZE + size[None, :])
        total = tl.dot(powers.to(values.dtype), values, total * shrink[:, None])
        weight = weight * shrink + tl.sum(powers, 1)
        largest = now
    tl.store(out + head + rows[:, None] * SIZE + size[None, :], (total / weight[:, None]).to(out.dtype.element_ty))


@triton.jit
def matmul(a, b, c, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """One tile of the product of two square matrices whose size the tiles divide."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, size, K):
        left = tl.load(a + rows[:, None] * size + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * size + columns[None, :])
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + rows[:, None] * size + columns[None, :], total.to(c.dtype.element_ty))


def rotary_work() -> Work:
    """Turn 8 sequences of 512 tokens with 12 heads of 64 features, in one pass and as torch writes it."""
    shape, half = (8 * 12, 512, 64), 32
    source = torch.randn(shape)
    angles = torch.arange(shape[1])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    cosine, sine = angles.cos(), angles.sin()
    wide = [torch.cat((each, each), 1) for each in (cosine, sine)]
    given, dcosine, dsine = source.cuda(), cosine.cuda(), sine.cuda()
    out = torch.empty_like(given)

    def on_cpu() -> torch.Tensor:
        left, right = source.chunk(2, -1)
        return source * wide[0] + torch.cat((-right, left), -1) * wide[1]

    def on_device() -> torch.Tensor:
        rotary[(shape[0] * shape[1],)](given, dcosine, dsine, out, shape[1], HALF=half)
        return out

    return agreeing("rotary, 96 x 512 x 64", on_cpu, on_device, 1e-5)


def attention_work() -> Work:
    """12 heads of 64 features, 1024 tokens."""
    heads, tokens, size = 12, 1024, 64
    q, k, v = (torch.randn(1, heads, tokens, size).half() for _ in range(3))
    # Without the batch: what has four dimensions travels as channels_last.
    dq, dk, dv = (each[0].cuda() for each in (q, k, v))
    out = torch.empty_like(dq)

    def on_device() -> torch.Tensor:
        attention[(tokens // 64, heads)](dq, dk, dv, out, tokens, size**-0.5, M=64, N=64, SIZE=size)
        return out

    on_cpu = torch.nn.functional.scaled_dot_product_attention
    return agreeing("attention, 1024, float16", lambda: on_cpu(q, k, v)[0], on_device, 2e-3)


def agreeing(name: str, reference: Callable[[], torch.Tensor], device: Callable[[], torch.Tensor], near: float) -> Work:
    """Return the work, once both sides have given the same values, within ``near`` of each and of 1."""
    torch.testing.assert_close(device().cpu(), reference(), rtol=near, atol=near)
    return name, reference, device


def works() -> List[Work]:
    """Return name, work on the CPU and work on the device."""
    count, rows, columns, size = 1 << 22, 4096, 1024, 1024
    x, y = torch.rand(count), torch.rand(count)
    z = torch.empty(count)
    dx, dy, dz = x.cuda(), y.cuda(), z.cuda()
    table = torch.randn(rows, columns)
    device, out = table.cuda(), torch.empty(rows, columns, device="cuda")
    weight, bias = torch.ones(columns), torch.zeros(columns)
    dweight, dbias = weight.cuda(), bias.cuda()
    result: List[Work] = [
        ("add, 4 M fp32", lambda: torch.add(x, y, out=z), lambda: add[(count // 1024,)](dx, dy, dz, count, BLOCK=1024)),
        (
            "softmax, 4096 x 1024",
            lambda: torch.softmax(table, 1),
            lambda: softmax[(rows,)](device, out, columns, BLOCK=1024),
        ),
        (
            "layer norm, 4096 x 1024",
            lambda: torch.nn.functional.layer_norm(table, (columns,), weight, bias),
            lambda: layer_norm[(rows,)](device, dweight, dbias, out, columns, 1e-5, BLOCK=1024),
        ),
    ]
    result += [rotary_work(), attention_work()]
    for dtype in (torch.float32, torch.bfloat16):
        a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
        da, db, dc = a.cuda(), b.cuda(), torch.empty(size, size, dtype=dtype, device="cuda")
        result.append(
            (
                f"matmul, 1024, {str(dtype)[6:]}",
                lambda a=a, b=b: a @ b,
                lambda da=da, db=db, dc=dc: matmul[(size // 64, size // 64)](da, db, dc, size, M=64, N=64, K=32),
            )
        )
    return result


def launch_seconds() -> List[float]:
    """Return what one launch of a kernel over 64 elements takes of the thread's time, in five series."""
    x = torch.rand(64, device="cuda")
    add[(1,)](x, x, x, 64, BLOCK=64)
    series = []
    for _ in range(5):
        start = time.thread_time()
        for _ in range(LAUNCHES):
            add[(1,)](x, x, x, 64, BLOCK=64)
        series.append((time.thread_time() - start) / LAUNCHES)
    return series


def compile_seconds(folder: str) -> float:
    """Return the seconds of a first launch in a process of its own, with this folder as Triton's cache."""
    command = [sys.executable, __file__, FIRST_LAUNCH]
    done = subprocess.run(command, env={**os.environ, "TRITON_CACHE_DIR": folder}, stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def first_launch() -> None:
    """Print the seconds from a kernel's first call to its end; the driver and the device are there already."""
    x = torch.rand(1024, device="cuda")
    add[(1,)](x, x, x, 1000, BLOCK=1024)
    start = time.perf_counter()
    softmax[(1,)](x, x, 1000, BLOCK=1024)
    print(time.perf_counter() - start)


def of_goal(name: str, taken: List[float], goal: float) -> Ratio:
    """Return the median of ``taken`` seconds in units of ``goal``."""
    return Ratio(TIMES, name, statistics.median(taken) / goal, min(taken) / goal, max(taken) / goal, goal)


def main() -> None:
    """Print the table."""
    if FIRST_LAUNCH in sys.argv:
        first_launch()
        return
    arguments = parser(__doc__).parse_args()
    print(f"triton {triton.__version__}")
    table = Table(arguments)
    for name, reference, device in works():
        table.add(compare(KERNELS, name, reference, device, calls=3, rounds=arguments.rounds))
    table.add(of_goal("launch from Python", launch_seconds(), LAUNCH_GOAL))
    cold, warm = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(compile_seconds(folder))
            warm.append(compile_seconds(folder))
    table.add(of_goal("softmax compiled", cold, COLD_GOAL))
    table.add(of_goal("softmax from the cache", warm, CACHED_GOAL))
    table.close([KERNELS])


if __name__ == "__main__":
    main()
