"""Fixtures of the tests of CUDA's libraries."""

import pathlib
from typing import Iterator

import pytest
from cublas_calls import Blas


@pytest.fixture(scope="module")
def blas(sdk: pathlib.Path) -> Iterator[Blas]:
    """Return cuBLAS with a handle."""
    yield Blas(sdk)
