"""tests/release_facts.toml is the one place that says what an old release lacks."""

import re
import sys
from pathlib import Path

import pytest

from build_scripts import releases

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import release_facts

TESTS = Path(__file__).resolve().parents[1]
NAMED = re.compile(r'release_facts\.(?:has|wants|need|need_for_module)\("(\w+)"\)')
# In release_facts.py itself, whose functions stand for several tests.
NAMED_WITHIN = re.compile(r'(?<![\w.])has\("(\w+)"\)')
BY_LETTERS = re.compile(r"__version__\.startswith")


def sources() -> "list[Path]":
    return [path for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__).resolve()]


def test_every_row_is_named_by_a_test_and_every_name_is_a_row() -> None:
    named = {name for path in sources() for name in NAMED.findall(path.read_text(encoding="utf-8"))}
    named.update(NAMED_WITHIN.findall(Path(release_facts.__file__).read_text(encoding="utf-8")))
    assert named == set(release_facts.ROWS)


def test_no_test_knows_releases_by_their_first_letters() -> None:
    assert [path.name for path in sources() if BY_LETTERS.search(path.read_text(encoding="utf-8"))] == []


def test_a_row_that_every_release_has_is_none() -> None:
    table = releases.load()
    oldest = {"torch": min(release_facts.numbers(release.torch) for release in table.releases)}
    for name in {companion.name for companion in table.companions}:
        oldest[name] = min(release_facts.numbers(c.version) for c in table.companions if c.name == name)
    for name, row in release_facts.ROWS.items():
        assert release_facts.numbers(row["since"]) > oldest[row.get("package", "torch")], name
        assert row["reason"], name


def test_a_release_of_two_digits_is_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_facts.importlib.metadata, "version", lambda package: "2.12.1+maca1.0.0")
    assert release_facts.installed("2.7") and release_facts.installed("2.12") and not release_facts.installed("2.13")
    assert release_facts.has("nonzero_static_on_the_device")
    monkeypatch.setattr(release_facts.importlib.metadata, "version", lambda package: "2.4.0+maca1.0.0")
    assert not release_facts.has("nonzero_static_on_the_device")
    with pytest.raises(pytest.skip.Exception, match="exists on the CPU only"):
        release_facts.need("nonzero_static_on_the_device")
