"""Where attention on CUDA differs from the CPU: what has no kernel, masks, warnings, rounding."""

from __future__ import annotations

import pytest
import release_facts
import torch

UNASKED = not release_facts.has("attention_of_cudnn_is_chosen")

# A backend, and what it cannot do: dtype, width of a head, a mask.
IMPOSSIBLE = [
    ("FLASH_ATTENTION", torch.float64, 8, False),
    ("FLASH_ATTENTION", torch.float32, 8, False),
    ("FLASH_ATTENTION", torch.float16, 264, False),
    ("FLASH_ATTENTION", torch.float16, 8, True),
    ("EFFICIENT_ATTENTION", torch.float64, 8, False),
    ("CUDNN_ATTENTION", torch.float32, 8, False),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("backend", "dtype", "width", "masked"), IMPOSSIBLE, ids=str)
def test_an_impossible_choice_of_attention_has_no_kernel(
    backend: str, dtype: torch.dtype, width: int, masked: bool
) -> None:
    if backend == "CUDNN_ATTENTION":
        release_facts.need("attention_of_cudnn")
    q = torch.ones(1, 2, 4, width, device="cuda", dtype=dtype)
    mask = torch.zeros(4, 4, device="cuda", dtype=dtype) if masked else None
    attention = torch.nn.functional.scaled_dot_product_attention
    with release_facts.attention_by(backend), pytest.raises(RuntimeError, match="^No available kernel"):
        attention(q, q, q, attn_mask=mask)
    with release_facts.attention_by("MATH"):
        torch.testing.assert_close(attention(q, q, q, attn_mask=mask), q)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(("queries", "keys"), [(3, 5), (5, 3)])
def test_flash_attentions_last_query_stands_at_the_last_key(queries: int, keys: int, dropout: float) -> None:
    torch.manual_seed(0)
    shapes = [(2, 4, queries, 16), (2, 4, keys, 16), (2, 4, keys, 16)]
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16, requires_grad=True) for shape in shapes)
    seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    result = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout, True, dropout > 0)
    output, logsumexp = result[:2]
    double = [x.detach().cpu().double().requires_grad_() for x in (q, k, v)]
    scores = (double[0] @ double[1].mT / 4).masked_fill(~seen, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0)
    if dropout:
        weights = torch.where(result[8].cpu()[..., :queries, :keys] > 0, weights / (1 - dropout), 0.0)
    want = weights @ double[2]
    torch.testing.assert_close(output.cpu().double(), want, atol=2e-3, rtol=2e-3)
    want_sum = scores.logsumexp(-1).masked_fill(~seen.any(1), torch.inf).float()
    torch.testing.assert_close(logsumexp.cpu(), want_sum, atol=1e-4, rtol=1e-4)
    if queries > keys:  # NaN in the gradient of a softmax over nothing: the formula's, not the kernel's
        return
    grad = torch.randn(want.shape, dtype=torch.double)
    for got, wanted in zip(
        torch.autograd.grad(output, (q, k, v), grad.half().cuda()),
        torch.autograd.grad(want, double, grad.half().double()),
    ):
        torch.testing.assert_close(got.cpu().double(), wanted, atol=4e-3, rtol=4e-3)


