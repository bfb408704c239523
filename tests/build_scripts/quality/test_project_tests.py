"""The tests of the companions' projects: where they are found, and what is run of them."""

import sys
import tarfile
import types
from pathlib import Path

import pytest

from build_scripts import releases
from build_scripts.__main__ import main
from build_scripts.errors import FactoryError
from build_scripts.quality import conformity, conformity_report, project_tests


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
    assert (
        project_tests.triton_folder(sources, "3.2.0")
        == project_tests.triton_folder(sources / "triton-3.2", "3.2.0")
        == tests
    )
    assert project_tests.triton_files(tests) == ["unit/language/test_core.py", "unit/runtime/test_cache.py"]


@pytest.mark.parametrize("given", ["triton-3.7", "nothing", None])
def test_a_folder_without_tests_is_named(sources: Path, given: "str | None") -> None:
    """Another release, a folder that is not there, no folder at all."""
    with pytest.raises(FactoryError, match="holds no python/test/unit|in no wheel"):
        project_tests.triton_folder(sources / given if given else None, "3.2.0")
    if given == "triton-3.7":
        with pytest.raises(FactoryError, match="3.7.1"):
            project_tests.triton_folder(sources, "3.7.1")


@pytest.mark.parametrize("torch", [release.torch for release in releases.load().releases])
def test_every_expected_failure_has_a_reason(torch: str) -> None:
    """The file of expected failures is read as that of upstream's other tests."""
    places = ("unit/", f"{conformity.RANDOM}.py::")
    for entry in conformity_report.load(torch, project_tests.TRITON_EXPECTED):
        assert all(test.startswith(places) for test in entry.tests), entry
    for entry in conformity_report.load(torch, project_tests.TABLE):
        assert all(".py::" in test for test in entry.tests), entry


def apex_in(folder: Path) -> Path:
    """Return sources of apex with one test and one helper."""
    for name in ("run_mlp/test_mlp.py", "run_mlp/helper.py"):
        path = folder / "apex" / "tests" / "L0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return folder / "apex"


def test_tests_in_given_sources_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, the folder around it, or an archive; with a row's files alone."""
    monkeypatch.setenv("MACATORCH_CACHE", str(tmp_path / "cache"))
    sources = apex_in(tmp_path / "given")
    archive = tmp_path / "apex.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(sources, "apex-0.1")
    table = releases.load()
    for given in (sources, sources.parent, archive):
        found = project_tests.find("apex", table, table.release("2.6.0"), given)
        assert found.files == ("run_mlp/test_mlp.py",)
        assert (found.folder / found.files[0]).is_file()


def test_what_cannot_be_found_is_named(tmp_path: Path) -> None:
    """No sources, sources of something else, a file that is no archive, a release without the companion."""
    table = releases.load()
    release = table.release("2.6.0")
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "empty" / "tests" / "L0").mkdir(parents=True)
    (tmp_path / "another").mkdir()
    for given, words in (
        (None, "are in no archive here"),
        (tmp_path, "holds no tests/L0 of apex"),
        (tmp_path / "text", "is no archive"),
        (tmp_path / "empty", "holds no tests of apex"),
    ):
        with pytest.raises(FactoryError, match=words):
            project_tests.find("apex", table, release, given)
    with pytest.raises(FactoryError, match="2.15.0 has no apex"):
        project_tests.find("apex", table, table.release("2.15.0"), None)


def test_projects_are_run_one_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Each has an environment and outcomes of its own."""
    command = ["conformity", "--torch", "2.6.0", "--python", "3.10", "--only", "triton", "--only", "apex"]
    assert main(command) != 0
    assert "a run of its own" in capsys.readouterr().err


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
    monkeypatch.syspath_prepend(str(project_tests.TESTS))
    import triton_names

    triton_names.pytest_configure()
    assert testing.is_xpu() == "known"
    assert testing.is_hopper() is False  # type: ignore[attr-defined]
    assert testing.float_dtypes_with_bfloat16 == ["float32", "bfloat16"]  # type: ignore[attr-defined]
    assert numpy._get_promotion_state() == "known"  # type: ignore[attr-defined]
