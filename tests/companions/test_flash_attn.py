"""flash_attn, upstream's Python over the extension of ours, computes what attention is, in every form that it has."""

import math

import pytest
import release_facts
import torch

flash_attn = pytest.importorskip("flash_attn")
import flash_attn_2_cuda as extension  # noqa: E402
from attention_reference import (  # noqa: E402
    Options,
    assert_gradients,
    assert_rounded_once,
    attention,
    random_lengths,
    random_options,
    tensors,
)
from flash_attn_2_cuda import attention as blocks  # noqa: E402

HALF = torch.float16


@pytest.fixture
def small_blocks(monkeypatch):
    """Small problems as many blocks."""
    monkeypatch.setattr(blocks, "BLOCK_SCORES", 2048)


def leaves(values):
    return [x.detach().double().requires_grad_() for x in values]


def expected(options, values, grad, slopes, **more):
    """Output, logsumexp and gradients of a batch (B, L, H, E), sequence by sequence."""
    inputs = leaves(values)
    scale = options.size**-0.5
    each = [
        attention(q, k, v, scale, **options.of_reference(slopes, i), **{key: x[i] for key, x in more.items()})
        for i, (q, k, v) in enumerate(zip(*inputs))
    ]
    out, lse = (torch.stack(parts) for parts in zip(*each))
    out.backward(grad.double())
    return out.detach(), lse.detach(), [x.grad for x in inputs]


@pytest.mark.parametrize("seed", range(24))
def test_dense_attention_and_its_gradients(seed, small_blocks):
    options = random_options(seed)
    queries, keys = random_lengths(seed, 2, 75)
    values = tensors(options, queries, keys, 2)
    slopes, grad = options.slopes(2), torch.randn(2, queries, options.heads, options.size).to(options.dtype)
    given = [x.cuda().contiguous().requires_grad_() for x in values]
    out, lse, _ = flash_attn.flash_attn_func(*given, **options.of_flash(slopes), return_attn_probs=True)
    out.backward(grad.cuda())
    want_out, want_lse, want_grads = expected(options, values, grad, slopes)
    assert out.dtype == options.dtype and lse.dtype == torch.float32
    assert_rounded_once(out.detach(), want_out, options.dtype)
    torch.testing.assert_close(lse.double().cpu(), want_lse, rtol=1e-5, atol=1e-5)
    assert_gradients([x.grad for x in given], want_grads, options.dtype)


@pytest.mark.parametrize("seed", range(8))
def test_what_the_distributions_own_operator_computes(seed):
    options = random_options(seed, plain=True)
    length, other = random_lengths(seed, 2, 300)
    values = tensors(options, length, length if options.causal else other, 2)
    grad = torch.randn(values[0].shape).to(options.dtype)
    given = [x.cuda().contiguous().requires_grad_() for x in values]
    problem = blocks.Problem(1.0, blocks.Window(-1, 0 if options.causal else -1))
    assert problem.is_plain(*given[:2], None)
    out, lse, _ = flash_attn.flash_attn_func(*given, **options.of_flash(None), return_attn_probs=True)
    out.backward(grad.cuda())
    want_out, want_lse, want_grads = expected(options, values, grad, None)
    assert_rounded_once(out.detach(), want_out, options.dtype)
    torch.testing.assert_close(lse.double().cpu(), want_lse, rtol=1e-5, atol=1e-5)
    assert_gradients([x.grad for x in given], want_grads, options.dtype)


def packed(lengths):
    starts = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32)
    return starts, starts.cuda()


