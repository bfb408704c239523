"""What the documents name is there: files, folders and pages of this repository."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Iterator, List, Set

import pytest

from .small import CHECKOUT

PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").glob("*.md")])
LINK = re.compile(r"[^\[(]\]\((?!https?:)([^)#\s]+)[)#]")
QUOTED = re.compile(r"`([^`\s]+)`")
SOURCE = re.compile(r"(?:[\w.-]+/)*[\w-]+\.(?:cpp|cuh|cu|h|inc|py|toml|map|in|md)|(?:[\w-]+/){2,}")
# Files of the user, of an installed wheel or of upstream, which the pages speak of.
ELSEWHERE = re.compile(r"torch/__init__\.py|ATen/.*|test_args\.json|(?:model|reproduce|compare)\.py")


@lru_cache(maxsize=None)
def known() -> Set[str]:
    """Every end of a path of the repository that begins with a whole name: `b/c.h` and `c.h` of `a/b/c.h`."""
    left_out = {".git", ".venv", "__pycache__"}
    found: Set[str] = set()
    for path in CHECKOUT.rglob("*"):
        parts = path.relative_to(CHECKOUT).parts
        if not left_out & set(parts):
            found.update("/".join(parts[start:]) for start in range(len(parts)))
    return found


def missing(text: str, folder: Path) -> Iterator[str]:
    yield from (link for link in LINK.findall(text) if not (folder / link).exists())
    for name in QUOTED.findall(text):
        if SOURCE.fullmatch(name) and not ELSEWHERE.fullmatch(name) and name.rstrip("/") not in known():
            yield name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    assert list(missing(page.read_text(encoding="utf-8"), page.parent)) == []


def test_the_walk_in_six_files_is_true() -> None:
    """From `x.cuda()` and `x + y` to the device: the rows name these functions, and the files have them."""
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = page.split("A walk in six files.", 1)[1].split("\n\n", 1)[0]
    table = (CHECKOUT / "macatorch" / "operators.toml").read_text(encoding="utf-8")
    files = [name for name in QUOTED.findall(walk) if SOURCE.fullmatch(name)]
    assert len({*files, "operators.toml"}) <= 6
    steps = re.findall(r"`([\w.]+)`[^`]*row.*?names\s`(\w+)`\sin\s`ops/([^`]+)`", walk, re.DOTALL)
    assert [operator for operator, _, _ in steps] == ["_to_copy", "add.Tensor"]
    for operator, function, place in steps:
        row = next(row for row in table.split("[[row]]") if f'source = "{place[:-4]}"' in row and operator in row)
        assert re.search(rf"\b{function}\b", row.replace(operator, ""))
        assert re.search(rf"\b{function}\b", (CHECKOUT / "macatorch/csrc/ops" / place).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text, found",
    [
        ("`dispatch/Unboxed.h`, `csrc/ops/`, [page](docs/architecture.md), `x + y`, `torch.cuda`", []),
        ("`dispatch/Gone.h` and `csrc/gone/`", ["dispatch/Gone.h", "csrc/gone/"]),
        ("[page](docs/gone.md#part)", ["docs/gone.md"]),
    ],
)
def test_a_missing_file_is_found(text: str, found: List[str]) -> None:
    assert list(missing(text, CHECKOUT)) == found
