"""The table of releases, and what is chosen from it."""

import dataclasses
import datetime
import re
from pathlib import Path

import pytest
from packaging.utils import parse_wheel_filename

from build_scripts import python_names, releases
from build_scripts.commands import list as list_command
from build_scripts.commands import test as test_command
from build_scripts.errors import FactoryError
from build_scripts.quality import pythons


def test_both_first_releases_are_in_the_table(table: releases.Table) -> None:
    pythons_of = {release.torch: [wheel.python for wheel in release.wheels] for release in table.releases}
    assert {"3.9", "3.10", "3.11", "3.12", "3.13"} <= set(pythons_of["2.6.0"])
    assert {"3.10", "3.11", "3.12", "3.13", "3.14"} <= set(pythons_of["2.12.1"])


def test_the_page_of_releases_says_what_the_tables_say(table: releases.Table) -> None:
    page = (releases.CHECKOUT / "docs" / "releases.md").read_text(encoding="utf-8")
    assert list_command.markdown(table) in page, "python -m build_scripts list --markdown prints the table"


def test_every_row_agrees_with_its_file_name(table: releases.Table) -> None:
    for release in table.releases:
        assert release.cuda_major in (12, 13)
        for wheel in release.wheels:
            name, version, _, tags = parse_wheel_filename(wheel.file)
            assert (name, str(version)) == ("torch", release.torch)
            assert {tag.abi for tag in tags} == {wheel.python_tag}
            assert {tag.interpreter for tag in tags} == {python_names.interpreter_tag(wheel.python)}
            assert {tag.platform for tag in tags} == set(wheel.platforms)
            assert re.fullmatch("[0-9a-f]{64}", wheel.sha256)


def test_every_row_of_a_companion_has_a_file_for_its_python(table: releases.Table) -> None:
    for companion in table.companions:
        for wheel in companion.wheels:
            name, version, _, tags = parse_wheel_filename(wheel.file)
            assert (name, str(version)) == (companion.name, companion.version)
            assert {tag.abi for tag in tags} == {wheel.abi}
            (interpreter,) = {tag.interpreter for tag in tags}
            if wheel.abi == "abi3":
                assert "abi3" in python_names.abis(wheel.python), "the stable ABI needs the lock"
                assert int(interpreter[3:]) <= int(wheel.python.split(".")[1])
            elif wheel.abi == "none":
                assert interpreter == "py3"
            else:
                assert (interpreter, wheel.abi) == (python_names.interpreter_tag(wheel.python), wheel.python_tag)


@pytest.mark.parametrize(
    "text, version",
    [
        ("3.10", "3.10"),
        ("310", "3.10"),
        ("cp312", "3.12"),
        ("3.11.7", "3.11"),
        ("38", "3.8"),
        ("3.14t", "3.14t"),
        ("cp314t", "3.14t"),
    ],
)
def test_a_python_version_is_understood_in_every_spelling(text: str, version: str) -> None:
    assert python_names.parse(text) == version


@pytest.mark.parametrize("text", ["three", "3", "3.x", "cp", "t", "3.14tt"])
def test_what_is_no_python_version_is_refused(text: str) -> None:
    with pytest.raises(FactoryError, match="is no Python version"):
        python_names.parse(text)


def test_the_newest_release_that_fits_is_the_default(table: releases.Table) -> None:
    assert table.newest_for("3.8").torch == "2.4.0" and table.newest_for("3.9").torch == "2.6.0"
    assert table.newest_for("3.12").torch == max(
        (r.torch for r in table.releases if not r.trial), key=lambda t: [int(n) for n in t.split(".")]
    )


def test_a_release_on_trial_is_taken_by_name_alone(table: releases.Table) -> None:
    tried = dataclasses.replace(table.release("2.12.1"), torch="9.0.0", every_run=False, trial=True)
    changed = dataclasses.replace(table, releases=(*table.releases, tried))
    assert changed.newest_for("3.12").torch == table.newest_for("3.12").torch
    assert changed.release("9.0.0") is tried
    alone = dataclasses.replace(table, releases=(tried,))
    assert test_command.todays(alone, datetime.date(2026, 1, 1)).short == []
    old = [dataclasses.replace(r, trial="3.8" in [w.python for w in r.wheels]) for r in table.releases]
    with pytest.raises(FactoryError, match=r"No release has a wheel for Python 3\.8") as caught:
        dataclasses.replace(table, releases=tuple(old)).newest_for("3.8")
    assert "3.8" not in str(caught.value.way_out) and "3.9" in str(caught.value.way_out)


def test_a_companion_is_left_out_for_a_python_that_it_is_not_for(table: releases.Table) -> None:
    release = table.release("2.4.0")
    names = {python: [c.name for c in table.built_companions(release, python)] for python in ("3.8", "3.9")}
    assert names["3.9"] == [c.name for c in table.built_companions(release)] and "flash_attn" in names["3.9"]
    assert names["3.8"] == [name for name in names["3.9"] if name != "flash_attn"]


