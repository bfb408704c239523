"""The modules of the factory form layers: none imports from a layer above its own, and no import leads in a circle."""

import ast
from pathlib import Path
from typing import Dict, Iterator, List, Set

from .small import CHECKOUT

ROOT = CHECKOUT / "build_scripts"
# The folders of each layer, the lowest first. "" is build_scripts itself; folders of one layer do not know each other.
LAYERS = (("",), ("factory",), ("container", "quality"), ("commands",))
# What puts the whole together stands above all layers.
ABOVE = ("__main__",)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports_of(module: str) -> Iterator[str]:
    """The modules of the factory that a module imports, at its head or in a function."""
    path = MODULES[module]
    package = path.parent.relative_to(ROOT).parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}" if base else alias.name
                yield inner if inner in MODULES else base


def layer_of(module: str) -> int:
    if module in ABOVE:
        return len(LAYERS)
    folder = MODULES[module].parent.relative_to(ROOT).as_posix()
    return next(n for n, folders in enumerate(LAYERS) if (folder if folder != "." else "") in folders)


def folder_of(module: str) -> Path:
    return MODULES[module].parent


def test_every_folder_belongs_to_a_layer() -> None:
    assert {layer_of(module) for module in MODULES} == set(range(len(LAYERS) + 1))


def test_no_module_imports_from_a_layer_above_its_own() -> None:
    upward = [
        f"{module} imports {other}"
        for module in MODULES
        for other in imports_of(module)
        if layer_of(other) > layer_of(module)
        or (layer_of(other) == layer_of(module) and folder_of(other) != folder_of(module))
    ]
    assert not upward


def test_no_import_leads_in_a_circle() -> None:
    graph: Dict[str, Set[str]] = {module: set(imports_of(module)) - {module} for module in MODULES}
    done: Set[str] = set()

    def walk(module: str, path: List[str]) -> None:
        assert module not in path, " imports ".join([*path[path.index(module) :], module])
        if module not in done:
            for other in sorted(graph[module]):
                walk(other, [*path, module])
            done.add(module)

    for module in sorted(graph):
        walk(module, [])


def test_the_tools_of_the_makefile_import_nothing_of_the_factory() -> None:
    """It runs before there is an environment to run anything else in."""
    assert not list(imports_of("tools"))
