"""No include of the SDK leads in a circle, and no CUDA library knows another one's files."""

from pathlib import Path
from typing import List

from .includes import circle, included, within
from .small import CHECKOUT

SDK = CHECKOUT / "cu_bridge"
SHIMS = SDK / "shims"
ENDINGS = (".h", ".cuh", ".cpp", ".inc", "")


def files(*folders: Path) -> List[Path]:
    """C++ files; cuda/std has headers without an ending."""
    return [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix in ENDINGS]


def libraries() -> List[Path]:
    return sorted(path for path in SHIMS.iterdir() if path.is_dir() and path.name not in ("common", "__pycache__"))


def test_no_include_of_a_library_leads_in_a_circle() -> None:
    for library in libraries():
        found = within(files(library, SHIMS / "common", SDK / "base"), SDK, [library, SHIMS / "common", SDK / "base"])
        assert circle(found) == []


def test_no_public_header_leads_to_itself() -> None:
    include = SDK / "include"
    assert circle(within(files(include), SDK, [include]), of=lambda file: file) == []


def test_no_include_of_the_launcher_leads_in_a_circle() -> None:
    launcher = SDK / "triton" / "launcher"
    assert circle(within(files(launcher), SDK, [launcher])) == []


def test_a_library_includes_its_own_files_and_what_is_common() -> None:
    allowed = [SHIMS / "common", SDK / "base", SDK / "include", SDK / "runtime" / "include"]
    strange = [
        f"{path.relative_to(SDK)} includes {name}"
        for library in libraries()
        for path in files(library)
        for name in included(path)
        if not any((folder / name).is_file() for folder in [path.parent, library, *allowed])
        and any((other / name).is_file() or (path.parent / name).is_file() for other in libraries())
    ]
    assert strange == []


def test_a_circle_of_the_search_path_is_found(tmp_path: Path) -> None:
    for name, text in {"a/one.h": '#include "two.h"\n', "b/two.h": '#  include "one.h"\n', "b/three.h": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = within(files(tmp_path), tmp_path, [tmp_path / "a", tmp_path / "b"])
    assert circle(found) == ["a/one", "b/two", "a/one"]
