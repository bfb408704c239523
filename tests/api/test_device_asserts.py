"""Values that CUDA asserts: an error of the call, or with MACA_DEVICE_ASSERT=1 the device's, as on hardware."""

import os
import subprocess
import sys

import pytest

# Each with what the error is without the variable.
CALLS = {
    "x[torch.tensor([1, 7], device='cuda')]": "IndexError",
    "x.index_select(0, torch.tensor([7], device='cuda'))": "IndexError",
    "x.gather(0, torch.tensor([[7]], device='cuda'))": "RuntimeError",
    "x.scatter_(0, torch.tensor([[7]], device='cuda'), 1.0)": "RuntimeError",
    "x.index_put_((torch.tensor([7], device='cuda'),), x.new_ones(4))": "IndexError",
    "torch.nn.functional.embedding(torch.tensor([7], device='cuda'), x)": "IndexError",
    "torch.nn.functional.cross_entropy(x, torch.tensor([0, 9, 1], device='cuda'))": "IndexError",
    "torch.multinomial(torch.tensor([-1.0, 2.0], device='cuda'), 1)": "RuntimeError",
}

PROGRAM = """
import torch
x = torch.ones(3, 4, device="cuda")
try:
    {call}
except Exception as error:
    print(type(error).__name__, "|", str(error).splitlines()[0])
try:
    print(x.sum().item())
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""


def said(call: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.format(call=call)
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("call", CALLS)
def test_a_value_out_of_range_is_an_error_of_its_call(call: str) -> None:
    done = said(call, MACA_DEVICE_ASSERT="")
    first, second = done.stdout.splitlines()
    assert first.startswith(CALLS[call] + " |") and "device-side" not in first, done
    assert float(second) > 0, done


@pytest.mark.parametrize("call", CALLS)
def test_asked_for_it_ends_the_device_as_on_hardware(call: str) -> None:
    done = said(call, MACA_DEVICE_ASSERT="1")
    first, second = done.stdout.splitlines()
    assert "device-side assert triggered" in first and "device-side assert triggered" in second, done
    assert "mxmaca: device-side assert in aten::" in done.stderr, done


def test_errors_that_hardware_has_before_a_launch_stay_what_they_are() -> None:
    for call in (
        "torch.ones(3)[torch.tensor([7])]",
        "x[7]",
        "x.gather(5, torch.tensor([[0]], device='cuda'))",
        "x.index_select(0, torch.ones(1, device='cuda'))",
    ):
        done = said(call, MACA_DEVICE_ASSERT="1")
        assert "device-side" not in done.stdout and done.stdout.splitlines()[1] == "12.0", done
