"""What becomes of an engine's layers, on small ones: no engine is needed."""

import hashlib
import io
import lzma
import subprocess
import tarfile
from pathlib import Path
from typing import Any, Dict, List

import pytest

from build_scripts.container import archive, layers
from build_scripts.errors import FactoryError

EPOCH = 1_600_000_000


def layer(path: Path, **members: Any) -> Path:
    """A layer of files (bytes), folders (None), and links: ("hard" or "symbolic", target)."""
    with tarfile.open(str(path), "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.mtime, info.uname, info.mode = EPOCH + 5, "somebody", 0o644
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, tuple):
                info.type = tarfile.LNKTYPE if content[0] == "hard" else tarfile.SYMTYPE
                info.linkname = content[1]
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return path


def squashed(target: Path, *paths: Path, whole: bool = True) -> Dict[str, Any]:
    """What a layer of those layers holds, written and read again."""
    with layers.Layer(paths, whole) as one:
        digest = one.write(target, EPOCH)
    assert digest == "sha256:" + hashlib.sha256(target.read_bytes()).hexdigest()
    found: Dict[str, Any] = {}
    with tarfile.open(str(target)) as tar:
        for member in tar:
            content = None if member.issym() else tar.extractfile(member)
            assert member.mtime <= EPOCH and not member.uname
            found[member.name] = content.read() if content else member.linkname or None
    return found


def test_upper_layers_replace_and_remove(tmp_path: Path) -> None:
    lower = layer(tmp_path / "1", **{"a": None, "a/x": b"1", "a/y": b"1", "b": None, "b/x": b"1", "c": b"1", "d": None})
    upper = layer(
        tmp_path / "2",
        **{
            "a": None,
            "a/.wh.x": b"",
            "a/y": b"2",
            "b": None,
            "b/.wh..wh..opq": b"",
            "b/z": b"2",
            ".wh.c": b"",
            "d": b"2",
        },
    )
    assert squashed(tmp_path / "out", lower, upper) == {"a": None, "a/y": b"2", "b": None, "b/z": b"2", "d": b"2"}


def test_what_was_removed_may_come_back_without_its_old_content(tmp_path: Path) -> None:
    paths = [
        layer(tmp_path / "1", **{"a": None, "a/x": b"1"}),
        layer(tmp_path / "2", **{".wh.a": b""}),
        layer(tmp_path / "3", **{"a": None, "a/y": b"3"}),
    ]
    assert squashed(tmp_path / "out", *paths) == {"a": None, "a/y": b"3"}


def test_a_file_in_the_place_of_a_folder_hides_what_was_below_it(tmp_path: Path) -> None:
    paths = [layer(tmp_path / "1", **{"a": None, "a/x": b"1"}), layer(tmp_path / "2", **{"a": ("symbolic", "b")})]
    assert squashed(tmp_path / "out", *paths) == {"a": "b"}


def test_hard_links_survive_their_first_name(tmp_path: Path) -> None:
    lower = layer(tmp_path / "1", **{"a": b"content", "b": ("hard", "a"), "c": ("hard", "a")})
    upper = layer(tmp_path / "2", **{".wh.a": b""})
    assert squashed(tmp_path / "out", lower, upper) == {"b": b"content", "c": b"content"}
    with tarfile.open(str(tmp_path / "out")) as tar:
        assert tar.getmember("c").islnk() and tar.getmember("c").linkname == "b"


def test_what_the_engine_fills_in_is_left_out(tmp_path: Path) -> None:
    lower = layer(
        tmp_path / "1", **{"dev": None, "dev/console": b"", "proc": None, "run": None, "run/x": b"", "device": b""}
    )
    assert set(squashed(tmp_path / "out", lower)) == {"dev", "proc", "run", "device"}


def test_a_distribution_that_removes_from_the_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FactoryError, match="remove etc/old"):
        layers.Layer([layer(tmp_path / "1", **{"etc": None, "etc/.wh.old": b""})], whole=False)


def test_the_order_of_members_and_their_owners_names_do_not_matter(tmp_path: Path) -> None:
    members: Dict[str, Any] = {"b": b"2", "a-b": b"1", "a": None, "a/x": b"3"}
    squashed(tmp_path / "one", layer(tmp_path / "1", **members))
    squashed(tmp_path / "two", layer(tmp_path / "2", **dict(reversed(list(members.items())))))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_folder_packs_to_the_same_layer_wherever_and_whenever(tmp_path: Path) -> None:
    digests: List[str] = []
    for name in ("one", "another"):
        root = tmp_path / name
        (root / "dev").mkdir(parents=True)
        (root / "dev" / "null").write_bytes(b"")
        (root / "file").write_text("text")
        (root / "second").hardlink_to(root / "file") if hasattr(root, "hardlink_to") else None
        (root / "link").symlink_to("file")
        layers.pack_tree(root, tmp_path / f"{name}.tar", EPOCH)
        digests.append(hashlib.sha256((tmp_path / f"{name}.tar").read_bytes()).hexdigest())
    assert digests[0] == digests[1]
    with tarfile.open(str(tmp_path / "one.tar")) as tar:
        assert "dev/null" not in tar.getnames() and tar.getmember("link").issym()


@pytest.mark.parametrize("size", [0, 10, archive.PIECE, 2 * archive.PIECE + 7])
def test_the_archives_bytes_do_not_depend_on_the_number_of_processors(tmp_path: Path, size: int) -> None:
    content = b"some text " * (size // 10) + b"x" * (size % 10)
    results = []
    for workers in (1, 3):
        path = tmp_path / f"{workers}.xz"
        with path.open("wb") as file, archive.XzFile(file, 0, workers) as out:
            for start in range(0, len(content), 999_999):
                out.write(content[start : start + 999_999])
        results.append(path.read_bytes())
    assert results[0] == results[1]
    assert (lzma.decompress(results[0]) if size else results[0]) == content
    if size:
        done = subprocess.run(["xz", "-dc", str(tmp_path / "1.xz")], stdout=subprocess.PIPE)
        assert done.stdout == content
