"""Lines, files and folders that are too long are named, and paragraphs are wrapped without a word changed."""

from pathlib import Path
from typing import Callable, List

import pytest

from build_scripts.errors import FactoryError
from build_scripts.quality import lint, prose
from build_scripts.quality.limits import Limits

TABLE = 'columns = 20\nlines = 3\nfiles = 2\ndata = [".toml"]\n'
EXCEPTION = '[[exception]]\nlimit = "{}"\npaths = ["{}"]\nreason = "why"\n'


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., List[str]]:
    """`check(files, exceptions)`: what is said of a checkout with these files."""

    def run(files: "dict[str, str]", exceptions: str = "exception = []\n") -> List[str]:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        table = tmp_path / "limits.toml"
        table.write_text(TABLE + exceptions)
        return Limits(list(files), tmp_path, table).failures()

    return run


def test_what_is_too_long_is_named(check: Callable[..., List[str]]) -> None:
    files = {
        "a/x.cpp": "x " * 11,
        "a/y.h": "1\n2\n3\n4\n",
        "a/z.sh": "",
        "b/data.toml": "x" * 99,
        "d.md": "1\n2\n3\n4\n",
    }
    assert check(files) == [
        "a/x.cpp:1 has 22 columns, more than 20",
        "a/y.h has 4 lines, more than 3",
        "a holds 3 source files, more than 2",
    ]


def test_a_word_that_cannot_be_divided_may_be_longer(check: Callable[..., List[str]]) -> None:
    assert check({"a/x.cpp": "x" * 101}) == []


def test_an_exception_is_of_one_limit_and_has_a_reason(check: Callable[..., List[str]]) -> None:
    assert check({"a/x.cpp": "x" * 21}, EXCEPTION.format("columns", "a/*")) == []
    assert check({"a/x.cpp": "x" * 21}, EXCEPTION.format("lines", "a/*"))
    with pytest.raises(FactoryError, match="an exception needs a limit, paths and a reason"):
        check({"a/x.cpp": ""}, EXCEPTION.format("columns", "a/*").replace("why", ""))


def test_every_exception_is_needed() -> None:
    """The table shrinks with what it excepts."""
    files = Limits(lint.tracked([""])).unneeded()
    assert not files


def test_a_long_paragraph_is_wrapped_and_everything_else_stays() -> None:
    code = "    code that is longer than forty columns, all of it\n"
    table = "| a table | that is longer than forty columns |\n"
    fence = "```\nfenced code that is longer than forty columns\n```\n"
    short = "A short\nparagraph.\n\n"
    long = "- an entry of a list that is longer than 40\n  columns, in two lines\n"
    wrapped = "- an entry of a list that is longer than\n  40 columns, in two lines\n"
    text = "\n".join((short, code, table, fence))
    assert prose.wrapped(text + long, 40) == text + wrapped


def test_no_line_begins_with_what_would_be_something_else_there() -> None:
    lines = prose.wrapped("words and words and 1. words - words", 20).split("\n")
    assert lines == ["words and words", "and 1. words - words"]


def test_comments_are_wrapped_behind_their_slashes() -> None:
    source = '  // A comment that is longer than forty columns.\n  f("// text that is longer than forty columns");\n'
    wrapped = (
        '  // A comment that is longer than forty\n  // columns.\n  f("// text that is longer than forty columns");\n'
    )
    assert prose.wrapped_comments(source, 40) == wrapped
