"""Recurrent layers in halves, and under autocast, which makes halves of everything but doubles."""

from __future__ import annotations

import itertools
import warnings
from typing import List, Tuple

import pytest
import torch
from torch import nn

KINDS = [nn.RNN, nn.LSTM, nn.GRU]
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}


def run(layer: nn.Module, x: torch.Tensor, grad: torch.Tensor) -> Tuple[List[torch.Tensor], List[torch.Tensor]]:
    """Output and final states; the gradients of the input and of all parameters."""
    output, states = layer(x)
    grads = torch.autograd.grad(output, [x, *layer.parameters()], grad.to(output))
    return [output, *(states if isinstance(states, tuple) else (states,))], list(grads)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("kind", "bidirectional"), list(itertools.product(KINDS, [False, True])))
def test_halves_are_those_of_a_wider_computation(kind: type, bidirectional: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer = kind(20, 30, 2, bidirectional=bidirectional).to(dtype)
    x, grad = torch.randn(7, 3, 20, dtype=dtype), torch.randn(7, 3, 60 if bidirectional else 30, dtype=dtype)
    device = kind(20, 30, 2, bidirectional=bidirectional).to("cuda", dtype)
    device.load_state_dict(layer.state_dict())
    got = run(device, x.cuda().requires_grad_(), grad.cuda())
    want = run(layer.double(), x.double().requires_grad_(), grad.double())
    scale = 1
    for some, wanted in zip(got, want):
        for one, other in zip(some, wanted):
            assert one.dtype == dtype and one.is_cuda
            atol = TOLERANCE[dtype] * scale
            torch.testing.assert_close(one.cpu().double(), other, rtol=TOLERANCE[dtype], atol=atol)
        scale = 10  # gradients add up over the steps


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_autocast_computes_in_float16(kind: type, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer, x = kind(20, 30, 2, dropout=0.0).cuda(), torch.randn(7, 3, 20, device="cuda")
    with torch.autocast("cuda", dtype=dtype):
        output, states = layer(x)
    assert output.dtype == torch.float16  # upstream's choice, whatever autocast's dtype is
    assert all(t.dtype == torch.float16 for t in (states if isinstance(states, tuple) else (states,)))
    torch.testing.assert_close(output.float(), layer(x)[0], rtol=4e-3, atol=4e-3)
    output.float().sum().backward()
    found = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    layer(x)[0].sum().backward()
    for got, parameter in zip(found, layer.parameters()):
        assert got.dtype == torch.float32
        torch.testing.assert_close(got, parameter.grad, rtol=2e-2, atol=2e-2)


def test_autocast_makes_one_dtype_of_several() -> None:
    layer, x, h = nn.GRU(4, 5).cuda(), torch.randn(3, 2, 4, device="cuda").half(), torch.randn(1, 2, 5, device="cuda")
    with torch.autocast("cuda"):
        output, state = layer(x, h)
    assert output.dtype == state.dtype == torch.float16
    with pytest.raises(
        RuntimeError, match="not the same dtype, found input tensor with Half and hidden tensor with Float"
    ):
        layer.half()(x, h)


def test_autocast_leaves_doubles_and_the_cpu_alone() -> None:
    layer, x = nn.LSTM(4, 5), torch.randn(3, 2, 4)
    with torch.autocast("cuda"):
        assert layer(x)[0].dtype == torch.float32
        assert layer.cuda().double()(x.cuda().double())[0].dtype == torch.float64


def test_autocast_packed_sequences_and_projections() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(5, 7, 2, proj_size=3, bidirectional=True).cuda()
    packed = nn.utils.rnn.pack_sequence([torch.randn(n, 5, device="cuda") for n in (6, 4, 2)])
    with torch.autocast("cuda"):
        output = layer(packed)[0].data
    assert output.dtype == torch.float16
    torch.testing.assert_close(output.float(), layer(packed)[0].data, rtol=4e-3, atol=4e-3)
    (gradient,) = torch.autograd.grad(output.sum(), [layer.weight_hh_l0])
    assert gradient.dtype == torch.float32 and gradient.abs().sum() > 0


def test_halves_whose_reserve_was_copied_compute_their_forward_again() -> None:
    torch.manual_seed(0)
    layer, x = nn.LSTM(4, 8, 2, dropout=0.5).cuda().half(), torch.randn(5, 3, 4, device="cuda").half()
    torch.cuda.manual_seed(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        copied = torch.autograd.grad(layer(x)[0].float().sum(), list(layer.parameters()))
    torch.cuda.manual_seed(3)
    kept = torch.autograd.grad(layer(x)[0].float().sum(), list(layer.parameters()))
    for one, other in zip(copied, kept):
        assert torch.equal(one, other) and one.dtype == torch.float16


@pytest.mark.parametrize("kind", KINDS)
def test_a_forward_without_gradients_computes_the_same(kind: type) -> None:
    torch.manual_seed(0)
    layer, x = kind(64, 64, 2, bidirectional=True).cuda().eval(), torch.randn(9, 8, 64, device="cuda")
    with torch.no_grad():
        expected = layer(x)[0]
    assert torch.equal(layer(x)[0], expected)


def test_the_backward_of_a_forward_that_recorded_nothing() -> None:
    """As a compiled function has it, whose forward runs without gradients; also with dropout."""
    torch.manual_seed(0)
    layer = nn.LSTM(6, 6, 2, dropout=0.5).cuda()
    x = torch.randn(5, 3, 6, device="cuda", requires_grad=True)
    h, c = torch.zeros(2, 2, 3, 6, device="cuda")
    weights = layer._flat_weights
    settings = (2, 6, 0, 2, False, 0.5, True, False, [], None)
    torch.manual_seed(1)
    output = torch._cudnn_rnn(x, weights, 4, None, h, c, *settings)[0]
    expected = torch.autograd.grad(output.sum(), [x, *weights])
    torch.manual_seed(1)
    with torch.no_grad():
        output, hy, cy, reserve, buffer = torch._cudnn_rnn(x, weights, 4, None, h, c, *settings)
    found = torch.ops.aten._cudnn_rnn_backward(
        x, weights, 4, buffer, h, c, output, torch.ones_like(output), None, None, *settings, reserve, [True] * 4
    )
    for one, other in zip([found[0], *found[3]], expected):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_weights_that_no_longer_lie_together_are_told_of(kind: type) -> None:
    layer, x = kind(3, 4, num_layers=2, bidirectional=True).cuda(), torch.randn(5, 2, 3, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        want = layer(x)[0]
    layer.weight_hh_l0.data = layer.weight_hh_l0.data.clone()
    with pytest.warns(UserWarning, match="weights are not part of single contiguous chunk of memory"):
        torch.testing.assert_close(layer(x)[0], want)
    layer.flatten_parameters()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(layer(x)[0], want)
