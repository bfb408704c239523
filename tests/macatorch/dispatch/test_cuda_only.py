"""Operators that upstream computes on CUDA only, one by one; attention and matrix products have files of their own."""

from __future__ import annotations

import pytest
import release_facts
import torch

try:
    from torch.func import _random as random
except ImportError:
    random = None

aten = torch.ops.aten
STATELESS = pytest.mark.skipif(random is None, reason="torch 2.12 and later")


def test_ctc_loss_in_cudnns_form_has_its_gradient() -> None:
    torch.manual_seed(0)
    logits = torch.randn(8, 2, 5, requires_grad=True)
    log_probs = logits.log_softmax(-1)
    targets, lengths = torch.tensor([1, 2, 3, 1, 1], dtype=torch.int32), [3, 2]
    steps = torch.tensor([8, 7])
    want = torch.nn.functional.ctc_loss(log_probs, targets, steps, torch.tensor(lengths), reduction="none")
    (want_grad,) = torch.autograd.grad(want.sum(), logits)
    leaf = logits.detach().cuda().requires_grad_()
    got, raw = aten._cudnn_ctc_loss(leaf.log_softmax(-1), targets, [8, 7], lengths, 0, False, False)
    torch.testing.assert_close(got.detach().cpu(), want.detach())
    (grad,) = torch.autograd.grad(got.sum(), leaf)
    torch.testing.assert_close(grad.cpu(), want_grad, rtol=1e-4, atol=1e-5)
    by_tensor = aten._cudnn_ctc_loss.Tensor(
        leaf.detach().log_softmax(-1), targets, torch.tensor([8, 7]), torch.tensor(lengths), 0, False, False
    )
    assert torch.equal(by_tensor[0], got.detach())


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_bsr], ids=str)
def test_batches_of_compressed_sparse_matrices_multiply(layout: torch.layout) -> None:
    torch.manual_seed(0)
    a = torch.randn(2, 4, 6) * (torch.arange(6) % 3 > 0)
    b, c = torch.randn(2, 6, 4), torch.randn(2, 4, 4)
    options = {"blocksize": (2, 2)} if layout == torch.sparse_bsr else {}
    sparse = a.cuda().contiguous().to_sparse(layout=layout, **options)
    torch.testing.assert_close(torch.bmm(sparse, b.cuda()).cpu(), torch.bmm(a, b))
    out = torch.empty(0, device="cuda")
    torch.baddbmm(c.cuda(), sparse, b.cuda(), beta=2, alpha=3, out=out)
    torch.testing.assert_close(out.cpu(), torch.baddbmm(c, a, b, beta=2, alpha=3))


@pytest.mark.skipif(not hasattr(aten.cudnn_batch_norm, "out"), reason="not in this release")
def test_cudnn_batch_norm_writes_where_it_is_told() -> None:
    torch.manual_seed(0)
    x, w, b = (torch.randn(s, device="cuda") for s in ((4, 3, 5), (3,), (3,)))
    want = aten.cudnn_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)
    outs = [torch.empty(0, device="cuda", dtype=t.dtype) for t in want]
    named = {f"out{i}": out for i, out in enumerate(outs)}
    got = aten.cudnn_batch_norm.out(x, w, b, None, None, True, 0.1, 1e-5, **named)
    for a, b, c in zip(got, outs, want):
        assert a is b and torch.equal(a, c)


def test_kaiser_window_needs_no_compiler() -> None:
    got = torch.kaiser_window(9, device="cuda")
    assert got.is_cuda and torch.equal(got.cpu(), torch.kaiser_window(9))


def test_flash_attentions_debug_mask_has_a_minus_where_dropout_dropped() -> None:
    query, key, value = (torch.randn(2, 3, length, 8, device="cuda").half() for length in (5, 130, 130))
    found = aten._scaled_dot_product_flash_attention(query, key, value, 0.3, return_debug_mask=True)
    output, mask = found[0], found[8]
    assert mask.shape == (2, 3, 128, 256) and mask.dtype == torch.half, "lengths are rounded up to 128"
    mask = mask[:, :, :5, :130].float()
    wanted = torch.softmax(query.float() @ key.float().mT / 8**0.5, -1)
    torch.testing.assert_close(mask.abs(), wanted, atol=1e-3, rtol=1e-3)
    kept = torch.where(mask < 0, 0, wanted) / 0.7
    assert 0.25 < (mask < 0).float().mean() < 0.35
    torch.testing.assert_close(kept @ value.float(), output.float(), atol=2e-3, rtol=2e-3)
    with pytest.raises(RuntimeError, match="only supported when p_dropout > 0"):
        aten._scaled_dot_product_flash_attention(query, key, value, 0.0, return_debug_mask=True)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("backend", ["FLASH_ATTENTION", "EFFICIENT_ATTENTION"])
def test_gradients_of_attention_have_the_strides_of_cudas_kernels(backend: str, dropout: float) -> None:
    tensors = [torch.randn(2, 3, length, 8, device="cuda").half().contiguous() for length in (5, 6, 6)]
    tensors = [tensor.requires_grad_() for tensor in tensors]
    with release_facts.attention_by(backend):
        output = torch.nn.functional.scaled_dot_product_attention(*tensors, dropout_p=dropout)
    for tensor, grad in zip(tensors, torch.autograd.grad(output.sum(), tensors)):
        heads_first, heads_next = tensor.stride(), tensor.transpose(1, 2).contiguous().transpose(1, 2).stride()
        as_given = backend == "FLASH_ATTENTION" and release_facts.has("flash_gradients_lie_as_operands")
        assert grad.stride() == (heads_first if as_given else heads_next)


