"""These tests run inside an environment in which the vendor wheel is installed."""

import ctypes
from pathlib import Path

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def simulated_device() -> None:
    assert torch.cuda.is_available(), "no simulated device: is the vendor wheel installed in this environment?"


@pytest.fixture(scope="session")
def fast_parts() -> str:
    """The parts of macatorch/csrc/fast that the library was built with."""
    library = ctypes.CDLL(str(Path(torch.__file__).with_name("lib") / "libmacatorch.so"))
    library.macatorch_fast_parts.restype = ctypes.c_char_p
    return str(library.macatorch_fast_parts().decode())


@pytest.fixture(scope="module", autouse=True)
def needed_part(request: pytest.FixtureRequest, fast_parts: str) -> None:
    """A module about one part names it as FAST_PART. It comes before the module's own fixtures, which call the part."""
    part = getattr(request.module, "FAST_PART", "")
    if part not in fast_parts:
        pytest.skip(f"built without MACATORCH_FAST_{part}")
