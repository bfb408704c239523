"""Wheels of a project whose sources the user gives: its own setup.py builds them, and what it left is made ours."""

import dataclasses
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import List

import pytest

from build_scripts import cache, releases
from build_scripts.errors import FactoryError
from build_scripts.factory import elf, metadata
from build_scripts.factory.wheel import WheelReader, WheelWriter
from build_scripts.products import distribution, given_source, given_wheel

# It leaves a wheel with a compiled module, as apex's does, and needs nothing but a C compiler.
SETUP = """
import os, subprocess, sys
from setuptools import setup
def setup(name, version):
    count = os.environ.get("COUNT_BUILDS")
    if count:
        open(count, "a").write("built\\n")
    assert "--cuda_ext" in sys.argv and os.environ["MAX_JOBS"] == "1"
    if os.environ.get("FAIL_BUILD"):
        open("object.o", "w").write("compiled before")
        sys.exit("kernel.cu:3: error: no such thing")
    if os.environ.get("WANT_OBJECT"):
        assert open("object.o").read() == "compiled before"
    dist = sys.argv[sys.argv.index("--dist-dir") + 1]
    os.makedirs(dist)
    source = os.path.abspath("kernel.c")
    subprocess.run(["cc", "-shared", "-fPIC", *os.environ["CFLAGS"].split(), source, "-o", "amp_C.so"], check=True)
    import zipfile
    with zipfile.ZipFile(dist + "/apex-0.1-cp310-cp310-linux_x86_64.whl", "w") as wheel:
        wheel.write("amp_C.so")
        wheel.writestr("apex/__init__.py", "")
        wheel.writestr("apex-0.1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: apex\\nVersion: 0.1\\n")
        wheel.writestr("apex-0.1.dist-info/WHEEL", "Wheel-Version: 1.0\\n")
        wheel.writestr("apex-0.1.dist-info/RECORD", "")
setup(name="apex", version="0.1")
"""
KERNEL = "const char *where(void) { return __FILE__; }\n"


@pytest.fixture
def source(tmp_path: Path, c_compiler: None) -> Path:
    folder = tmp_path / "apex"
    folder.mkdir()
    (folder / "setup.py").write_text(SETUP)
    (folder / "kernel.c").write_text(KERNEL)
    return folder


@pytest.fixture
def output(tmp_path: Path, table: releases.Table) -> Path:
    """A folder with an SDK wheel."""
    folder = tmp_path / "out"
    folder.mkdir()
    writer = WheelWriter("mxmaca-1.dist-info")
    writer.add_bytes("mxmaca/__init__.py", b"")
    writer.write(folder / given_sdk_name(table))
    return folder


def given_sdk_name(table: releases.Table) -> str:
    release = table.release("2.6.0")
    return distribution.names(table, release, release.wheel_for("3.10")).sdk.name


def build(table: releases.Table, source: Path, output: Path) -> Path:
    release = table.release("2.6.0")
    (built,) = distribution.build_given(
        table, release, release.wheel_for("3.10"), output, {"apex": source}, lambda: Path(sys.executable)
    )
    return built


def test_the_wheel_is_ours_and_finds_the_sdk(table: releases.Table, source: Path, output: Path) -> None:
    built = build(table, source, output)
    sdk = releases.sdk_version()
    assert built.name == f"apex-0.1+maca{sdk}.torch2.6.0-cp310-cp310-linux_x86_64.whl"
    with WheelReader(built) as reader:
        text = reader.read(f"{reader.dist_info}/METADATA").decode()
        wanted = [f"torch==2.6.0+maca{sdk}", f"mxmaca=={sdk}"]
        assert [str(each) for each in metadata.requirements(text)] == wanted
        manifest = json.loads(reader.read(f"{reader.dist_info}/maca.json"))
        library = reader.extract("amp_C.so", output / "library.so")
        with elf.open_elf(library) as opened:
            assert opened.rpath == ["$ORIGIN/mxmaca/lib/cuda12", "$ORIGIN/mxmaca/lib", "$ORIGIN/torch/lib"]
        assert str(source.parent).encode() not in library.read_bytes(), "a path of this machine"
        members = list(reader.members)
    digest = manifest["sdk_sha256"]
    assert given_wheel.failures(manifest, members, wanted, digest) == []
    assert given_wheel.failures(manifest, members, wanted, "0") == [
        "it was compiled with another SDK; build the wheel again"
    ]


