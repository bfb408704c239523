"""Kernels in Triton on the device beside the same work of torch's own on the CPU, launches and compilations.

    python tests/benchmarks/triton_kernels.py [rounds]

Prints ratios of seconds (below 1: the device is faster), then microseconds of one launch of a small kernel, and the
time of a compilation, cold and from Triton's cache. docs/triton.md says how such kernels become machine code.
"""

import os
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, List, Tuple

import torch
import triton
import triton.language as tl
from _measure import compare

LAUNCHES = 5000
FIRST_LAUNCH = "--first-launch"


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


def works() -> List[Tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Return name, work on the CPU and work on the device."""
    count, rows, columns, size = 1 << 22, 4096, 1024, 1024
    x, y = torch.rand(count), torch.rand(count)
    z = torch.empty(count)
    dx, dy, dz = x.cuda(), y.cuda(), z.cuda()
    table = torch.randn(rows, columns)
    device, out = table.cuda(), torch.empty(rows, columns, device="cuda")
    weight, bias = torch.ones(columns), torch.zeros(columns)
    dweight, dbias = weight.cuda(), bias.cuda()
    result = [
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


def launch_microseconds() -> float:
    """Return what one launch of a kernel over 64 elements takes of the thread's time: the best of five series."""
    x = torch.rand(64, device="cuda")
    add[(1,)](x, x, x, 64, BLOCK=64)
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        for _ in range(LAUNCHES):
            add[(1,)](x, x, x, 64, BLOCK=64)
        best = min(best, (time.thread_time() - start) / LAUNCHES)
    return best * 1e6


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


def main() -> None:
    """Print the table."""
    if FIRST_LAUNCH in sys.argv:
        first_launch()
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"triton {triton.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'work':24} ratio  (spread)      CPU, us")
    for name, reference, device in works():
        print(compare("triton", name, reference, device, calls=3, rounds=rounds).line(), flush=True)
    print(f"launch of a small kernel: {launch_microseconds():.1f} us")
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = compile_seconds(folder), compile_seconds(folder)
    print(f"compilation of softmax: {cold:.2f} s, from the cache {warm * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
