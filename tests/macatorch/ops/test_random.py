"""Random operators draw from the CUDA generator: its seed and offset decide, and nothing else."""

from __future__ import annotations

from typing import Callable

import pytest
import release_facts
import torch

DRAWS = {
    "rand": lambda: torch.rand(100, device="cuda"),
    "randn": lambda: torch.randn(100, device="cuda"),
    "randint": lambda: torch.randint(0, 1000, (100,), device="cuda"),
    "randperm": lambda: torch.randperm(100, device="cuda"),
    "bernoulli": lambda: torch.full((100,), 0.5, device="cuda").bernoulli(),
    "multinomial": lambda: torch.ones(50, device="cuda").multinomial(20),
    "normal": lambda: torch.normal(torch.zeros(100, device="cuda"), 1.0),
    "exponential": lambda: torch.empty(100, device="cuda").exponential_(),
    "poisson": lambda: torch.poisson(torch.full((100,), 5.0, device="cuda")),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(100, device="cuda")),
    "alpha_dropout": lambda: torch.nn.functional.alpha_dropout(torch.ones(100, device="cuda"), training=True),
    "rrelu": lambda: torch.nn.functional.rrelu(-torch.ones(100, device="cuda"), training=True),
    "gamma": lambda: torch._standard_gamma(torch.ones(100, device="cuda")),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_repeats_and_the_stream_goes_on(name: str) -> None:
    draw: Callable[[], torch.Tensor] = DRAWS[name]
    torch.cuda.manual_seed(7)
    first, second = draw(), draw()
    torch.cuda.manual_seed(7)
    assert torch.equal(draw(), first)
    assert torch.equal(draw(), second)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", DRAWS)
def test_a_restored_state_repeats_whatever_came_before(name: str) -> None:
    draw: Callable[[], torch.Tensor] = DRAWS[name]
    torch.rand(3, device="cuda")
    state = torch.cuda.get_rng_state()
    first = draw()
    torch.rand(5, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(draw(), first)


def test_the_cpu_generator_is_left_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(4)
    torch.manual_seed(1)
    for draw in DRAWS.values():
        draw()
    assert torch.equal(torch.rand(4), expected)


def test_checkpointing_repeats_dropout() -> None:
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 16)).cuda()
    x = torch.ones(4, 16, device="cuda", requires_grad=True)
    torch.cuda.manual_seed(3)
    (plain,) = torch.autograd.grad(layer(x).sum(), x)
    torch.cuda.manual_seed(3)
    (kept,) = torch.autograd.grad(checkpoint(layer, x, use_reentrant=False).sum(), x)
    torch.testing.assert_close(plain, kept)


def test_dropout_between_recurrent_layers_repeats_and_has_its_gradient() -> None:
    layer = torch.nn.LSTM(4, 8, num_layers=3, dropout=0.5).cuda()
    x = torch.randn(5, 2, 4, device="cuda", requires_grad=True)
    torch.cuda.manual_seed(5)
    first = layer(x)[0]
    torch.cuda.manual_seed(5)
    assert torch.equal(layer(x)[0], first)
    with torch.autograd.graph.save_on_cpu():
        torch.cuda.manual_seed(5)
        moved = layer(x)[0]
    torch.testing.assert_close(torch.autograd.grad(moved.sum(), x), torch.autograd.grad(first.sum(), x))


@pytest.mark.parametrize("backend", ["FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"])
def test_attention_dropout_is_the_same_mask_forward_and_backward(backend: str) -> None:
    if backend == "CUDNN_ATTENTION":
        release_facts.need("attention_of_cudnn_is_chosen")
    q, k = (torch.randn(2, 2, 16, 16, device="cuda", dtype=torch.half) for _ in range(2))
    v = torch.randn(2, 2, 16, 16, device="cuda", dtype=torch.half, requires_grad=True)
    with release_facts.attention_by(backend):
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
        weight = torch.randn_like(out)
        (grad,) = torch.autograd.grad((out * weight).sum(), v)
    # The output is linear in the value, so <grad, v> is the weighted output itself.
    torch.testing.assert_close((grad * v).float().sum(), (out * weight).float().sum(), rtol=2e-2, atol=0.5)


