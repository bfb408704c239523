"""Captures of kernels that no operator launches, among operators: Triton's, and compiled programs."""

from __future__ import annotations

from typing import Callable

import pytest
import torch
from torch.nn import functional as F

triton = pytest.importorskip("triton", reason="needs the triton wheel")

import triton.language as tl  # noqa: E402


@triton.jit
def double(source, target, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(target + at, tl.load(source + at) * 2)


def test_an_input_that_only_a_kernel_reads_may_be_given_up_during_the_capture() -> None:
    """Operators write into its memory, here and at each launch; the first launch reads it before."""
    wanted = torch.rand(1024)
    first, graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        given = torch.zeros(1024, device="cuda")
    double[(1,)](given, torch.empty_like(given), N=1024)
    given.copy_(wanted)
    with torch.cuda.graph(graph, pool=first.pool()):
        doubled = torch.empty_like(given)
        double[(1,)](given, doubled, N=1024)
        del given
        results = [doubled + number for number in range(4)]
    torch.cuda.synchronize()
    graph.replay()
    for number, result in enumerate(results):
        torch.testing.assert_close(result.cpu(), wanted * 2 + number)


def test_an_operator_may_use_what_a_kernel_of_the_capture_has_numbered(fast_parts: str) -> None:
    """The kernel has not run when the operator does for the capture."""
    if "ALLOCATOR" not in fast_parts:
        pytest.skip("built without MACATORCH_FAST_ALLOCATOR, which tells captures of a program's memory")
    table, numbers = torch.rand(64, 4, device="cuda"), torch.arange(32, device="cuda")
    double[(1,)](numbers, torch.empty_like(numbers), N=32)
    half = torch.zeros(2, 64, device="cuda")
    half[:, [3, 5, 8]] = 0.5
    double[(1,)](half, torch.empty_like(half), N=128)
    junk = torch.full((1 << 20,), -7, device="cuda")
    first, graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        junk = junk + 1
    first.replay()
    del junk
    with torch.cuda.graph(graph, pool=first.pool()):
        doubled = torch.empty_like(numbers)
        double[(1,)](numbers, doubled, N=32)
        found = F.embedding_bag(doubled, table, offsets=torch.zeros(1, dtype=torch.int64, device="cuda"))
        rows = table.index_select(0, doubled)
        chances = torch.empty(2, 64, device="cuda")
        double[(1,)](half, chances, N=128)
        drawn = torch.multinomial(chances, 3)
    graph.replay()
    torch.testing.assert_close(rows, table[::2])
    torch.testing.assert_close(found, table[::2].mean(0, keepdim=True))
    assert all(sorted(row) == [3, 5, 8] for row in drawn.tolist())


@pytest.mark.filterwarnings("ignore")
def test_compiled_decoding_with_graphs_is_eager_decoding() -> None:
    """A cache at a fixed address, an input that a kernel reads, and attention, which is an operator."""
    table = torch.randn(50, 32, device="cuda")
    positions = torch.arange(16, device="cuda")

    def step(token: torch.Tensor, cache: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        place = torch.arange(1, device="cuda") + length
        length.add_(1)
        query = F.embedding(token, table).view(2, 1, 2, 16).transpose(1, 2)
        cache.index_copy_(2, place, query)
        found = F.scaled_dot_product_attention(query, cache, cache, attn_mask=positions < length)
        return found.transpose(1, 2).reshape(2, 1, 32) @ table.t()

    def decode(function: Callable[..., torch.Tensor]) -> torch.Tensor:
        cache, length = torch.zeros(2, 2, 16, 16, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
        for tensor in (cache, length, table):
            torch._dynamo.mark_static_address(tensor)
        token, all_logits = torch.tensor([[3], [7]], device="cuda"), []
        for _ in range(6):
            torch.compiler.cudagraph_mark_step_begin()
            logits = function(token, cache, length).clone()
            token = (logits[:, -1].argmax(-1, keepdim=True) * 7 + 3) % 50
            all_logits.append(logits)
        return torch.stack(all_logits)

    with torch.no_grad():
        wanted = decode(step)
        compiled = torch.compile(step, mode="reduce-overhead", fullgraph=True)
        for _ in range(2):
            torch.testing.assert_close(decode(compiled), wanted)
