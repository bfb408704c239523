"""What the user hands to make reaches the factory as it was given, and nothing in it is run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest

from build_scripts.__main__ import spread
from build_scripts.errors import FactoryError
from build_scripts.factory.native import UNUSABLE

from .small import CHECKOUT, SmallRelease

ODD = [
    "2.6.0",
    "a b",
    "  leading, trailing  ",
    "x; touch injected",
    "x && touch injected; y | touch injected &",
    "$(touch injected)",
    "`touch injected`",
    "$(shell touch injected)",
    "${shell touch injected}",
    "$$(touch injected)",
    "$(eval x:=$(shell touch injected))",
    "$HOME ${HOME} $$ $@ $(MAKE)",
    "it's",
    'a "b" c',
    "'; touch injected; '",
    '"; touch injected; "',
    "-rf",
    "--torch",
    "*",
    "~",
    "a\\ b\\",
    "# no comment",
    "a\ntouch injected\n",
    "é ü",
]
# Each command with the variables that it takes, and how they arrive.
TAKEN = {
    "wheels": {"TORCH": "--torch=", "PYTHON": "--python=", "FROM": "--from=", "FAST": "--fast="},
    "demo": {"TORCH": "--torch=", "PYTHON": "--python=", "FROM": "--from="},
    "bench": {"TORCH": "--torch=", "PYTHON": "--python=", "FROM": "--from="},
    "conformity": {"TORCH": "--torch=", "PYTHON": "--python=", "FROM": "--from=", "ARGS": ""},
    "test": {"TORCH": "--torch=", "FROM": "--from=", "ARGS": ""},
    "image": {"TORCH": "--torch=", "FROM": "--from=", "BASE": "--base=", "BOOTSTRAP": "--bootstrap="},
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The Makefile with an interpreter that writes its arguments down, in a folder with a space in its name."""
    folder = tmp_path / "a checkout"
    (folder / "build_scripts").mkdir(parents=True)
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(str(CHECKOUT / "Makefile"), str(folder))
    (folder / "build_scripts" / "tools.py").write_text("")
    program = folder / ".venv" / "bin" / "python"
    program.write_text("#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done > arguments\n")
    program.chmod(0o755)
    return folder


def make(checkout: Path, command: str, given: Dict[str, str], environment: Dict[str, str]) -> List[str]:
    """The arguments with which the factory was started."""
    # The tools count as installed: `true` says so.
    given = {"HOST_PYTHON": "true", **given}
    words = ["make", "-C", str(checkout), command, *(f"{name}={value}" for name, value in given.items())]
    # `make test TORCH=2.4.0` hands its variables on to these tests.
    outer = {"MAKEFLAGS", "MAKELEVEL", "ARCH", "SOURCES", *(name for taken in TAKEN.values() for name in taken)}
    kept = {key: value for key, value in os.environ.items() if key not in outer}
    done = subprocess.run(words, env={**kept, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    found = (checkout / "arguments").read_bytes().decode("utf-8").split("\0")[:-1]
    assert found[:2] == ["-m", "build_scripts"]
    assert not list(checkout.parent.rglob("injected")) and not Path("injected").exists()
    return found[3:]


@pytest.mark.parametrize("command", TAKEN)
def test_every_variable_arrives_as_one_word_and_nothing_in_it_is_run(checkout: Path, command: str) -> None:
    # All variables at once, each time with the values moved on by one.
    names = list(TAKEN[command])
    for shift in range(len(ODD)):
        values = {name: ODD[(shift + number) % len(ODD)] for number, name in enumerate(names)}
        if shift % 2:
            found = make(checkout, command, {}, values)
        else:
            found = make(checkout, command, values, {})
            # make itself drops them from a definition of the command line.
            values = {name: value.lstrip(" ") for name, value in values.items()}
        expected = [TAKEN[command][name] + values[name] for name in names if name != "ARGS"]
        if command == "test":
            expected.append("--")
        if "ARGS" in values:
            expected += ["--args", values["ARGS"]]
        assert found == expected


def test_what_is_not_given_is_not_there(checkout: Path) -> None:
    assert make(checkout, "wheels", {}, {}) == []
    assert make(checkout, "test", {"TORCH": ""}, {}) == ["--"]


def test_an_interpreter_with_a_space_in_its_path_makes_the_tools(checkout: Path) -> None:
    program = checkout / "my python"
    program.symlink_to(sys.executable)
    (checkout / "build_scripts" / "tools.py").write_text("open('level', 'w').write(__import__('sys').argv[1])")
    make(checkout, "image", {"HOST_PYTHON": str(program)}, {})
    assert (checkout / "level").read_text() == "image"


def test_args_are_divided_as_a_shell_divides_words_and_expanded_by_nobody() -> None:
    given = "-k \"a and b\" --x='$HOME `id` *' ; c"
    words = ["-k", "a and b", "--x=$HOME `id` *", ";", "c"]
    assert spread(["test", "--", "--args", given]) == ["test", "--", *words]
    assert spread(["test", "--torch", "2.6.0"]) == ["test", "--torch", "2.6.0"]
    assert spread(["test", "--args"]) == ["test", "--args"]
    with pytest.raises(FactoryError, match="No closing quotation"):
        spread(["test", "--args", "-k 'a"])


def test_a_quote_that_is_not_closed_is_wrong_usage(small_release: SmallRelease) -> None:
    done = small_release.run("test", "--", "--args", "-k 'a")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ARGS cannot be divided into words: No closing quotation")
    assert "Traceback" not in done.stderr


def test_a_build_works_with_spaces_in_every_path(
    small_release: SmallRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkout, cache, upstream's wheel and output; the wheels are those of a build without spaces."""
    assert small_release.build().returncode == 0
    before = [path.read_bytes() for path in (small_release.built, small_release.sdk)]
    room = tmp_path / "a room with (spaces) 'and' more & #1"
    room.mkdir()
    # What CMake takes for signs of its own may be anywhere but in the cache.
    checkout, output = room / 'the "check;out, [1] | $HOME 2\\', room / "the output; 2"
    shutil.copytree(str(small_release.checkout), str(checkout))
    shutil.copy(str(small_release.wheel), str(room))
    monkeypatch.setenv("MACATORCH_CACHE", str(room / "the cache"))
    moved = SmallRelease(checkout, room / small_release.wheel.name)
    done = moved.build("--output", str(output))
    assert done.returncode == 0, done.stderr
    assert [(output / path.name).read_bytes() for path in (moved.built, moved.sdk)] == before


@pytest.mark.parametrize("sign", UNUSABLE)
def test_a_cache_in_whose_path_cmake_cannot_build_is_refused_at_once(
    small_release: SmallRelease, tmp_path: Path, sign: str
) -> None:
    done = small_release.build(MACATORCH_CACHE=str(tmp_path / f"a{sign}b"))
    assert done.returncode == 1 and "Copying" not in done.stderr
    assert "which CMake or the linker would take apart" in done.stderr and "MACATORCH_CACHE" in done.stderr
