"""Patches apply exactly or not at all."""

from pathlib import Path
from typing import Dict, List, Optional

import pytest

from build_scripts.errors import FactoryError
from build_scripts.factory import patches
from build_scripts.releases import CHECKOUT, load

BEFORE = "".join(f"line {number}\n" for number in range(1, 21))
DIFF = """Why this is done.

--- a/torch/x.py
+++ b/torch/x.py
@@ -2,3 +2,4 @@ def f():
 line 2
-line 3
+line three
+another
 line 4
@@ -18,3 +19,2 @@
 line 18
-line 19
 line 20
"""


def apply(text: str, files: Dict[str, str]) -> Dict[str, Optional[bytes]]:
    patch = patches.Patch("0001-x.patch", "", patches.parse(text, "patches/9.9.0/0001-x.patch"))
    return patches.apply([patch], lambda name: files[name].encode() if name in files else None, "9.9.0")


def text_of(result: Dict[str, Optional[bytes]], name: str) -> List[str]:
    content = result[name]
    assert content is not None
    return content.decode().splitlines()


def test_hunks_apply_where_they_say() -> None:
    lines = text_of(apply(DIFF, {"torch/x.py": BEFORE}), "torch/x.py")
    assert lines[:5] == ["line 1", "line 2", "line three", "another", "line 4"]
    assert lines[-2:] == ["line 18", "line 20"]


def test_a_hunk_may_have_moved_when_its_place_is_the_only_one() -> None:
    lines = text_of(apply(DIFF, {"torch/x.py": "new\nnew\n" + BEFORE}), "torch/x.py")
    assert lines[3:6] == ["line 2", "line three", "another"]


@pytest.mark.parametrize(
    "change, hunk", [(("line 4\n", "line four\n"), 1), (("line 19\n", "line 19 \n"), 2), (("line 3\n", ""), 1)]
)
def test_a_hunk_that_does_not_fit_is_named_with_its_patch_and_release(change: "tuple[str, str]", hunk: int) -> None:
    with pytest.raises(FactoryError) as caught:
        apply(DIFF, {"torch/x.py": BEFORE.replace(*change)})
    assert f"patches/9.9.0/0001-x.patch does not fit torch 9.9.0: hunk {hunk} of 2, torch/x.py line" in str(
        caught.value
    )


def test_a_hunk_that_fits_at_two_other_places_is_refused() -> None:
    with pytest.raises(FactoryError, match="hunk 1 of 2"):
        apply(DIFF, {"torch/x.py": "new\n" + BEFORE + BEFORE})


def test_a_patch_can_add_and_remove_files() -> None:
    text = "--- /dev/null\n+++ b/torch/new.py\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    text += "--- a/torch/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
    result = apply(text, {"torch/old.py": "old\n"})
    assert result == {"torch/new.py": b"one\ntwo\n", "torch/old.py": None}
    with pytest.raises(FactoryError, match="torch/new.py exists already"):
        apply(text, {"torch/old.py": "old\n", "torch/new.py": ""})
    with pytest.raises(FactoryError, match="torch/old.py does not exist"):
        apply(text, {})


def test_a_file_without_a_last_line_end_keeps_that() -> None:
    text = "--- a/x/f\n+++ b/x/f\n@@ -1,2 +1,2 @@\n-one\n+two\n last\n\\ No newline at end of file\n"
    patch = patches.parse(text.replace("a/x/f", "a/f").replace("b/x/f", "b/f"), "p")
    result = patches.apply([patches.Patch("p", "", patch)], lambda name: b"one\nlast", "9.9.0")
    assert result == {"f": b"two\nlast"}


@pytest.mark.parametrize("path", ["b/../outside.py", "/etc/passwd", "b"])
def test_a_patch_cannot_reach_outside_site_packages(path: str) -> None:
    with pytest.raises(FactoryError, match="is no path of the form"):
        patches.parse(f"--- a/x.py\n+++ {path}\n@@ -1 +1 @@\n-a\n+b\n", "p")


def test_a_hunk_shorter_than_its_header_is_refused() -> None:
    with pytest.raises(FactoryError, match="shorter than its header says"):
        patches.parse("--- a/torch/x.py\n+++ b/torch/x.py\n@@ -1,5 +1,5 @@\n line 1\n", "p")


def test_text_without_a_hunk_is_refused() -> None:
    with pytest.raises(FactoryError, match="is no unified diff"):
        patches.parse("only words\n", "p")


def test_a_series_that_names_a_missing_patch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "series").write_text("0001-gone.patch\n")
    with pytest.raises(FactoryError, match="0001-gone.patch, which does not exist"):
        patches.load(tmp_path, "1.0.0")


@pytest.mark.parametrize("release", [release.torch for release in load().releases])
def test_every_release_has_a_series_that_can_be_read(release: str) -> None:
    folder = CHECKOUT / "patches" / load().release(release).patches
    loaded = patches.load(folder, "1.2.3")
    assert loaded
    listed = {patches.place(folder, name) for name in patches.series(folder)}
    assert set(folder.glob("*.patch")) <= listed, "a patch that no series names"


def test_a_series_may_name_a_patch_of_another_folder(tmp_path: Path) -> None:
    for release in ("1.0.0", "2.0.0"):
        (tmp_path / release).mkdir()
    (tmp_path / "1.0.0" / "0001-a.patch").write_text("Why.\n\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n")
    (tmp_path / "2.0.0" / "series").write_text("1.0.0/0001-a.patch\n")
    loaded = patches.load(tmp_path / "2.0.0", "1.0.0")
    assert patches.apply(loaded, lambda name: b"a\n", "2.0.0") == {"x.py": b"b\n"}
    with pytest.raises(FactoryError, match=r"^patches/1\.0\.0/0001-a\.patch does not fit torch 2\.0\.0"):
        patches.apply(loaded, lambda name: b"c\n", "2.0.0")
