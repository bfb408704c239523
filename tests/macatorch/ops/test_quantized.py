"""Quantised tensors compute on the device what they compute on the CPU."""

from __future__ import annotations

from typing import Callable, Dict

import pytest
import torch
from torch.nn import functional as F

torch.manual_seed(0)
X = torch.randn(2, 3, 4, 4)
INDEX = torch.tensor([1, 0])


def per_tensor(device: str) -> torch.Tensor:
    return torch.quantize_per_tensor(X.to(device), 0.1, 2, torch.quint8)


def per_channel(device: str) -> torch.Tensor:
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])
    return torch.quantize_per_channel(X.to(device), scales.to(device), zeros.to(device), 1, torch.qint8)


def assigned(q: torch.Tensor) -> torch.Tensor:
    q = q.clone()
    q[0] = q[1]
    q[0, 1, 2] = 0.7
    return q


OPERATORS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": lambda q: q.relu(),
    "relu_": lambda q: q.clone().relu_(),
    "gelu": lambda q: F.gelu(q),
    "clone": lambda q: q.clone(),
    "flip": lambda q: torch.flip(q, (0,)),
    "fill_": lambda q: q.clone().fill_(0.4),
    "masked_fill_": lambda q: q.clone().masked_fill_((X > 0).to(q.device), 0.5),
    "index_select": lambda q: q.index_select(1, INDEX.to(q.device)),
    "assignment": assigned,
    "max_pool2d": lambda q: F.max_pool2d(q, 2),
    "adaptive_avg_pool2d": lambda q: F.adaptive_avg_pool2d(q, 2),
    "max": lambda q: q.max(1).values,
    "min": lambda q: q.min(1).values,
    "transposed": lambda q: q.transpose(1, 2).contiguous(),
    "add": lambda q: torch.ops.quantized.add(q, q, 0.2, 1),
    "add_relu": lambda q: torch.ops.quantized.add_relu(q, q, 0.2, 1),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_equals_the_cpus(name: str) -> None:
    want = OPERATORS[name](per_tensor("cpu"))
    got = OPERATORS[name](per_tensor("cuda"))
    assert got.is_cuda and got.is_quantized
    assert (got.q_scale(), got.q_zero_point()) == (want.q_scale(), want.q_zero_point())
    assert torch.equal(got.int_repr().cpu(), want.int_repr())
    assert torch.equal(got.dequantize().cpu(), want.dequantize())


@pytest.mark.parametrize("make", [per_tensor, per_channel])
def test_tensors_move_between_devices(make: Callable[[str], torch.Tensor]) -> None:
    want, there = make("cpu"), make("cuda")
    assert torch.equal(there.cpu().int_repr(), want.int_repr())
    back = want.cuda()
    assert back.is_cuda and back.qscheme() == want.qscheme()
    assert torch.equal(back.dequantize().cpu(), want.dequantize())
    assert repr(back).count("quantization_scheme") == 1


def test_scales_of_channels_are_on_the_device() -> None:
    q = per_channel("cuda")
    assert q.q_per_channel_scales().is_cuda and q.q_per_channel_zero_points().is_cuda
    assert torch.equal(q.q_per_channel_scales().cpu(), per_channel("cpu").q_per_channel_scales())


def test_memory_of_a_quantised_tensor_is_the_devices() -> None:
    before = torch.cuda.memory_allocated()
    q = torch.quantize_per_tensor(torch.zeros(1 << 20, device="cuda"), 0.1, 0, torch.qint8)
    assert torch.cuda.memory_allocated() - before == 1 << 20
    del q
    assert torch.cuda.memory_allocated() == before
