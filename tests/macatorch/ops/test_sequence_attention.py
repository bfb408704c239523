"""The attention forms that libraries call by name: packed sequences, masks by position, grouped heads, dropout."""

from __future__ import annotations

import math
from typing import List, Optional

import pytest
import release_facts
import torch

aten = torch.ops.aten
QUERIES, KEYS = [3, 0, 7], [5, 4, 7]
# Flash attention has halves only; it accumulates in float and rounds its output once.
ONE_ROUNDING = {"rtol": 1e-3, "atol": 1e-5}


def cumulative(lengths: List[int]) -> torch.Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int().cuda()


def allowed(queries: int, keys: int, left: Optional[int], right: Optional[int], at_end: bool = True) -> torch.Tensor:
    distance = torch.arange(keys)[None] - (torch.arange(queries) + (keys - queries if at_end else 0))[:, None]
    mask = torch.ones(queries, keys, dtype=torch.bool)
    if left is not None:
        mask &= distance >= -left
    if right is not None:
        mask &= distance <= right
    return mask


def reference(q, k, v, mask, bias=None, scale=None):
    """softmax(q k^T) v of one sequence, (L, H, E); heads of k and v are repeated; a row without keys is zero."""
    q, k, v = (t.transpose(0, 1) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.size(0) // t.size(0), 0) for t in (k, v))
    scores = q @ k.transpose(1, 2) * (scale if scale is not None else 1 / math.sqrt(q.size(-1)))
    if bias is not None:
        scores = scores + bias
    scores = scores.masked_fill(~mask, -math.inf)
    return torch.nan_to_num(scores.softmax(-1)).matmul(v).transpose(0, 1), scores.logsumexp(-1)


def halves(*shape: int) -> torch.Tensor:
    """Random numbers in float that a half holds."""
    return torch.randn(shape).half().float()


def packed(heads: int = 4, key_heads: int = 2, size: int = 8):
    torch.manual_seed(0)
    q = halves(sum(QUERIES), heads, size).requires_grad_()
    k, v = (halves(sum(KEYS), key_heads, size).requires_grad_() for _ in range(2))
    return q, k, v


def expected(q, k, v, mask_of, **options):
    pieces = zip(q.split(QUERIES), k.split(KEYS), v.split(KEYS))
    return [reference(a, b, c, mask_of(len(a), len(b)), **options) for a, b, c in pieces]


@release_facts.wants("attention_of_packed_sequences")
@pytest.mark.parametrize("window", [(None, None), (None, 0), (2, 1), (1, 0)], ids=str)
def test_flash_of_packed_sequences_and_its_gradient(window) -> None:
    left, right = window
    q, k, v = packed()
    want = expected(q, k, v, lambda a, b: allowed(a, b, left, right), scale=0.3)
    out = torch.cat([o for o, _ in want])
    grad = halves(*out.shape)
    want_grads = torch.autograd.grad(out, (q, k, v), grad)
    causal = right == 0
    given = [t.detach().half().cuda() for t in (q, k, v)]
    lengths = (cumulative(QUERIES), cumulative(KEYS), max(QUERIES), max(KEYS))
    options = {"scale": 0.3, "window_size_left": left, "window_size_right": right}
    got, logsumexp, first, second, _ = aten._flash_attention_forward(*given, *lengths, 0.0, causal, False, **options)
    torch.testing.assert_close(got.cpu(), out.detach().half(), **ONE_ROUNDING)
    rows = logsumexp if logsumexp.dim() == 2 else torch.cat([r[:, :n] for r, n in zip(logsumexp, QUERIES)], 1)
    wanted_rows = torch.cat([r for _, r in want], 1).detach()
    torch.testing.assert_close(
        rows.cpu(), wanted_rows.masked_fill(wanted_rows.isneginf(), math.inf), rtol=1e-5, atol=1e-5
    )
    grads = aten._flash_attention_backward(
        grad.half().cuda(), *given, got, logsumexp, *lengths, 0.0, causal, first, second, **options
    )
    for a, b in zip(grads, want_grads):
        torch.testing.assert_close(a.cpu().float(), b, rtol=2e-3, atol=2e-3)


@release_facts.wants("attention_of_packed_sequences")
def test_flash_of_dense_batches_takes_used_lengths_and_slopes() -> None:
    torch.manual_seed(0)
    q, k, v = (halves(2, 4, 3, 8) for _ in range(3))
    slopes = torch.tensor([0.5, 0.25, 0.125])
    used = torch.tensor([3, 4])
    got = aten._flash_attention_forward(
        *(t.half().cuda() for t in (q, k, v)), None, None, 4, 4, 0.0, False, False,
        seqused_k=used.int().cuda(), alibi_slopes=slopes.cuda(),
    )[0]  # fmt: skip
    for i, keys in enumerate(used.tolist()):
        distance = (torch.arange(keys)[None] - (torch.arange(4) + keys - 4)[:, None]).abs()
        bias = -slopes[:, None, None] * distance
        want, _ = reference(q[i], k[i, :keys], v[i, :keys], allowed(4, keys, None, None), bias=bias)
        torch.testing.assert_close(got[i].cpu(), want.half(), **ONE_ROUNDING)


def test_dropout_of_packed_sequences_repeats_in_the_backward_pass() -> None:
    q, k, v = (t.detach().half().cuda() for t in packed())
    lengths = (cumulative(QUERIES), cumulative(KEYS), max(QUERIES), max(KEYS))
    eye = torch.zeros_like(v)
    torch.cuda.manual_seed(3)
    out, logsumexp, first, second, _ = aten._flash_attention_forward(q, k, v, *lengths, 0.5, False, False)
    torch.cuda.manual_seed(3)
    assert torch.equal(out, aten._flash_attention_forward(q, k, v, *lengths, 0.5, False, False)[0])
    assert not torch.equal(out, aten._flash_attention_forward(q, k, v, *lengths, 0.5, False, False)[0])
    # The output is linear in v: its gradient along a direction is the output of that direction, with the same mask.
    step = torch.randn_like(v)
    torch.cuda.manual_seed(3)
    moved = aten._flash_attention_forward(q, k, eye + step, *lengths, 0.5, False, False)[0]
    grad = torch.randn_like(out)
    dv = aten._flash_attention_backward(grad, q, k, v, out, logsumexp, *lengths, 0.5, False, first, second)[2]
    sums = [(a.float() * b.float()).sum() for a, b in ((dv, step), (moved, grad))]
    torch.testing.assert_close(*sums, rtol=5e-3, atol=2e-2)


@release_facts.wants("attention_of_packed_sequences")
@pytest.mark.parametrize("mask", [0, 1, 2], ids=["none", "top left", "bottom right"])
@pytest.mark.parametrize("window", [None, 2])
def test_memory_efficient_form_of_packed_sequences_and_its_gradient(mask: int, window: Optional[int]) -> None:
    q, k, v = packed(key_heads=4)
    left = None if window is None or mask == 0 else window - 1
    right = None if mask == 0 else 0
    want = expected(q, k, v, lambda a, b: allowed(a, b, left, right, mask != 1))
    out = torch.cat([o for o, _ in want])
    grad = torch.randn_like(out)
    want_grads = torch.autograd.grad(out, (q, k, v), grad)
    given = [t.detach().cuda()[None] for t in (q, k, v)]
    lengths = (cumulative(QUERIES), cumulative(KEYS), max(QUERIES), max(KEYS))
    options = {} if window is None or mask == 0 else {"window_size": window}
    got, logsumexp, seed, offset, longest, _ = aten._efficient_attention_forward(
        *given, None, *lengths, 0.0, mask, True, **options
    )
    assert longest == max(QUERIES) and logsumexp.shape == (3, 4, 32)
    torch.testing.assert_close(got[0].cpu(), out.detach(), rtol=1e-5, atol=1e-5)
    grads = aten._efficient_attention_backward(
        grad.cuda()[None], *given, None, got, *lengths, logsumexp, 0.0, seed, offset, mask, False, **options
    )
    for a, b in zip(grads, want_grads):
        torch.testing.assert_close(a[0].cpu(), b, rtol=1e-4, atol=1e-5)


@release_facts.wants("attention_of_packed_sequences")
def test_memory_efficient_form_has_the_gradient_of_its_bias() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 5, 3, 8) for _ in range(3))
    bias = torch.randn(2, 3, 5, 5, requires_grad=True)
    want = torch.stack([reference(a, b, c, allowed(5, 5, None, None), bias=d)[0] for a, b, c, d in zip(q, k, v, bias)])
    grad = torch.randn_like(want)
    (want_grad,) = torch.autograd.grad(want, bias, grad)
    given = [t.cuda() for t in (q, k, v)]
    out, logsumexp, seed, offset, longest, keys = aten._efficient_attention_forward(
        *given, bias.detach().cuda(), None, None, None, None, 0.0, 0, True
    )
    grads = aten._efficient_attention_backward(
        grad.cuda(), *given, bias.detach().cuda(), out, None, None, longest, keys, logsumexp, 0.0, seed, offset, 0, True
    )
    torch.testing.assert_close(grads[3].cpu(), want_grad, rtol=1e-4, atol=1e-5)


