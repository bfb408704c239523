"""Triton's own tests: where they are found, and what is run of them."""

import sys
import types
from pathlib import Path

import pytest

from build_scripts import releases
from build_scripts.errors import FactoryError
from build_scripts.quality import conformity, conformity_report, triton_tests


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a folder that holds the tests of one release."""
    for name in ("language/test_core.py", "language/print_helper.py", "runtime/test_cache.py"):
        path = tmp_path / "triton-3.2" / "python" / "test" / "unit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path


def test_the_tests_are_found_in_the_sources_and_beside_others(sources: Path) -> None:
    """PATH is the sources, or a folder that names the release."""
    tests = sources / "triton-3.2" / "python" / "test"
    assert triton_tests.folder(sources, "3.2.0") == triton_tests.folder(sources / "triton-3.2", "3.2.0") == tests
    assert triton_tests.files(tests) == ["unit/language/test_core.py", "unit/runtime/test_cache.py"]


@pytest.mark.parametrize("given", ["triton-3.7", "nothing", None])
def test_a_folder_without_tests_is_named(sources: Path, given: "str | None") -> None:
    """Another release, a folder that is not there, no folder at all."""
    with pytest.raises(FactoryError, match="holds no python/test/unit|in no wheel"):
        triton_tests.folder(sources / given if given else None, "3.2.0")
    if given == "triton-3.7":
        with pytest.raises(FactoryError, match="3.7.1"):
            triton_tests.folder(sources, "3.7.1")


@pytest.mark.parametrize("torch", [release.torch for release in releases.load().releases])
def test_every_expected_failure_has_a_reason(torch: str) -> None:
    """The file of expected failures is read as that of upstream's other tests."""
    places = ("unit/", f"{conformity.RANDOM}.py::")
    for entry in conformity_report.load(torch, triton_tests.EXPECTED):
        assert all(test.startswith(places) for test in entry.tests), entry


def test_the_plugin_answers_only_what_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that the release knows keeps its answer."""
    package, testing = types.ModuleType("triton"), types.ModuleType("triton._internal_testing")
    testing.is_xpu = lambda: "known"  # type: ignore[attr-defined]
    testing.float_dtypes = ["float32"]  # type: ignore[attr-defined]
    package._internal_testing = testing  # type: ignore[attr-defined]
    tools = types.SimpleNamespace(nvidia=type("Nvidia", (), {})(), NvidiaTool=lambda path, version: version)
    package.knobs = tools  # type: ignore[attr-defined]
    numpy = types.ModuleType("numpy")
    numpy._get_promotion_state = lambda: "known"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "numpy", numpy)
    monkeypatch.setitem(sys.modules, "triton", package)
    monkeypatch.setitem(sys.modules, "triton._internal_testing", testing)
    monkeypatch.syspath_prepend(str(triton_tests.TESTS))
    import triton_names

    triton_names.pytest_configure()
    assert testing.is_xpu() == "known"
    assert testing.is_hopper() is False  # type: ignore[attr-defined]
    assert testing.float_dtypes_with_bfloat16 == ["float32", "bfloat16"]  # type: ignore[attr-defined]
    assert numpy._get_promotion_state() == "known"  # type: ignore[attr-defined]
