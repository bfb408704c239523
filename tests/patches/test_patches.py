"""The patches: small, in order, without fuzz, and in the installed wheel."""

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "patches"
SERIES = sorted(p.parent for p in FOLDER.glob("*/series"))
PATCHES = sorted(FOLDER.glob("*/*.patch"))
MOST_LINES = 20  # added or removed; a patch that needs more belongs below the host code


def place(folder: Path, line: str) -> Path:
    """A line of a series: a patch of the folder, or one of another release's that both share."""
    return FOLDER / line if "/" in line else folder / line


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}" if path.suffix else path.name


@pytest.mark.parametrize("folder", SERIES, ids=name)
def test_the_series_lists_every_patch_in_order(folder):
    listed = [place(folder, line) for line in (folder / "series").read_text().split()]
    assert all(patch.is_file() for patch in listed)
    assert [patch for patch in listed if patch.parent == folder] == sorted(folder.glob("*.patch"))
    assert [int(patch.name[:4]) for patch in listed] == list(range(1, len(listed) + 1))


@pytest.mark.parametrize("patch", PATCHES, ids=name)
def test_a_patch_says_why_and_is_small(patch):
    why, _, diff = patch.read_text().partition("\n--- a/")
    assert why.strip() and diff
    changed = [line for line in diff.splitlines() if re.match(r"[+-](?!\+\+ |-- )", line)]
    assert len(changed) <= MOST_LINES


@pytest.mark.parametrize("patch", PATCHES, ids=name)
def test_only_the_version_is_filled_in(patch):
    text = patch.read_text()
    assert set(re.findall(r"@\w+@", text)) <= {"@MACA_VERSION@"}
    assert not re.search(r"\bmaca\d+\.\d+", text), "the SDK's version has one source, cu_bridge/VERSION"


def installed_site() -> Path:
    torch = pytest.importorskip("torch", reason="not an environment with the wheel")
    return Path(torch.__file__).resolve().parents[1]


def installed_series():
    site = installed_site()
    import torch

    folder = FOLDER / torch.__version__.partition("+")[0]
    return site, [place(folder, line) for line in (folder / "series").read_text().split()]


def test_the_installed_wheel_carries_every_patch(tmp_path):
    """Taken back in reverse order without fuzz: each one was applied, in order, and nothing else touched its lines."""
    if shutil.which("patch") is None:
        pytest.skip("the program patch is not installed")
    import torch

    site, patches = installed_series()
    for patch in patches:
        for path in re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(site / path, tmp_path / path)
    for patch in reversed(patches):
        subprocess.run(
            ["patch", "-p1", "-R", "-F0", "--no-backup-if-mismatch", "-s"],
            cwd=tmp_path,
            input=patch.read_text().replace("@MACA_VERSION@", torch.version.maca),
            text=True,
            check=True,
        )


def test_what_is_patched_still_parses():
    site, patches = installed_series()
    for patch in patches:
        for path in re.findall(r"^\+\+\+ b/(\S+\.py)", patch.read_text(), re.MULTILINE):
            ast.parse((site / path).read_text())
