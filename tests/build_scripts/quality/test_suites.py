"""What a run of several suites says at its end, when its log is long and only the end is read."""

import sys
from pathlib import Path

import pytest

from build_scripts.quality import suites

FAILING = """
import pytest

def test_good():
    pass

def test_bad():
    assert 1 == 2, "one is not two"

@pytest.fixture
def broken():
    raise OSError("no such device")

def test_without_a_fixture(broken):
    pass
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    for name, text in (("good", "def test_good(): pass\n"), ("bad", FAILING)):
        (folder / "tests" / name).mkdir(parents=True)
        (folder / "tests" / name / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.setattr(suites, "CHECKOUT", folder)
    return folder


def test_failures_are_named_with_their_suite_at_the_end(checkout: Path) -> None:
    runs = suites.Suites(["-p", "no:cacheprovider"])
    runs.run([suites.Suite(name, sys.executable, [name]) for name in ("bad", "good")])
    runs.check("lint", ["a.py is too long"])
    assert runs.failed == ["bad", "lint"]
    bad, broken, lint = runs.short_failures()
    assert bad.startswith("bad: tests.bad.test_bad::test_bad: AssertionError: one is not two")
    assert broken.startswith("bad: tests.bad.test_bad::test_without_a_fixture: ") and "no such device" in broken
    assert lint == "lint: a.py is too long"
    assert "2 failed, 2 passed, 1 errors" in runs.summary()


def test_many_failures_are_cut_and_counted(checkout: Path) -> None:
    runs = suites.Suites([])
    runs.check("lint", [f"{number}: " + "x" * 300 for number in range(25)])
    lines = runs.short_failures()
    assert len(lines) == 21 and lines[-1] == "and 5 more"
    assert all(len(line) <= 200 for line in lines)


def test_a_suite_without_a_report_is_named(checkout: Path) -> None:
    runs = suites.Suites(["--no-such-option"])
    runs.run([suites.Suite("good", sys.executable, ["good"])])
    assert runs.failed == ["good"]
    assert runs.short_failures() == ["good: pytest left no report"]