FILLS = {
    "normal_": lambda tensor: tensor.normal_(),
    "exponential_": lambda tensor: tensor.exponential_(),
    "bernoulli_": lambda tensor: tensor.bernoulli_(0.3),
    "uniform_": lambda tensor: tensor.uniform_(),
    "normal(tensors)": lambda tensor: torch.normal(tensor.new_zeros(1, 1), tensor.new_ones(tensor.shape), out=tensor),
    "normal(mean)": lambda tensor: torch.normal(tensor.new_zeros(tensor.shape), 2.0, out=tensor),
    "normal(std)": lambda tensor: torch.normal(-1.0, tensor.new_ones(tensor.shape), out=tensor),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", FILLS)
def test_numbers_lie_in_the_order_of_memory_whatever_the_strides(name: str, dtype: torch.dtype) -> None:
    def filled(tensor: torch.Tensor) -> torch.Tensor:
        torch.cuda.manual_seed(5)
        assert FILLS[name](tensor) is tensor
        return tensor

    want = filled(torch.empty(6, 8, dtype=dtype, device="cuda"))
    whole = torch.zeros(12, 16, dtype=dtype, device="cuda")
    assert torch.equal(filled(whole[::2, ::2]), want)
    assert not whole[1::2].any() and not whole[:, 1::2].any()
    assert torch.equal(filled(torch.empty(8, 6, dtype=dtype, device="cuda").t()).t().flatten(), want.flatten())
    with pytest.raises(RuntimeError, match="single memory location"):
        filled(torch.empty(1, 8, dtype=dtype, device="cuda").expand(6, 8))


def test_normal_numbers_belong_to_their_means_whatever_the_strides() -> None:
    mean = torch.arange(48.0, device="cuda").view(6, 8) * 100
    out = torch.empty(8, 6, device="cuda").t()
    assert torch.normal(mean, mean.new_ones(8), out=out) is out
    assert (out - mean).abs().max() < 10
    with pytest.warns(UserWarning, match="was resized"):
        torch.normal(mean, mean.new_ones(8), out=torch.empty(6, 8, device="cuda").t())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_dropout_draws_in_the_order_of_memory(dtype: torch.dtype) -> None:
    def dropped(tensor: torch.Tensor) -> torch.Tensor:
        torch.cuda.manual_seed(5)
        return torch.nn.functional.dropout(tensor, 0.4)

    want = dropped(torch.ones(6, 8, dtype=dtype, device="cuda"))
    got = dropped(torch.ones(8, 6, dtype=dtype, device="cuda").t())
    assert got.stride() == (1, 6) and torch.equal(got.t().flatten(), want.flatten())


def test_exponential_numbers_are_never_zero() -> None:
    """Of the 2^25 numbers of this test some thirty would become 0 as a half."""
    numbers = torch.empty(1 << 22, device="cuda", dtype=torch.float16)
    for _ in range(8):
        assert float(numbers.exponential_(30).min()) > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["uniform_", "normal_"])
def test_halves_are_rounded_floats(name: str, dtype: torch.dtype) -> None:
    def draw(wanted: torch.dtype) -> torch.Tensor:
        torch.cuda.manual_seed(5)
        # Neither form is contiguous.
        return getattr(torch.empty(300, 40, dtype=wanted, device="cuda").t()[::2], name)(1.0, 3.0)

    got, floats = draw(dtype), draw(torch.float32)
    assert got.dtype == dtype and got.stride() == (2, 40)
    expected = floats.to(dtype)
    if name == "uniform_":
        assert got.min() >= 1 and got.max() < 3  # what rounds to the upper bound becomes the lower one
        assert (expected == 3).any()
        expected = expected.masked_fill(expected == 3, 1)
    assert torch.equal(got, expected)


def test_bounds_that_a_half_does_not_have_are_refused() -> None:
    with pytest.raises(RuntimeError, match="to is out of bounds for c10::Half"):
        torch.empty(3, dtype=torch.float16, device="cuda").uniform_(0, 1e6)
    with pytest.raises(RuntimeError, match="normal expects std >= 0.0"):
        torch.empty(3, dtype=torch.float16, device="cuda").normal_(0, -1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_slopes_of_rrelu_are_drawn_as_uniform_numbers(dtype: torch.dtype) -> None:
    """Of all elements, in their order: compiled programs draw them by `uniform_`."""
    x = torch.randn(5, 60, generator=torch.Generator().manual_seed(7)).to("cuda", dtype)
    x[0, :3] = torch.tensor([0.0, torch.nan, -0.0])
    torch.cuda.manual_seed(8)
    slopes = torch.empty_like(x).uniform_(0.1, 0.3)
    want = torch.where(x <= 0, x * slopes, x)
    torch.cuda.manual_seed(8)
    noise = torch.empty_like(x)
    got = torch.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.3, True)
    assert torch.equal(got.nan_to_num(7), want.nan_to_num(7))
    assert torch.equal(noise, torch.where(x <= 0, slopes, torch.ones_like(x)))
    torch.cuda.manual_seed(8)
    changed = x.clone()
    assert torch.nn.functional.rrelu_(changed, 0.1, 0.3, training=True) is changed
    assert torch.equal(changed.nan_to_num(7), want.nan_to_num(7))
    torch.cuda.manual_seed(8)
    out = torch.empty(0, device="cuda", dtype=dtype)
    torch.ops.aten.rrelu_with_noise.out(x, noise, 0.1, 0.3, True, out=out)
    assert torch.equal(out.nan_to_num(7), want.nan_to_num(7))
    if release_facts.has("noise_of_rrelu_has_its_shape"):
        with pytest.raises(RuntimeError, match="noise tensor shape must match self tensor shape"):
            torch.ops.aten.rrelu_with_noise(x, noise[0], 0.1, 0.3, True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_an_infinite_rate_leaves_nothing_to_wait_for(dtype: torch.dtype) -> None:
    x = torch.ones(64, dtype=dtype, device="cuda")
    assert x.exponential_(float("inf")).eq(0).all()
    assert x.exponential_(1000.0).gt(0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_places_are_drawn_by_weights_in_half_precision(dtype: torch.dtype) -> None:
    weights = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.5]], dtype=dtype, device="cuda")
    drawn = torch.multinomial(weights, 50, replacement=True)
    assert drawn[0].eq(1).all() and set(drawn[1].tolist()) == {0, 2}
    assert sorted(torch.multinomial(weights[1], 2).tolist()) == [0, 2]