def test_flash_attentions_debug_mask_of_sequences_of_several_lengths() -> None:
    lengths, key_lengths = (3, 9), (7, 130)
    starts, key_starts = (torch.tensor(s, dtype=torch.int32, device="cuda") for s in ((0, 3, 12), (0, 7, 137)))
    query, key, value = (torch.randn(n, 2, 8, device="cuda").half() for n in (12, 137, 137))
    dropout = 0.3
    output, _, _, _, mask = aten._flash_attention_forward(
        query, key, value, starts, key_starts, 9, 130, dropout, False, True
    )
    assert mask.shape == (2, 2, 128, 256) and mask.dtype == torch.half, "lengths are rounded up to 128"
    at, key_at = 0, 0
    for i, (n, m) in enumerate(zip(lengths, key_lengths)):
        q, k, v = query[at : at + n], key[key_at : key_at + m], value[key_at : key_at + m]
        q, k, v = (t.float().transpose(0, 1) for t in (q, k, v))
        wanted = torch.softmax(q @ k.mT / 8**0.5, -1)
        found = mask[i, :, :n, :m].float()
        torch.testing.assert_close(found.abs(), wanted, atol=1e-3, rtol=1e-3)
        assert not mask[i, :, n:].any() and not mask[i, :, :, m:].any()
        kept = torch.where(found < 0, 0, wanted) / (1 - dropout)
        torch.testing.assert_close((kept @ v).transpose(0, 1), output[at : at + n].float(), atol=2e-3, rtol=2e-3)
        at, key_at = at + n, key_at + m
    with pytest.raises(RuntimeError, match="only supported when p_dropout > 0"):
        aten._flash_attention_forward(query, key, value, starts, key_starts, 9, 130, 0.0, False, True)


@STATELESS
def test_stateless_numbers_are_a_function_of_their_key() -> None:
    key = random.key(42, device="cuda")
    a, b = (random.normal_(key, torch.empty(1000, device="cuda")) for _ in range(2))
    assert torch.equal(a, b)
    keys = random.split(key, 3)
    assert keys.shape == (3, 2) and len({tuple(k.tolist()) for k in keys}) == 3
    for i, part in enumerate(keys):
        assert torch.equal(random.fold_in(key, i), part)
        assert not torch.equal(random.normal_(part, torch.empty(1000, device="cuda")), a)


@STATELESS
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_stateless_numbers_have_their_distribution(dtype: torch.dtype) -> None:
    key = random.key(7, device="cuda")
    x = random.normal_(key, torch.empty(100_000, device="cuda", dtype=dtype), mean=2.0, std=3.0).double()
    assert abs(x.mean().item() - 2) < 0.05 and abs(x.std().item() - 3) < 0.05
    u = random.uniform_(key, torch.empty(100_000, device="cuda", dtype=dtype), low=-1.0, high=3.0).double()
    assert u.min() >= -1 and u.max() <= 3
    assert abs(u.mean().item() - 1) < 0.02 and abs(u.std().item() - 4 / 12**0.5) < 0.02


@STATELESS
def test_batched_keys_fill_their_own_parts() -> None:
    keys = random.split(random.key(1, device="cuda"), 4)
    whole = random.uniform_(keys.view(4, 1, 2), torch.empty(4, 5, device="cuda"))
    for key, row in zip(keys, whole):
        assert torch.equal(random.uniform_(key, torch.empty(5, device="cuda")), row)


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluating"])
@pytest.mark.parametrize("of_gradient", ["contiguous", "channels-last", "of a transposed view"])
@pytest.mark.parametrize("of_input", ["contiguous", "channels-last", "of a transposed view"])
def test_batch_norm_of_a_batch_of_one_has_the_gradient_of_its_values(
    of_input: str, of_gradient: str, training: bool
) -> None:
    """Upstream's CPU kernel has not, where input and gradient differ in strides that mean nothing in a batch of one."""
    torch.manual_seed(0)
    channels, size = 8, 4

    def laid_out(value: torch.Tensor, strides: str) -> torch.Tensor:
        if strides == "contiguous":
            return value.cuda(memory_format=torch.contiguous_format)
        value = value.cuda(memory_format=torch.channels_last)
        rows = (channels, 1, size * channels, channels)
        return value if strides == "channels-last" else value.as_strided(value.shape, rows)

    x, grad = torch.randn(2, 1, channels, size, size, dtype=torch.double).unbind()
    weight, mean = torch.randn(2, channels, dtype=torch.double).unbind()
    var = torch.rand(channels, dtype=torch.double) + 0.5

    def run(x: torch.Tensor, grad: torch.Tensor, *others: torch.Tensor) -> tuple:
        weight, mean, var = (other.clone() for other in others)
        leaves = (x.detach().requires_grad_(), weight.requires_grad_(), torch.zeros_like(weight).requires_grad_())
        y = torch.nn.functional.batch_norm(leaves[0], mean, var, *leaves[1:], training)
        return torch.autograd.grad(y, leaves, grad)

    want = run(x.reshape(1, channels, -1), grad.reshape(1, channels, -1), weight, mean, var)
    got = run(
        laid_out(x.float(), of_input),
        laid_out(grad.float(), of_gradient),
        *(v.float().cuda() for v in (weight, mean, var)),
    )
    for value, right in zip(got, want):
        torch.testing.assert_close(value.cpu(), right.float().reshape(value.shape), rtol=1e-4, atol=1e-4)
