"""Tests of companions run where the release has them."""

import sys
from pathlib import Path
from typing import Iterator

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    import torch

    torch.manual_seed(0)
    yield
    torch.cuda.synchronize()