@release_facts.wants("attention_backends_by_name")
@pytest.mark.parametrize("width", [15, 16])
def test_a_causal_bias_may_be_aligned_at_the_end(width: int) -> None:
    from torch.nn.attention.bias import causal_lower_right

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, length, width, device="cuda", dtype=torch.float16) for length in (5, 9, 9))
    attention = torch.nn.functional.scaled_dot_product_attention
    mask = torch.ones(5, 9, dtype=torch.bool).tril(4)
    want = attention(q.float().cpu(), k.float().cpu(), v.float().cpu(), attn_mask=mask)
    got = attention(q, k, v, attn_mask=causal_lower_right(5, 9))
    torch.testing.assert_close(got.float().cpu(), want, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("form", ["flash", "efficient", "cudnn"])
@pytest.mark.parametrize(("batch", "length", "width"), [(1, 3, 8), (2, 4, 8), (2, 3, 16)])
def test_a_form_of_attention_broadcasts_nothing(form: str, batch: int, length: int, width: int) -> None:
    if form == "cudnn":
        release_facts.need("attention_of_cudnn")
    q = torch.ones(2, 4, 3, 8, device="cuda", dtype=torch.float16)
    k = torch.ones(batch, 4, 3, width, device="cuda", dtype=torch.float16)
    v = torch.ones(batch, 4, length, width, device="cuda", dtype=torch.float16)
    attention = getattr(torch.ops.aten, f"_scaled_dot_product_{form}_attention")
    with pytest.raises(RuntimeError, match="broadcasts nothing"):
        attention(q, k, v, *(() if form == "flash" or form == "cudnn" and UNASKED else (None, False)))


@release_facts.wants("attention_of_cudnn_is_chosen")
def test_results_of_cudnns_attention_have_the_shapes_that_compiled_programs_expect() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    attention = torch.ops.aten._scaled_dot_product_cudnn_attention
    q, k = (torch.ones(2, 4, length, 64, device="cuda", dtype=torch.float16) for length in (6, 9))
    with FakeTensorMode() as mode:
        expected = attention(mode.from_tensor(q), mode.from_tensor(k), mode.from_tensor(k), None, True)
    results = attention(q, k, k, None, True)
    assert [getattr(result, "shape", result) for result in results[:2]] == [result.shape for result in expected[:2]]
    assert results[1].dtype == expected[1].dtype and results[1].unique().numel() == 1


@release_facts.wants("attention_of_cudnn_is_chosen")
def test_cudnns_attention_may_have_more_heads_of_keys_than_of_values() -> None:
    torch.manual_seed(0)
    operands = [torch.randn(2, heads, 6, 64, device="cuda", dtype=torch.float16) for heads in (8, 4, 2)]
    for operand in operands:
        operand.requires_grad_()
    with release_facts.attention_by("CUDNN_ATTENTION"):
        output = torch.nn.functional.scaled_dot_product_attention(*operands, is_causal=True, enable_gqa=True)
    double = [operand.detach().cpu().double().requires_grad_() for operand in operands]
    repeated = [x.repeat_interleave(8 // x.size(1), 1) for x in double]
    want = torch.nn.functional.scaled_dot_product_attention(*repeated, is_causal=True)
    torch.testing.assert_close(output.cpu().double(), want, atol=2e-3, rtol=2e-3)
    grad = torch.randn(want.shape).half()
    got = torch.autograd.grad(output, operands, grad.cuda())
    for one, wanted in zip(got, torch.autograd.grad(want, double, grad.double())):
        torch.testing.assert_close(one.cpu().double(), wanted, atol=8e-3, rtol=4e-3)
    for form in ("flash", "efficient"):
        with pytest.raises(RuntimeError, match="must be a multiple"):
            getattr(torch.ops.aten, f"_scaled_dot_product_{form}_attention")(
                *operands, *([None, False] * (form[0] == "e"))
            )


@release_facts.wants("efficient_attention_checks_its_bias")
def test_memory_efficient_attention_refuses_what_cuda_does() -> None:
    q = torch.ones(2, 2, 8, 16, device="cuda", dtype=torch.float16)
    output, sums, seed, offset = torch.ops.aten._scaled_dot_product_efficient_attention(q, q, q, None, True)
    backward = torch.ops.aten._scaled_dot_product_efficient_attention_backward
    saved = (q, q, q, None, output, sums, seed, offset, 0.0)
    with pytest.raises(RuntimeError, match="^bias_requires_grad is true but no bias was provided"):
        backward(output, *saved, (True, True, True, True))
    assert backward(output, *saved, (True, True, True, False))[3] is None


def test_the_fast_path_of_attention_computes_scores_of_halves_in_float() -> None:
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(96, 16, batch_first=True, device="cuda", dtype=torch.float16).eval()
    x = torch.randn(2, 8, 96, device="cuda", dtype=torch.float16) * 238
    with torch.no_grad():
        output, weights = attention(x, x, x)
        want, want_weights = attention.double()(x.double(), x.double(), x.double())
    assert output.dtype == weights.dtype == torch.float16 and output.isfinite().all()
    torch.testing.assert_close(output.double(), want, atol=0.1, rtol=2e-3)
    torch.testing.assert_close(weights.double(), want_weights, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        ("FLASH_ATTENTION", "Flash Attention"),
        ("EFFICIENT_ATTENTION", "Memory Efficient attention"),
        ("CUDNN_ATTENTION", "cuDNN Attention"),
    ],
)
def test_gradients_of_attention_warn_of_their_order(backend: str, name: str) -> None:
    if backend == "CUDNN_ATTENTION" and UNASKED:
        pytest.skip("chosen where TORCH_CUDNN_SDPA_ENABLED is set alone")
    x = torch.ones(1, 2, 8, 64, device="cuda", dtype=torch.float16, requires_grad=True)
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # it is said once a process
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with release_facts.attention_by(backend):
            y = torch.nn.functional.scaled_dot_product_attention(x, x, x)
            with pytest.warns(UserWarning, match=f"{name} defaults to a non-deterministic algorithm"):
                y.sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_warn_always(always)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_a_product_with_an_activation_has_the_tanh_form_of_gelu(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(2)
    bias, left, right = (torch.randn(shape, generator=generator).to(dtype) for shape in ((6,), (4, 8), (8, 6)))
    product = torch.addmm(bias.double(), left.double(), right.double(), alpha=2)
    given = (bias.cuda(), left.cuda(), right.cuda())
    gelu = torch.nn.functional.gelu(product, approximate="tanh")
    tolerance = {"atol": 2e-6, "rtol": 1e-3 if dtype == torch.float16 else 1e-5}
    for want, flag in ((gelu, True), (product.relu(), False)):
        got = torch._addmm_activation(*given, alpha=2, use_gelu=flag)
        assert got.dtype == dtype
        torch.testing.assert_close(got.cpu().double(), want, **tolerance)
        out = torch.empty(0, dtype=dtype, device="cuda")
        torch._addmm_activation(*given, alpha=2, use_gelu=flag, out=out)
        assert torch.equal(out, got)
    with pytest.raises(RuntimeError, match="dtype"):
        torch._addmm_activation(bias.cuda(), left.cuda(), right.to(torch.bfloat16).cuda(), use_gelu=True)


def test_an_encoder_layer_without_gradients_computes_the_tanh_form_too() -> None:
    torch.manual_seed(4)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu").eval()
    x = torch.randn(2, 5, 16)
    exact = layer(x)
    layer.activation = lambda y: torch.nn.functional.gelu(y, approximate="tanh")
    tanh = layer(x)
    with torch.no_grad():
        fused = layer.cuda()(x.cuda()).cpu()
        ragged = torch.nested.nested_tensor([x[0], x[1, :3]], device="cuda")
        nested = layer(ragged).unbind()
    assert (fused - tanh).abs().max() < 2e-6 < 2e-5 < (fused - exact).abs().max()
    torch.testing.assert_close(nested[0].cpu(), tanh[0], atol=2e-6, rtol=0)
