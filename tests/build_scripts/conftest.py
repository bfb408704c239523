"""What the tests of the factory share: a cache of their own, small ELF files, a small upstream release."""

from functools import partial
from pathlib import Path
from typing import Callable

import pytest

from . import small  # first: it puts the checkout on the search path
from .small import SmallRelease

from build_scripts import releases  # isort: skip


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing that a test does reaches the user's cache."""
    path = tmp_path / "cache"
    monkeypatch.setenv("MACATORCH_CACHE", str(path))
    return path


@pytest.fixture
def c_compiler() -> None:
    if not small.compiler():
        pytest.skip("needs a C compiler")


@pytest.fixture
def compile_library(tmp_path: Path, c_compiler: None) -> Callable[..., Path]:
    """`compile_library(name, source, *options)`: a shared library of that file name."""
    return partial(small.compile_library, tmp_path / "compiled")


@pytest.fixture
def device_library(tmp_path: Path, c_compiler: None) -> Callable[..., Path]:
    """`device_library(name, *options)`: a library with device code, passed through patchelf as upstream's are."""
    return partial(small.device_library, tmp_path / "compiled")


@pytest.fixture
def small_release(tmp_path: Path, c_compiler: None) -> SmallRelease:
    """A release that builds in seconds."""
    return small.small_release(tmp_path)


@pytest.fixture
def table() -> releases.Table:
    """The real table."""
    return releases.load()
