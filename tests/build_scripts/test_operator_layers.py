"""The folders of macatorch/csrc are layers, listed in docs/architecture.md: no include runs upward or in a circle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, Set

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
CSRC = CHECKOUT / "macatorch" / "csrc"
LISTED = re.compile(r"^(\w+)/ +\S", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
GENERATED = "registered/"  # by codegen/operators.py: declarations at the height of dispatch/, and a file's own end
FILES = 20
LINES = 600


def layers(document: str) -> List[str]:
    """The folders from the top down, the files of csrc itself first: they may include everything."""
    block = document.split("in layers;", 1)[1].split("```")[1]
    return ["", *LISTED.findall(block)]


def sources(root: Path) -> Dict[str, Set[str]]:
    """What each source file includes of the others."""
    files = [path for path in root.rglob("*") if path.suffix in (".h", ".cpp")]
    return {
        str(path.relative_to(root)): {
            name for name in INCLUDE.findall(path.read_text(encoding="utf-8")) if not name.startswith(GENERATED)
        }
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


def circle(includes: Dict[str, Set[str]]) -> List[str]:
    """Units (header and source file), each of which includes the next, the last one the first; [] if there are none."""
    needs: Dict[str, Set[str]] = {}
    for file, others in includes.items():
        unit = file.rsplit(".", 1)[0]
        needs.setdefault(unit, set()).update(other.rsplit(".", 1)[0] for other in others)
        needs[unit].discard(unit)
    done: Set[str] = set()

    def visit(unit: str, path: List[str]) -> List[str]:
        if unit in path:
            return [*path[path.index(unit) :], unit]
        if unit not in done:
            for other in sorted(needs.get(unit, ())):
                found = visit(other, [*path, unit])
                if found:
                    return found
            done.add(unit)
        return []

    return next((found for unit in sorted(needs) for found in [visit(unit, [])] if found), [])


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


def test_no_folder_and_no_file_is_too_long() -> None:
    files = [CSRC / file for file in sources(CSRC)]
    folders = {folder: sum(path.parent == folder for path in files) for folder in {path.parent for path in files}}
    assert [str(folder) for folder, count in folders.items() if count > FILES] == []
    assert [str(path) for path in files if len(path.read_text(encoding="utf-8").splitlines()) > LINES] == []


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
