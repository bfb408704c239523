"""Wheels of upstream's Python from its source distribution, with an extension of ours behind it."""

import dataclasses
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Dict

import pytest

from build_scripts import releases
from build_scripts.errors import FactoryError
from build_scripts.factory import metadata, upstream
from build_scripts.factory.wheel import WheelReader
from build_scripts.products import source_wheel, verify

NAME, VERSION = "flash_attn", "2.8.3.post2"
TOP = f"{NAME}-{VERSION}"
MEMBERS = {
    "PKG-INFO": b"Metadata-Version: 2.1\nName: flash_attn\nVersion: 2.8.3.post2\nRequires-Python: >=3.9\n\nText.\n",
    "LICENSE": b"BSD\n",
    "setup.py": b"raise SystemExit('nobody runs this')\n",
    "flash_attn/__init__.py": b"import flash_attn_2_cuda\n",
    "flash_attn/ops/norm.py": b"pass\n",
    "flash_attn.egg-info/requires.txt": b"torch\neinops\n\n[extra]\nnever\n",
    "csrc/kernel.cu": b"__global__ void kernel() {}\n",
    "tests/test_it.py": b"assert False\n",
}


def archive(folder: Path, members: Dict[str, bytes], top: str = TOP) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{TOP}.tar.gz"
    with tarfile.open(str(path), "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def companion(table: releases.Table, path: Path) -> releases.Companion:
    known = table.companion(NAME, VERSION)
    assert known is not None and known.source is not None
    data = path.read_bytes()
    source = dataclasses.replace(known.source, size=len(data), sha256=hashlib.sha256(data).hexdigest())
    return dataclasses.replace(known, source=source)


def build(
    table: releases.Table, folder: Path, members: Dict[str, bytes] = MEMBERS, output: str = "out", python: str = "3.10"
) -> Path:
    path = archive(folder / "given", members)
    return source_wheel.build(table, companion(table, path), python, folder / output, path.parent)


def test_upstreams_python_is_unchanged_and_ours_is_beside_it(table: releases.Table, tmp_path: Path) -> None:
    built = build(table, tmp_path)
    sdk = releases.sdk_version()
    assert built.name == f"{NAME}-{VERSION}+maca{sdk}-py3-none-any.whl"
    with WheelReader(built) as reader:
        names = set(reader.members)
        assert reader.read("flash_attn/__init__.py") == MEMBERS["flash_attn/__init__.py"]
        own = releases.CHECKOUT / "macatorch" / "companions" / NAME / "flash_attn_2_cuda" / "api.py"
        assert reader.read("flash_attn_2_cuda/api.py") == own.read_bytes()
        assert not [name for name in names if name.split("/")[0] in ("csrc", "tests", "setup.py")]
        assert f"{reader.dist_info}/licenses/LICENSE" in names
        text = reader.read(f"{reader.dist_info}/METADATA").decode()
        assert [str(each) for each in metadata.requirements(text)] == ["torch", "einops", f"mxmaca=={sdk}"]
        assert json.loads(reader.read(f"{reader.dist_info}/maca.json"))["upstream"]["file"] == f"{TOP}.tar.gz"
    assert verify.verify(built, table) == []


def test_the_same_source_gives_the_same_bytes(table: releases.Table, tmp_path: Path) -> None:
    row = companion(table, archive(tmp_path / "given", MEMBERS))
    first, again = (
        source_wheel.build(table, row, python, tmp_path / python, tmp_path / "given") for python in ("3.10", "3.13")
    )
    assert first.read_bytes() == again.read_bytes()


def test_a_python_that_it_is_not_for_is_refused(table: releases.Table, tmp_path: Path) -> None:
    with pytest.raises(FactoryError, match="for Python >=3.9, not for 3.8"):
        build(table, tmp_path, python="3.8")
    assert not (tmp_path / "out").exists()


def test_another_file_of_that_name_is_refused(table: releases.Table, tmp_path: Path) -> None:
    archive(tmp_path / "given", MEMBERS)
    known = table.companion(NAME, VERSION)
    assert known is not None
    with pytest.raises(FactoryError, match="is not the file that the table names"):
        source_wheel.build(table, known, "3.10", tmp_path / "out", tmp_path / "given")


@pytest.mark.parametrize("damage", ["truncated", "of another project"])
def test_an_archive_that_is_none_is_refused(table: releases.Table, tmp_path: Path, damage: str) -> None:
    path = archive(tmp_path / "given", MEMBERS, TOP if damage == "truncated" else "other-1")
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(FactoryError, match="is damaged|is no source distribution"):
        source_wheel.build(table, companion(table, path), "3.10", tmp_path / "out", path.parent)
    assert not (tmp_path / "out").exists()


def test_a_wheel_with_another_extension_is_found(
    table: releases.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build(table, tmp_path)
    other = tmp_path / "checkout"
    (other / "macatorch" / "companions" / NAME / "flash_attn_2_cuda").mkdir(parents=True)
    (other / "macatorch" / "companions" / NAME / "flash_attn_2_cuda" / "api.py").write_text("changed = True\n")
    monkeypatch.setattr(source_wheel, "CHECKOUT", other)
    assert verify.verify(built, table) == ["flash_attn_2_cuda/api.py is not in its present form; build the wheel again"]


def test_it_is_fetched_by_the_link_that_pip_lists(
    table: releases.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip alone would run its setup.py, which wants torch and a compiler."""
    path = archive(tmp_path / "files", MEMBERS)
    pages = tmp_path / "simple" / "flash-attn"
    pages.mkdir(parents=True)
    (pages / "index.html").write_text(f'<a href="{path.as_uri()}">{path.name}</a>')
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    row = companion(table, path)
    assert row.source is not None
    built = source_wheel.build(table, row, "3.10", tmp_path / "out", None)
    assert built.is_file() and upstream.path_in_cache(row.source).read_bytes() == path.read_bytes()


def test_what_the_index_does_not_list_is_said(
    table: releases.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "simple" / "flash-attn").mkdir(parents=True)
    (tmp_path / "simple" / "flash-attn" / "index.html").write_text("")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    known = table.companion(NAME, VERSION)
    assert known is not None
    with pytest.raises(FactoryError, match="(?s)could not be found.*--from"):
        source_wheel.build(table, known, "3.10", tmp_path / "out", None)