def test_the_same_sources_are_built_once_a_change_builds_again(
    table: releases.Table, source: Path, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = tmp_path / "count"
    monkeypatch.setenv("COUNT_BUILDS", str(count))
    first = build(table, source, output).read_bytes()
    archive = tmp_path / "apex.tar.xz"
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").write_text("changes nothing\n")
    with tarfile.open(str(archive), "w:xz") as tar:
        tar.add(str(source), "apex-main", filter=lambda info: None if ".git" in info.name else info)
    assert build(table, source, output).read_bytes() == build(table, archive, output).read_bytes() == first
    assert count.read_text() == "built\n"
    (source / "kernel.c").write_text(KERNEL + "int more;\n")
    build(table, source, output)
    assert count.read_text() == "built\n" * 2


def test_a_build_that_fails_says_why_and_leaves_no_wheel(
    table: releases.Table, source: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL_BUILD", "1")
    with pytest.raises(FactoryError, match=r"apex was not built: .*no such thing"):
        build(table, source, output)
    assert not list(output.glob("apex*"))


def test_a_build_that_was_broken_off_goes_on_where_it_was(
    table: releases.Table, source: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL_BUILD", "1")
    with pytest.raises(FactoryError):
        build(table, source, output)
    monkeypatch.delenv("FAIL_BUILD")
    monkeypatch.setenv("WANT_OBJECT", "1")
    build(table, source, output)
    assert not list(cache.folder("build").glob("apex*"))


WRONG = {
    "missing": "does not exist",
    "empty": "has no setup.py",
    "another project": "is the source of flash_attn 0.1, not of apex 0.1",
    "another version": "is the source of apex 0.9, not of apex 0.1",
    "unreadable": "setup.py of .* cannot be read",
    "a text": "is no archive of sources",
}


@pytest.mark.parametrize("kind", WRONG)
def test_other_sources_are_refused(table: releases.Table, source: Path, output: Path, kind: str) -> None:
    setup, given = source / "setup.py", source
    if kind == "missing":
        shutil.rmtree(str(source))
    elif kind == "empty":
        setup.unlink()
    elif kind == "another project":
        setup.write_text(SETUP.replace('name="apex"', 'name="flash_attn"'))
    elif kind == "another version":
        setup.write_text(SETUP.replace('version="0.1"', 'version="0.9"'))
    elif kind == "unreadable":
        setup.write_text("setup(\n")
    else:
        given = source / "kernel.c"
    with pytest.raises(FactoryError, match=WRONG[kind]):
        build(table, given, output)
    assert not list(output.glob("apex*"))


@pytest.mark.parametrize(
    "words, said",
    [
        (["apex"], "names no source"),
        (["apex="], "names no source"),
        (["torchvision=/x"], "No companion called torchvision"),
    ],
)
def test_wrong_words_are_refused(table: releases.Table, words: List[str], said: str) -> None:
    with pytest.raises(FactoryError, match=said):
        given_source.parse(table, words)
    assert given_source.parse(table, ["apex=/a=b"]) == {"apex": Path("/a=b")}


def test_an_archive_that_leads_out_is_refused(
    table: releases.Table, source: Path, output: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "apex.tar"
    with tarfile.open(str(archive), "w") as tar:
        tar.add(str(source / "setup.py"), "apex/../../setup.py")
    with pytest.raises(FactoryError, match="leads out of it"):
        build(table, archive, output)


def test_a_release_without_it_says_so(table: releases.Table, source: Path, output: Path) -> None:
    release = table.release("2.6.0")
    without = {name: version for name, version in release.companions.items() if name != "apex"}
    bare = dataclasses.replace(release, companions=without)
    with pytest.raises(FactoryError, match="has no apex beside it"):
        distribution.build_given(table, bare, bare.wheel_for("3.10"), output, {"apex": source}, lambda: Path("python"))


def test_the_command_refuses_before_it_builds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build_scripts", "build", "--source", "apex", "--output", str(tmp_path / "none")]
    done = subprocess.run(command, cwd=str(releases.CHECKOUT), stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "names no source" in done.stderr
    assert not (tmp_path / "none").exists()
