"""These tests run inside an environment in which the vendor wheel is installed."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def simulated_device() -> None:
    assert torch.cuda.is_available(), "no simulated device: is the vendor wheel installed in this environment?"