def test_an_unknown_release_is_refused_with_the_known_ones(table: releases.Table) -> None:
    with pytest.raises(FactoryError, match=r"torch 1\.0\.0 is not in the table of releases") as caught:
        table.release("1.0.0")
    assert "2.6.0" in str(caught.value)


def test_a_python_without_a_wheel_is_refused_with_those_that_have_one(table: releases.Table) -> None:
    with pytest.raises(FactoryError, match=r"torch 2\.6\.0 has no wheel for Python 3\.7") as caught:
        table.release("2.6.0").wheel_for("3.7")
    assert "3.10" in str(caught.value)
    with pytest.raises(FactoryError, match=r"No release has a wheel for Python 3\.7"):
        table.newest_for("3.7")


def test_a_broken_table_is_reported_as_such(tmp_path: Path) -> None:
    path = tmp_path / "releases.toml"
    path.write_text("[[release]]\ntorch = \n")
    with pytest.raises(FactoryError, match="is not a valid table of releases"):
        releases.load(path)


def test_an_interpreter_that_is_not_there_is_reported_with_the_way_out() -> None:
    with pytest.raises(FactoryError, match=r"No Python 3\.99") as caught:
        pythons.find("3.99")
    assert "PYTHON=" in str(caught.value)


def test_the_running_python_is_found() -> None:
    version = python_names.running()
    assert pythons.works(pythons.find(version), version)


def test_releases_that_are_not_in_every_run_take_turns(table: releases.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    rare = [dataclasses.replace(table.release("2.6.0"), torch=f"9.{i}.0", every_run=False) for i in range(3)]
    monkeypatch.setattr(test_command, "available_wheel", lambda release: release.wheels[0])
    changed = dataclasses.replace(table, releases=(*table.releases, *rare))
    day = datetime.date(2026, 1, 1)
    others = [release.torch for release in changed.releases if not release.every_run and not release.trial]
    turns = [test_command.todays(changed, day + datetime.timedelta(days=i)) for i in range(len(others) + 1)]
    assert sorted(release.torch for turn in turns for release, _wheel in turn.short) == sorted(others)
    # The emulated processor takes a turn of its own.
    assert sorted((len(turn.short), turn.emulated) for turn in turns) == [(0, True), *[(1, False)] * len(others)]
    # Without any other release it has all of them.
    whole = [release for release in table.releases if release.every_run]
    assert test_command.todays(dataclasses.replace(table, releases=tuple(whole)), day) == ([], True)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_long_file_runs_in_one_release_a_day_and_in_all_of_them_in_turns(count: int) -> None:
    runs = set()
    for ordinal in range(count):
        day = datetime.date(2026, 1, 1) + datetime.timedelta(days=ordinal)
        kept = [set(test_command.BY_TURNS).difference(test_command.left_to_others(i, count, day)) for i in range(count)]
        assert sum(map(len, kept)) == len(test_command.BY_TURNS) == len(set().union(*kept))
        runs.update((i, name) for i, names in enumerate(kept) for name in names)
    assert len(runs) == count * len(test_command.BY_TURNS)


def test_the_long_files_are_there() -> None:
    tests = Path(__file__).resolve().parents[1]
    assert [name for name in test_command.BY_TURNS if not (tests / name).is_file()] == []


def test_a_release_without_a_python_here_is_never_the_days(
    table: releases.Table, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def none(release: releases.Release) -> None:
        raise FactoryError(f"torch {release.torch} needs Python 3.99.", "Install it.")

    rare = dataclasses.replace(table.release("2.6.0"), torch="9.0.0", every_run=False)
    monkeypatch.setattr(test_command, "available_wheel", none)
    assert test_command.todays(dataclasses.replace(table, releases=(rare,)), datetime.date(2026, 1, 1)).short == []
    assert "torch 9.0.0 is never" in capsys.readouterr().out


def test_an_emulated_suite_without_its_tools_says_so_and_builds_nothing(
    table: releases.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def none(target: object) -> None:
        raise FactoryError("No emulator for aarch64.", "Install one.")

    monkeypatch.setattr(test_command.native, "compiler", lambda target: "g++")
    monkeypatch.setattr(test_command.emulation, "emulator", none)
    release = table.release("2.12.1")
    chosen = [(release, release.wheel_for("3.11", "x86_64"))]
    suite = test_command._emulated(table, chosen, tmp_path / "wheels", test_command.Suites([]))
    assert suite.folders == ("emulated",) and not (tmp_path / "wheels").exists()
    assert "no wheels for aarch64: No emulator for aarch64." in capsys.readouterr().out