def test_bias_and_operands_may_have_any_strides() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 5, 8) for _ in range(3))
    bias = torch.randn(2, 3, 5, 5)
    moved = [t.cuda() for t in (q, k, v, bias)]
    assert moved[0].stride(-1) != 1  # they arrive in channels_last
    got = aten._scaled_dot_product_efficient_attention(*moved, True)[0]
    parts = zip(*(t.transpose(1, 2) for t in (q, k, v)), bias)
    want = torch.stack([reference(a, b, c, allowed(5, 5, None, None), bias=d)[0] for a, b, c, d in parts])
    torch.testing.assert_close(got.transpose(1, 2).cpu(), want, rtol=1e-5, atol=1e-5)


@release_facts.wants("attention_of_packed_sequences")
def test_dropout_mask_of_the_memory_efficient_form_is_the_one_it_used() -> None:
    torch.manual_seed(0)
    q, k = (torch.randn(1, 6, 2, 4, device="cuda") for _ in range(2))
    v = torch.eye(6, device="cuda")[None, :, None, :].repeat(1, 1, 2, 1)
    plain = aten._efficient_attention_forward(q, k, v, None, None, None, None, None, 0.0, 0, True)[0]
    out, _, seed, offset, _, _ = aten._efficient_attention_forward(q, k, v, None, None, None, None, None, 0.4, 0, True)
    mask = torch.empty(1, 2, 6, 6, device="cuda")
    aten._fill_mem_eff_dropout_mask_(mask, 0.4, int(seed), int(offset))
    torch.testing.assert_close(out, plain * (mask > 0.4).transpose(1, 2) / 0.6)


