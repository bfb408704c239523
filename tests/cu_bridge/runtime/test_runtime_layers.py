"""The runtime's folders are layers: what lies in one needs only what lies in it or below, and no two files each other.

The layers, from the lowest up, are the rows of the table in docs/runtime.md.
"""

import pathlib
import re
from typing import Dict, List, Set

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
RUNTIME = REPOSITORY / "cu_bridge" / "runtime" / "src"

DEFINITION = re.compile(r"^\w[\w ]*[ *](mc[A-Z]\w*)\([^;{]*\) \{", re.MULTILINE)
CALL = re.compile(r"\b(mc[A-Z]\w*)\(")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def layers() -> List[str]:
    """Return the folders of the runtime, the lowest first."""
    text = (REPOSITORY / "docs" / "runtime.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)/` \|", text[text.index("## Layers") :], re.MULTILINE)


def unit_of(path: pathlib.Path) -> str:
    """Return what a file is a part of: `folder/x` for x.h, x.cpp, and x_y.cpp where y has no header of its own."""
    stem = path.stem
    while not path.with_name(stem + ".h").exists() and "_" in stem:
        stem = stem.rpartition("_")[0]
    known = path.with_name(stem + ".h").exists()
    return f"{path.parent.name}/{stem if known else path.stem}"


def needs(root: pathlib.Path) -> Dict[str, Set[str]]:
    """Return which units each unit needs: by an include, or by a call of the C interface."""
    texts: Dict[str, str] = {}
    for path in sorted(root.glob("*/*")):
        texts[unit_of(path)] = texts.get(unit_of(path), "") + path.read_text(encoding="utf-8")
    defined = {name: unit for unit, text in texts.items() for name in DEFINITION.findall(text)}
    result: Dict[str, Set[str]] = {}
    for unit, text in texts.items():
        folder = unit.partition("/")[0]
        found = {defined[name] for name in CALL.findall(text) if name in defined}
        for name in INCLUDE.findall(text):
            for path in (root / name, root / folder / name):
                if path.exists():
                    found.add(unit_of(path))
        result[unit] = found - {unit}
    return result


def circle(graph: Dict[str, Set[str]]) -> List[str]:
    """Return units that need each other in a ring, or nothing."""
    finished: Set[str] = set()

    def visit(unit: str, way: List[str]) -> List[str]:
        if unit in way:
            return [*way[way.index(unit) :], unit]
        if unit in finished:
            return []
        for other in sorted(graph[unit]):
            found = visit(other, [*way, unit])
            if found:
                return found
        finished.add(unit)
        return []

    for unit in sorted(graph):
        found = visit(unit, [])
        if found:
            return found
    return []


def upward(graph: Dict[str, Set[str]], order: List[str]) -> List[str]:
    """Return what needs something of a higher layer."""
    height = {folder: number for number, folder in enumerate(order)}
    return [
        f"{unit} needs {other}"
        for unit, others in sorted(graph.items())
        for other in sorted(others)
        if height[other.partition("/")[0]] > height[unit.partition("/")[0]]
    ]


def test_every_folder_is_a_layer() -> None:
    assert sorted(layers()) == sorted(path.name for path in RUNTIME.iterdir())


def test_nothing_needs_a_higher_layer() -> None:
    assert upward(needs(RUNTIME), layers()) == []


def test_no_two_files_need_each_other() -> None:
    assert circle(needs(RUNTIME)) == []


def test_a_circle_is_found_whether_it_includes_or_calls(tmp_path: pathlib.Path) -> None:
    for name, text in {
        "low/one.h": "",
        "low/one.cpp": "mcError_t mcOne(void) {\n  return mcTwo();\n}\n",
        "high/two.cpp": '#include "low/one.h"\nmcError_t mcTwo(void) {\n  return 0;\n}\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    graph = needs(tmp_path)
    assert circle(graph) == ["high/two", "low/one", "high/two"]
    assert upward(graph, ["low", "high"]) == ["low/one needs high/two"]
