"""The folders of macatorch/csrc are layers, listed in docs/architecture.md: no include runs upward or in a circle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, Set

import pytest

from .includes import circle, included

CHECKOUT = Path(__file__).resolve().parents[2]
CSRC = CHECKOUT / "macatorch" / "csrc"
LISTED = re.compile(r"^(\w+)/ +\S", re.MULTILINE)
GENERATED = "registered/"  # by codegen/operators.py: declarations at the height of dispatch/, and a file's own end


def layers(document: str) -> List[str]:
    """The folders from the top down, the files of csrc itself first: they may include everything."""
    block = document.split("in layers;", 1)[1].split("```")[1]
    return ["", *LISTED.findall(block)]


def sources(root: Path) -> Dict[str, Set[str]]:
    """What each source file includes of the others."""
    files = [path for path in root.rglob("*") if path.suffix in (".h", ".cpp")]
    return {
        str(path.relative_to(root)): {name for name in included(path) if not name.startswith(GENERATED)}
        for path in files
    }


def layer(file: str) -> str:
    return file.split("/", 1)[0] if "/" in file else ""


def upward(includes: Dict[str, Set[str]], order: List[str]) -> List[str]:
    return sorted(
        f"{file} includes {other}"
        for file, others in includes.items()
        for other in others
        if order.index(layer(other)) < order.index(layer(file))
    )


def test_every_folder_of_csrc_is_a_listed_layer() -> None:
    listed = layers((CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted({layer(file) for file in sources(CSRC)})


def test_includes_name_a_file_from_csrc_on() -> None:
    missing = [
        f"{file} includes {other}"
        for file, others in sources(CSRC).items()
        for other in others
        if not (CSRC / other).is_file()
    ]
    assert missing == []


def test_no_include_runs_upward() -> None:
    order = layers((CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert upward(sources(CSRC), order) == []


def test_no_includes_run_in_a_circle() -> None:
    assert circle(sources(CSRC)) == []


@pytest.mark.parametrize(
    "includes, found",
    [
        ({"a/one.h": set(), "a/two.cpp": {"a/one.h"}}, []),
        ({"a/one.cpp": {"a/two.h"}, "a/one.h": set(), "a/two.cpp": {"a/one.h"}}, ["a/one", "a/two", "a/one"]),
        ({"a/one.h": {"a/two.h"}, "a/two.h": {"a/x.h"}, "a/x.h": {"a/two.h"}}, ["a/two", "a/x", "a/two"]),
    ],
)
def test_circles_are_found(includes: Dict[str, Set[str]], found: List[str]) -> None:
    assert circle(includes) == found


def test_upward_includes_are_found() -> None:
    includes = {"low/a.h": {"high/b.h"}, "high/b.h": set(), "c.cpp": {"high/b.h", "low/a.h"}}
    assert upward(includes, ["", "high", "low"]) == ["low/a.h includes high/b.h"]
