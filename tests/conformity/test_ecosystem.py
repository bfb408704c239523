"""The comparison behind `make conformity ARGS='--only ecosystem'` sees what it is there for."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent / "ecosystem"))

from compare import Differs, compare, training


def _loss(module, given):
    outputs = module(given)
    return (outputs**2).mean(), outputs


def test_a_network_is_equal_on_both_devices():
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(144, 5)]
    assert compare(training(lambda: nn.Sequential(*layers), torch.rand(2, 3, 8, 8), _loss)) < 1e-4


class Wrong(nn.Module):
    """Doubles one gradient where it runs on the device."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, given):
        if given.is_cuda and self.weight.requires_grad and torch.is_grad_enabled():
            return given * (2 * self.weight - self.weight.detach())
        return given * self.weight


def test_a_wrong_gradient_is_seen():
    with pytest.raises(Differs, match="gradients"):
        compare(training(Wrong, torch.rand(3, 4), _loss))


@pytest.mark.parametrize(
    "change", [lambda t: t.double(), lambda t: t[:1], lambda t: t + 1e-3, lambda t: [t, t], lambda t: t * float("nan")]
)
def test_another_dtype_shape_value_or_structure_is_seen(change):
    def program(device, dtype):
        value = torch.ones(3, device=device, dtype=dtype)
        return {"value": change(value) if device == "cuda" else value}

    with pytest.raises(Differs):
        compare(program)


def test_rounding_that_double_precision_explains_is_no_difference():
    def program(device, dtype):
        # Sums that cancel: float32 keeps nothing of the 1, or all of it, by their order.
        big = torch.tensor([1e8, 1.0, -1e8], device=device, dtype=dtype)
        return big[0] + big[1] + big[2] if device == "cpu" else big[2] + big[1] + big[0]

    assert compare(program) < 1e-4

    def worse(device, dtype):
        return torch.ones(4, device=device, dtype=dtype) * (1.02 if device == "cuda" and dtype == torch.float32 else 1)

    with pytest.raises(Differs, match="in float32"):
        compare(worse)
