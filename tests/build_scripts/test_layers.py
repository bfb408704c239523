"""No import leads in a circle, and where folders of Python modules are layers, none imports from one above its own."""

import ast
from functools import lru_cache
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

import pytest

from .small import CHECKOUT


class Tree(NamedTuple):
    """A package and its layers, the lowest first: folders, "" being the package itself. Not every package has any."""

    package: str
    place: str
    layers: Tuple[Tuple[str, ...], ...] = ()

    @property
    def root(self) -> Path:
        return CHECKOUT / self.place

    @property
    def modules(self) -> Dict[str, Path]:
        return _modules(self)

    def name(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(part for part in parts if part != "__init__")

    def layer(self, module: str) -> int:
        """Folders of one layer do not know each other. What puts the whole together stands above all layers."""
        if module in ("", "__main__"):
            return len(self.layers)
        folder = self.modules[module].parent.relative_to(self.root).as_posix().strip(".")
        return next(n for n, folders in enumerate(self.layers) if folder in folders)

    def imports(self, module: str) -> Iterator[str]:
        """The modules of the package that a module imports, at its head or in a function."""
        path, modules = self.modules[module], self.modules
        package = [*self.package.split("."), *path.parent.relative_to(self.root).parts]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            wanted: List[Tuple[str, ...]] = []
            if isinstance(node, ast.Import):
                wanted = [(alias.name,) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = package[: len(package) - node.level + 1] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                wanted = [(f"{base}.{alias.name}", base) for alias in node.names]
            for names in wanted:
                inner = [name[len(self.package) + 1 :] for name in names if f"{name}.".startswith(f"{self.package}.")]
                yield from [name for name in inner if name in modules][:1]


FACTORY = Tree(
    "build_scripts", "build_scripts", (("",), ("factory",), ("products",), ("container", "quality"), ("commands",))
)
RECORDER = Tree("maca_tools.accuracy", "macatorch/maca_tools/accuracy", (("",), ("data",), ("recorder",), ("compare",)))


@lru_cache(maxsize=None)
def _modules(tree: Tree) -> Dict[str, Path]:
    return {tree.name(path): path for path in sorted(tree.root.rglob("*.py"))}


PROGRAMS = ("compare.run_script",)  # started by itself, it stands above all layers
SCRIPTS = {"cu_bridge/cmake", "cu_bridge/shims", "macatorch/maca_tools"}
LAYERED = (FACTORY, RECORDER)
PACKAGES = (
    *LAYERED,
    Tree("mxmaca", "cu_bridge/python/mxmaca"),
    Tree("triton.backends.nvidia", "cu_bridge/triton"),
    Tree("macatorch", "macatorch/macatorch"),
    Tree("flash_attn_2_cuda", "macatorch/companions/flash_attn/flash_attn_2_cuda"),
    Tree("codegen", "macatorch/codegen"),
)
TREES = pytest.mark.parametrize("tree", LAYERED, ids=lambda tree: tree.package)


@TREES
def test_every_folder_belongs_to_a_layer(tree: Tree) -> None:
    assert {tree.layer(module) for module in tree.modules} == set(range(len(tree.layers) + 1))


@TREES
def test_no_module_imports_from_a_layer_above_its_own(tree: Tree) -> None:
    upward = [
        f"{module} imports {other}"
        for module in tree.modules
        if module not in PROGRAMS
        for other in tree.imports(module)
        if tree.layer(other) > tree.layer(module)
        or (tree.layer(other) == tree.layer(module) and tree.modules[other].parent != tree.modules[module].parent)
    ]
    assert not upward


def test_every_package_is_looked_at() -> None:
    """A folder with Python files that ship or build belongs to one of them; scripts stand alone in theirs."""
    files = [path for top in ("build_scripts", "cu_bridge", "macatorch") for path in (CHECKOUT / top).rglob("*.py")]
    roots = [tree.root for tree in PACKAGES]
    left = {path.parent for path in files if not any(root in path.parents for root in roots)}
    assert {str(folder.relative_to(CHECKOUT)) for folder in left} == SCRIPTS


@pytest.mark.parametrize("tree", PACKAGES, ids=lambda tree: tree.package)
def test_no_import_leads_in_a_circle(tree: Tree) -> None:
    graph: Dict[str, Set[str]] = {module: set(tree.imports(module)) - {module} for module in tree.modules}
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
    """They run before there is an environment to run anything else in."""
    assert not list(FACTORY.imports("tools"))
