"""How cucc is divided: no file imports itself by way of others. Lengths are checked by `make lint`."""

import ast
import pathlib
from typing import Dict, Iterator, List, Set

import pytest


@pytest.fixture(scope="session")
def folder(sdk: pathlib.Path) -> pathlib.Path:
    return sdk / "cucc"


def imported(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """The files of cucc's that the file imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        package = path.parents[node.level - 1]
        named = package.joinpath(*node.module.split(".")) if node.module else package
        for place in [named, *(named / alias.name for alias in node.names)]:
            candidates = (place.with_suffix(".py"), place / "__init__.py")
            # `from . import x` reads the package's own file only for a name that is none of its files.
            if place != package or not all((package / f"{one.name}.py").exists() for one in node.names):
                yield from (one for one in candidates if one.exists())


def test_no_file_imports_itself_by_way_of_others(folder: pathlib.Path) -> None:
    graph: Dict[pathlib.Path, Set[pathlib.Path]] = {path: set(imported(path)) for path in folder.rglob("*.py")}
    assert graph[folder / "driver.py"] and graph[folder / "rewriting" / "__init__.py"]
    done: Set[pathlib.Path] = set()

    def visit(path: pathlib.Path, way: List[pathlib.Path]) -> None:
        assert path not in way, " -> ".join(str(one.relative_to(folder)) for one in [*way, path])
        if path not in done:
            for other in graph[path]:
                visit(other, [*way, path])
            done.add(path)

    for path in graph:
        visit(path, [])