@pytest.mark.parametrize("seed", range(20))
def test_packed_sequences_some_of_them_empty(seed, small_blocks):
    options = random_options(100 + seed)
    lengths = [random_lengths(seed + shift, 4, 40, empty=True) for shift in (0, 500)]
    (starts_q, on_device_q), (starts_k, on_device_k) = (packed(each) for each in lengths)
    values = tensors(options, int(starts_q[-1]), int(starts_k[-1]))
    if not values[0].numel():
        pytest.skip("no query at all")
    slopes, grad = options.slopes(4), torch.randn(values[0].shape).to(options.dtype)
    given = [x.cuda().requires_grad_() for x in values]
    out, lse, _ = flash_attn.flash_attn_varlen_func(
        *given, on_device_q, on_device_k, max(lengths[0]), max(lengths[1]),
        **options.of_flash(slopes), return_attn_probs=True,
    )  # fmt: skip
    out.backward(grad.cuda())
    inputs = leaves(values)
    each = [
        attention(
            inputs[0][starts_q[i] : starts_q[i + 1]],
            *(x[starts_k[i] : starts_k[i + 1]] for x in inputs[1:]),
            options.size**-0.5,
            **options.of_reference(slopes, i),
        )
        for i in range(4)
    ]
    want_out, want_lse = torch.cat([x for x, _ in each]), torch.cat([x for _, x in each], 1)
    want_out.backward(grad.double())
    assert lse.shape == (options.heads, values[0].size(0))
    assert_rounded_once(out.detach(), want_out.detach(), options.dtype)
    torch.testing.assert_close(lse.double().cpu(), want_lse.detach(), rtol=1e-5, atol=1e-5)
    assert_gradients([x.grad for x in given], [x.grad for x in inputs], options.dtype)


def test_rows_that_see_nothing_are_zero_with_an_infinite_logsumexp():
    q, k, v = (torch.randn(1, n, 2, 32, dtype=HALF, device="cuda", requires_grad=True) for n in (9, 4, 4))
    out, lse, _ = flash_attn.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    assert torch.equal(out[:, :5], torch.zeros_like(out[:, :5])) and out[:, 5:].abs().min() > 0
    assert torch.equal(lse[..., :5], torch.full_like(lse[..., :5], math.inf)) and lse[..., 5:].isfinite().all()
    out.sum().backward()
    assert torch.equal(q.grad[:, :5], torch.zeros_like(q.grad[:, :5])) and k.grad.isfinite().all()


@pytest.mark.parametrize("alibi", ["", "batch"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [(-1, -1), (11, 4)])
def test_dropout_scales_what_its_mask_says_and_the_backward_pass_repeats_it(causal, window, alibi, small_blocks):
    options = Options(4, 2, 64, HALF, causal, window, 0.0, alibi)
    values, slopes, probability = tensors(options, 67, 93, 2), options.slopes(2), 0.3
    grad = torch.randn(values[0].shape).to(HALF)
    given = [x.cuda().contiguous().requires_grad_() for x in values]
    out, _, signed = flash_attn.flash_attn_func(*given, probability, **options.of_flash(slopes), return_attn_probs=True)
    out.backward(grad.cuda())
    assert signed.shape == (2, 4, 128, 128)
    kept = ~torch.signbit(signed[:, :, :67, :93].cpu())
    seen = signed[:, :, :67, :93].cpu() != 0
    assert abs(float(kept[seen].double().mean()) - (1 - probability)) < 0.03
    want_out, _, want_grads = expected(options, values, grad, slopes, kept=kept.double(), dropout=[probability] * 2)
    assert_rounded_once(out.detach(), want_out, HALF, margin=2)
    assert_gradients([x.grad for x in given], want_grads, HALF)


def test_a_seed_repeats_dropout_and_calls_differ():
    q, k, v = (torch.randn(2, 50, 2, 32, dtype=HALF, device="cuda") for _ in range(3))

    def two():
        torch.cuda.manual_seed(7)
        return [flash_attn.flash_attn_func(q, k, v, 0.5, causal=True) for _ in range(2)]

    first, again = two(), two()
    assert all(map(torch.equal, first, again)) and not torch.equal(*first)
    generator = torch.Generator("cuda").manual_seed(3)
    own = [torch.Generator("cuda"), generator]
    own[0].set_state(generator.get_state())
    arguments = (None, None, 0.5, 0.2, False, -1, -1, 0.0, False)
    results = [extension.fwd(q, k, v, *arguments, each) for each in own]
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][3], results[1][3])
    assert results[0][3].dtype == torch.int64 and results[0][3].shape == (2,)
    assert torch.equal(own[0].get_state(), own[1].get_state())


