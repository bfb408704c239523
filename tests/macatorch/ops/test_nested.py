"""Operators of nested tensors whose CUDA kernel answers otherwise than the CPU's."""

from __future__ import annotations

import math

import pytest
import torch


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_heads_of_a_packed_projection_are_padded_with_zeros_to_a_multiple_of_8() -> None:
    torch.manual_seed(0)
    lengths, width, heads = [3, 9, 1], 12, 4
    parts = [torch.randn(length, 3 * width) for length in lengths]
    bias = torch.randn(3 * width)
    with torch.inference_mode():
        nested = torch.nested.nested_tensor([part.cuda() for part in parts])
        got = torch._transform_bias_rescale_qkv(nested, bias.cuda(), heads)
    for i, (length, part) in enumerate(zip(lengths, parts)):
        wanted = list((part + bias).split(width, dim=1))
        wanted[0] = wanted[0] / math.sqrt(width // heads)
        for value, want in zip(got, wanted):
            assert value.shape == (3, heads, 16, width // heads)
            torch.testing.assert_close(value[i, :, :length].cpu(), want.view(length, heads, -1).transpose(0, 1))
            assert (value[i, :, length:] == 0).all()
