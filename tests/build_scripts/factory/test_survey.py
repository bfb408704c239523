"""What a new release's wheel says about itself, and what becomes of it."""

from pathlib import Path
from typing import Dict

import pytest

from build_scripts import releases
from build_scripts.commands import add_release
from build_scripts.errors import FactoryError
from build_scripts.factory import patches, survey

VERSION = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '{version}+cu{digits}'
debug = False
cuda: Optional[str] = '{cuda}'
git_version = '{commit}'
hip: Optional[str] = None
rocm: Optional[str] = None
xpu: Optional[str] = None
"""


def facts(version: str, cuda: str, commit: str) -> str:
    return VERSION.format(version=version, digits=cuda.replace(".", ""), cuda=cuda, commit=commit)


def test_the_facts_are_the_strings_that_the_wheel_assigns() -> None:
    found = survey.facts_of(facts("2.99.0", "13.2", "abc"))
    assert found == {"__version__": "2.99.0+cu132", "cuda": "13.2", "git_version": "abc"}


def test_the_patch_of_the_version_is_made_anew_for_each_release() -> None:
    text = (releases.CHECKOUT / "patches" / "2.12.1" / "0001-version.patch").read_text(encoding="utf-8")
    source = facts("2.99.0", "13.2", "abc")
    own = survey.own_version_patch(text, survey.facts_of(source), "2.99.0")
    parsed = patches.parse(own.replace(patches.PLACEHOLDER, "1.0.0"), "version")
    changed = patches.apply([patches.Patch("version", "", parsed)], lambda _: source.encode(), "2.99.0")
    result = survey.facts_of((changed["torch/version.py"] or b"").decode())
    assert result == {**survey.facts_of(source), "__version__": "2.99.0+maca1.0.0", "maca": "1.0.0"}


@pytest.mark.parametrize("text", ["2.99", "newest", "2.99.0rc1", "2.99.0+cpu"])
def test_what_is_no_release_is_refused(text: str, table: releases.Table) -> None:
    with pytest.raises(FactoryError, match="Write it as"):
        add_release.checked_version(text, table)


def test_a_release_of_the_table_is_refused(table: releases.Table) -> None:
    with pytest.raises(FactoryError, match=r"torch 2\.6\.0 is in the table already"):
        add_release.checked_version("2.6.0", table)


def test_a_release_that_was_added_is_a_row_that_can_be_read(
    table: releases.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is written, and the table of releases last."""
    tables: Dict[str, str] = {}
    for path in (releases.TABLE, releases.TABLE.with_name(releases.COMPANIONS)):
        tables[path.name] = path.read_text(encoding="utf-8")
        target = tmp_path / "build_scripts" / path.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(tables[path.name], encoding="utf-8")
    monkeypatch.setattr(add_release, "TABLE", tmp_path / "build_scripts" / "releases.toml")
    file = "torch-2.99.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    wheel = releases.UpstreamWheel("2.99.0", "3.11", file, 5, "a" * 64)
    part = releases.UpstreamWheel("3.99.0", "3.11", file.replace("torch-2", "triton-3"), 5, "b" * 64, "triton")
    result = survey.Survey("13.2", 1, {"0001-own.patch": "Why.\n", "2.12.1/0002-preload.patch": None})
    result.symbols, result.dtypes = {"cudart/symbols.13.txt": ["cudaNew"]}, "Half = []\n"
    text = add_release.release_text("2.99.0", result, "3.11", {"triton": "3.99.0"}, [wheel])
    rows = [add_release.companion_text("triton", "3.99.0", [part], table)]
    add_release.write("2.99.0", result, text, rows, tmp_path)

    written = releases.load(tmp_path / "build_scripts" / "releases.toml")
    release = written.release("2.99.0")
    assert (release.cuda, release.cxx11_abi, release.tested, release.every_run) == ("13.2", 1, "3.11", False)
    assert release.wheel_for("3.11") == wheel
    # No default before its tests have been passed.
    assert release.trial and written.newest_for("3.11") == table.newest_for("3.11")
    assert [(c.name, c.version) for c in written.built_companions(release)] == [("triton", "3.99.0")]
    folder = tmp_path / "patches" / "2.99.0"
    assert (folder / "series").read_text() == "0001-own.patch\n2.12.1/0002-preload.patch\n"
    assert (folder / "0001-own.patch").read_text() == "Why.\n"
    assert sorted(path.name for path in folder.iterdir()) == ["0001-own.patch", "series"]
    assert (tmp_path / "cu_bridge/shims/cudart/symbols.13.txt").read_text() == "cudaNew\n"
    assert (tmp_path / "macatorch/cpu_dtypes/2.99.0.toml").read_text() == "Half = []\n"
    with pytest.raises(FactoryError, match="already"):
        add_release.checked_version("2.99.0", written)
