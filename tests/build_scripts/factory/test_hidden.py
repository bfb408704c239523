"""Symbols that another library defines in the place of one of upstream's."""

import ctypes
from pathlib import Path

import pytest

from build_scripts.errors import FactoryError
from build_scripts.factory import elf, hidden

from ..small import compile_library, compiler

pytestmark = pytest.mark.skipif(not compiler(), reason="needs a C compiler")
UPSTREAMS = "int answer(void) { return 1; }\nint other(void) { return 3; }\nint longer_answer(void) { return 5; }\n"


def test_the_next_definition_takes_the_place(tmp_path: Path) -> None:
    upstreams = compile_library(tmp_path, "libupstream_hidden.so", UPSTREAMS.replace("longer_answer", "third"))
    ours = compile_library(tmp_path, "libours_hidden.so", "int answer(void) { return 2; }\n")
    hidden.hide(upstreams, {"answer"})
    options = ("-Wl,--no-as-needed", "-lupstream_hidden", "-lours_hidden", f"-Wl,-rpath,{tmp_path}")
    user = compile_library(
        tmp_path,
        "libuser.so",
        "int answer(void); int other(void);\nint ask(void) { return 10 * answer() + other(); }",
        *options,
    )
    with elf.open_elf(user) as library:
        assert library.needed[:2] == [upstreams.name, ours.name]
    assert ctypes.CDLL(str(user)).ask() == 23


def test_a_name_that_is_not_defined_is_told_and_nothing_changes(tmp_path: Path) -> None:
    library = compile_library(tmp_path, "libupstream.so", UPSTREAMS)
    before = library.read_bytes()
    with pytest.raises(FactoryError, match="does not define missing"):
        hidden.hide(library, {"other", "missing"})
    assert library.read_bytes() == before


def test_a_name_within_another_one_is_told(tmp_path: Path) -> None:
    """A linker stores a name that ends a longer one within that."""
    library = compile_library(tmp_path, "libupstream.so", "int one_answer(void) { return 1; }\n"
                              "int answer(void) { return 2; }\n", "-Wl,-O2")  # fmt: skip
    assert library.read_bytes().count(b"\0answer\0") <= 1  # the static table has it once more
    with pytest.raises(FactoryError, match="the end of another"):
        hidden.hide(library, {"answer"})