@pytest.mark.parametrize("form", ["dense", "packed"])
def test_a_lone_query_of_several_heads(form):
    options = Options(8, 2, 64, HALF, True, (-1, -1), 0.0, "")
    values = tensors(options, 1, 33, 3)
    want = torch.stack([attention(*(x[i].double() for x in values), 0.125)[0] for i in range(3)])
    given = [x.cuda().contiguous() for x in values]
    if form == "dense":
        got = flash_attn.flash_attn_func(*given, causal=True)
    else:
        starts = [packed([n] * 3)[1] for n in (1, 33)]
        flat = [x.flatten(0, 1) for x in given]
        got = flash_attn.flash_attn_varlen_func(*flat, *starts, 1, 33, causal=True).unsqueeze(1)
    assert_rounded_once(got, want, HALF)


def test_results_go_where_they_are_asked_to():
    q, k, v = (torch.randn(2, 21, 4, 64, dtype=HALF, device="cuda") for _ in range(3))
    arguments = (None, 0.0, 0.125, True, -1, -1, 0.0)
    out = torch.empty(2, 4, 21, 64, dtype=HALF, device="cuda").transpose(1, 2)
    got, lse, mask, state = extension.fwd(q, k, v, out, *arguments, False, None)
    assert got.data_ptr() == out.data_ptr() and mask.numel() == 0 and state.shape == (2,)
    want = extension.fwd(q, k, v, None, *arguments, False, None)
    assert torch.equal(out, want[0]) and torch.equal(lse, want[1])
    joint = torch.empty(2, 21, 3, 4, 64, dtype=HALF, device="cuda")
    dq, dk, dv, sums = extension.bwd(out, q, k, v, out, lse, *joint.unbind(2), *arguments, True, None, state)
    assert dq.data_ptr() == joint.data_ptr() and sums.shape == (2, 4, 128)
    separate = extension.bwd(out, q, k, v, out, lse, None, None, None, *arguments, False, None, None)
    for a, b in zip((dq, dk, dv, sums), separate):
        assert torch.equal(a, b)
    torch.testing.assert_close(sums[..., :21], (out.float() ** 2).sum(-1).transpose(1, 2))


def test_memory_is_linear_in_the_length():
    lengths, used = (2048, 8192), []
    for length in lengths:
        q, k, v = (torch.randn(1, length, 2, 32, dtype=HALF, device="cuda", requires_grad=True) for _ in range(3))
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        out = flash_attn.flash_attn_func(q, k, v, causal=True, window_size=(100, 0), softcap=20.0)
        out.sum().backward()
        used.append(torch.cuda.max_memory_allocated() - before)
        assert used[-1] < 64 * 2**20
        del q, k, v, out
    assert used[1] < 6 * used[0]


def dense(**changed):
    given = {"q": (2, 8, 4, 32), "k": (2, 9, 2, 32), "v": (2, 9, 2, 32)}
    made = {name: torch.zeros(shape, dtype=HALF, device="cuda") for name, shape in given.items()}
    rest = {
        "out": None, "slopes": None, "p": 0.0, "scale": 1.0, "causal": False, "left": -1, "right": -1,
        "softcap": 0.0, "mask": False, "gen": None,
    }  # fmt: skip
    return list({**made, **rest, **changed}.values())


def zeros(*shape, dtype=HALF, device="cuda"):
    return torch.zeros(shape, dtype=dtype, device=device)


