"""Batch normalisation of many pixels has the statistics of double precision, in the layout that images arrive in."""

from __future__ import annotations

from typing import List, Tuple

import pytest
import torch

SHAPES = [(16, 4, 256, 256), (32, 64, 56, 56), (3, 130, 64, 67)]


def steps(image: torch.Tensor, channels: int) -> List[torch.Tensor]:
    """What two training steps of a BatchNorm2d leave: results, running statistics, gradients."""
    layer = torch.nn.BatchNorm2d(channels).to(image.device, image.dtype)
    given = image.clone(memory_format=torch.preserve_format).requires_grad_(True)
    results = [layer(given), layer(given)]
    torch.stack([result.square().mean() + result[:, 0].mean() for result in results]).sum().backward()
    assert layer.running_mean is not None and layer.running_var is not None and given.grad is not None
    assert layer.weight.grad is not None
    found = [*results, layer.running_mean, layer.running_var, layer.weight.grad]
    return [tensor.detach().double().cpu() for tensor in found]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_and_running_statistics_are_those_of_double_precision(shape: Tuple[int, ...]) -> None:
    torch.manual_seed(0)
    image = torch.rand(shape) + 3
    on_device = image.cuda()
    assert not on_device.is_contiguous()
    *results, weights = zip(steps(on_device, shape[1]), steps(image.double(), shape[1]))
    for got, want in results:
        torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5)
    # Upstream's kernel adds the gradients of parameters up in single precision.
    torch.testing.assert_close(*weights, rtol=5e-4, atol=5e-4)
    without = torch.nn.functional.batch_norm(on_device, None, None, training=True).double().cpu()
    torch.testing.assert_close(
        without, torch.nn.functional.batch_norm(image.double(), None, None, training=True), rtol=2e-5, atol=2e-5
    )
    layer = torch.nn.BatchNorm2d(shape[1], momentum=None).cuda()
    layer(on_device)
    assert layer.running_mean is not None and layer.running_var is not None
    exact = image.double().transpose(0, 1).flatten(1)
    torch.testing.assert_close(layer.running_mean.double().cpu(), exact.mean(1), rtol=5e-7, atol=0)
    torch.testing.assert_close(layer.running_var.double().cpu(), exact.var(1), rtol=5e-6, atol=0)


def test_a_layer_without_running_statistics_and_one_of_volumes() -> None:
    torch.manual_seed(0)
    image = torch.rand(8, 16, 64, 64) - 5
    layer = torch.nn.BatchNorm2d(16, track_running_stats=False)
    got = layer.cuda()(image.cuda()).double().cpu()
    torch.testing.assert_close(got, layer.double().cpu()(image.double()), rtol=2e-5, atol=2e-5)
    volume = torch.rand(2, 8, 24, 24, 24)
    got = torch.nn.BatchNorm3d(8).cuda()(volume.cuda().contiguous(memory_format=torch.channels_last_3d))
    assert got.is_contiguous(memory_format=torch.channels_last_3d)
    torch.testing.assert_close(
        got.double().cpu(), torch.nn.BatchNorm3d(8).double()(volume.double()), rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(2, 17), (5, 17, 4), (3, 17, 4, 2)], ids=str)
def test_numbers_of_channels_need_not_lie_side_by_side(shape: Tuple[int, ...], training: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    x, slope = (torch.randn(shape, generator=generator) for _ in range(2))
    every_second = [torch.rand(34, generator=generator).add(0.5) for _ in range(4)]
    gradients = []
    for device in ("cuda", "cpu"):
        mean, var, weight, bias = (
            numbers.to(device)[::2] if device == "cuda" else numbers[::2].contiguous() for numbers in every_second
        )
        values = [x.to(device).requires_grad_(), weight.requires_grad_(), bias.requires_grad_()]
        y = torch.nn.functional.batch_norm(values[0], mean, var, *values[1:], training, eps=0.01)
        freed = [torch.full((17,), float("nan")).to(device) for _ in range(100)]
        del freed
        gradients.append([grad.cpu() for grad in torch.autograd.grad(y, values, slope.to(device))])
    torch.testing.assert_close(*gradients)