@pytest.mark.skipif(
    not any(a.name == "block_table" for a in aten._flash_attention_forward.default._schema.arguments),
    reason="this release has no paged caches",
)
def test_flash_reads_a_paged_cache() -> None:
    torch.manual_seed(0)
    q = halves(sum(QUERIES), 2, 8)
    cache_k, cache_v = (halves(6, 4, 2, 8) for _ in range(2))
    pages = torch.tensor([[5, 1], [0, 0], [2, 4]])
    got = aten._flash_attention_forward(
        *(t.half().cuda() for t in (q, cache_k, cache_v)),
        cumulative(QUERIES), cumulative(KEYS), max(QUERIES), max(KEYS), 0.0,
        False, False, seqused_k=torch.tensor(KEYS).int().cuda(), block_table=pages.int().cuda(),
    )[0]  # fmt: skip
    for part, want_q, row, keys in zip(got.cpu().split(QUERIES), q.split(QUERIES), pages, KEYS):
        k, v = (cache[row].flatten(0, 1)[:keys] for cache in (cache_k, cache_v))
        want, _ = reference(want_q, k, v, allowed(len(want_q), keys, None, None))
        torch.testing.assert_close(part, want.half(), **ONE_ROUNDING)


@release_facts.wants("jagged_layout")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_nested_tensors_attend_as_their_parts(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    parts = [torch.randn(n, 2, 8).to(dtype) for n in (3, 5)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged, device="cuda").transpose(1, 2)
    got = torch.nn.functional.scaled_dot_product_attention(nested, nested, nested).transpose(1, 2)
    for part, out in zip(parts, got.unbind()):
        x = part.float()
        want, _ = reference(x, x, x, allowed(len(x), len(x), None, None))
        torch.testing.assert_close(out.cpu(), want.to(dtype), rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("dtype", "backend"), [(torch.float16, "FLASH_ATTENTION"), (torch.float32, "EFFICIENT_ATTENTION")]
)
def test_a_form_is_chosen_for_nested_tensors_as_on_cuda(dtype: torch.dtype, backend: str) -> None:
    release_facts.need("attention_backends_by_name")
    from torch.nn.attention import SDPBackend

    packed = torch.nested.nested_tensor([torch.ones(n, 3 * 2 * 8, dtype=dtype, device="cuda") for n in (3, 5)])
    q, k, v = (part.view(2, -1, 2, 8).transpose(1, 2) for part in packed.chunk(3, dim=-1))
    assert torch._fused_sdp_choice(q, k, v) == getattr(SDPBackend, backend).value


@release_facts.wants("attention_of_packed_sequences")
def test_signatures_are_those_of_the_release() -> None:
    results = [r.name for r in aten._flash_attention_forward.default._schema.returns]
    out = aten._flash_attention_forward(
        *[torch.ones(1, 2, 1, 8, device="cuda", dtype=torch.half)] * 3, None, None, 2, 2, 0.0, False, False
    )
    if "rng_state" in results:
        assert (out[2].dtype, out[2].shape, out[3].dtype) == (torch.uint64, (2,), torch.uint64)
    else:
        assert (out[2].dtype, out[2].shape, out[3].dtype) == (torch.int64, (), torch.int64)


@release_facts.wants("attention_of_packed_sequences")
def test_the_dense_form_is_laid_out_like_the_query() -> None:
    query = torch.randn(4, 8, 11, 8, device="cuda").bfloat16().transpose(1, 2)
    other = torch.randn(4, 11, 8, 8, device="cuda").bfloat16()
    for given in (query, other):
        out = torch.ops.aten._flash_attention_forward(given, other, other, None, None, 11, 11, 0.0, False, False)[0]
        assert out.stride() == given.stride()


@release_facts.wants("attention_of_packed_sequences")
def test_each_form_refuses_dtypes_in_upstreams_words() -> None:
    def call(form, dtype: torch.dtype, other: torch.dtype) -> None:
        tensors = [torch.ones(1, 2, 1, 8, device="cuda", dtype=d) for d in (dtype, other, dtype)]
        if form is aten._flash_attention_forward:
            form(*tensors, None, None, 2, 2, 0.0, False, False)
        elif form is aten._efficient_attention_forward:
            form(*tensors, None, None, None, None, None, 0.0, 0, True)
        elif form is aten._scaled_dot_product_efficient_attention:
            form(*tensors, None, True)
        else:
            form(*tensors)

    for form in (aten._flash_attention_forward, aten._scaled_dot_product_flash_attention):
        for dtype in (torch.float32, torch.float64):
            with pytest.raises(RuntimeError, match="FlashAttention only support fp16 and bf16 data type"):
                call(form, dtype, dtype)
        with pytest.raises(RuntimeError, match="query and key must have the same dtype"):
            call(form, torch.float16, torch.bfloat16)
    for form in (aten._efficient_attention_forward, aten._scaled_dot_product_efficient_attention):
        with pytest.raises(RuntimeError, match="Only fp32, half & bf16 supported at the moment"):
            call(form, torch.float64, torch.float64)
        with pytest.raises(RuntimeError, match=r"query.scalar_type\(\) == key.scalar_type\(\)"):
            call(form, torch.float32, torch.float16)


@pytest.mark.parametrize("head", [3, 4, 8, 16])
@pytest.mark.parametrize("dtype", [torch.float, torch.half], ids=str)
def test_a_query_that_repeats_memory_is_a_query_like_any_other(head: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(100).cuda().to(dtype)
    key, value = (torch.randn(1, 2, 3, head).cuda().to(dtype) for _ in range(2))
    for strides in ((1, 1, 1, 1), (0, 0, head, 1), (9, 5, 2, 1)):
        query = x.as_strided((1, 2, 5, head), strides)
        got = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        want = torch.nn.functional.scaled_dot_product_attention(query.contiguous(), key, value)
        torch.testing.assert_close(got, want)