WRONG = [
    ({"q": zeros(2, 8, 4, 32, dtype=torch.float32)}, "FlashAttention only support fp16 and bf16 data type"),
    ({"k": zeros(2, 9, 2, 32, dtype=torch.bfloat16)}, "query and key must have the same dtype"),
    ({"v": zeros(2, 9, 2, 32, dtype=torch.bfloat16)}, "query and value must have the same dtype"),
    ({"k": zeros(2, 9, 2, 32, device="cpu")}, "k must be on CUDA"),
    ({"q": zeros(2, 8, 32, 4).transpose(2, 3)}, "Input tensor must have contiguous last dimension"),
    ({"q": zeros(0, 8, 4, 32)}, "batch size must be positive"),
    ({"q": zeros(2, 8, 4, 264)}, "FlashAttention forward only supports head dimension at most 256"),
    ({"q": zeros(2, 8, 4, 20)}, "must have a head_size that is a multiple of 8"),
    ({"q": zeros(2, 8, 5, 32)}, "Number of heads in key/value must divide number of heads in query"),
    ({"v": zeros(2, 7, 2, 32)}, r"v must have shape \(batch_size, seqlen_k, num_heads_k, head_size\)"),
    ({"p": 0.1, "softcap": 1.0}, "Softcapping does not support dropout for now"),
    ({"mask": True}, "return_softmax is only supported when p_dropout > 0.0"),
    ({"slopes": zeros(4)}, "ALiBi slopes must have dtype fp32"),
    ({"out": zeros(2, 8, 4, 32, dtype=torch.bfloat16)}, "Output must have the same dtype as inputs"),
    ({"out": zeros(2, 8, 4, 16)}, "out must have shape"),
]


@pytest.mark.parametrize("changed, said", WRONG, ids=[said[:30] for _, said in WRONG])
def test_wrong_arguments_are_refused_in_upstreams_words(changed, said):
    with pytest.raises(RuntimeError, match=said):
        extension.fwd(*dense(**changed))


def test_packed_lengths_that_lead_outside_are_refused():
    q = zeros(10, 2, 32)
    starts = torch.tensor([0, 4, 11], dtype=torch.int32, device="cuda")
    with pytest.raises(RuntimeError, match="sequence 1 lies outside of the tensors"):
        flash_attn.flash_attn_varlen_func(q, q, q, starts, starts, 7, 7)
    with pytest.raises(RuntimeError, match="cu_seqlens_q must have dtype int32"):
        flash_attn.flash_attn_varlen_func(q, q, q, starts.long(), starts, 7, 7)


def test_autocast_does_not_reach_into_the_extension():
    q, k, v = (torch.randn(1, 40, 2, 64, dtype=HALF, device="cuda") for _ in range(3))
    plain = flash_attn.flash_attn_func(q, k, v, softcap=9.0)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert torch.equal(flash_attn.flash_attn_func(q, k, v, softcap=9.0), plain)


class Model(torch.nn.Module):
    """A block of attention; ``flash`` says by what."""

    def __init__(self, flash):
        super().__init__()
        self.flash, self.into, self.out = flash, torch.nn.Linear(64, 192), torch.nn.Linear(64, 64)

    def forward(self, x):
        q, k, v = self.into(x).view(*x.shape[:2], 3, 4, 16).unbind(2)
        if self.flash:
            dtype = torch.bfloat16
            mixed = flash_attn.flash_attn_func(q.to(dtype), k.to(dtype), v.to(dtype), causal=True).to(x.dtype)
        else:
            q, k, v = (each.transpose(1, 2) for each in (q, k, v))
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        return self.out(mixed.flatten(2))


def five_losses(model, x, wrapped=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    # A compiled module has a length from 2.12 on, and asks its own module for it: it is neither true nor false.
    call, losses = model if wrapped is None else wrapped, []
    for _ in range(5):
        loss = (call(x) - x.roll(1, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("compiled", [False, True])
def test_five_steps_of_training_equal_the_cpus(compiled):
    x = torch.randn(2, 37, 64)
    on_cpu, on_device = Model(False), Model(True)
    on_device.load_state_dict(on_cpu.state_dict())
    on_device.cuda()
    wrapped = torch.compile(on_device, fullgraph=True) if compiled else None
    if compiled and not release_facts.has("compiled_operators_have_buffers_of_their_own"):
        with pytest.raises(RuntimeError, match="dq, dk and dv are the same memory"):
            five_losses(on_device, x.cuda(), wrapped)
        return
    want, got = five_losses(on_cpu, x), five_losses(on_device, x.cuda(), wrapped)
    assert want[-1] < want[0]
    torch.testing.assert_close(got, want, rtol=2e-3, atol=1e-4)
