"""What the cache holds is whole or made anew; what killed builds leave is removed; what still runs is waited for."""

import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, List, Sequence

import pytest

from build_scripts import cache, releases
from build_scripts.container import base, bootstrap, inputs
from build_scripts.factory import dependencies

from .small import CHECKOUT, SmallRelease


def damage(path: Path) -> None:
    """Change one bit in the middle; size and time stay."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    os.utime(str(path), ns=(status.st_atime_ns, status.st_mtime_ns))


# What can be damaged, and what has to be gone so that a build reads it.
READ_BY_A_BUILD = {
    "a library of the operators": ("native/macatorch-*/libmacatorch.so", ()),
    "a library of the SDK": ("native/sdk-*/mxmaca/lib/cuda12/libcudart.so.12", ()),
    "a text of the SDK": ("native/sdk-*/mxmaca/VERSION", ()),
    "the stripped wheel": ("stripped/*.zip", ()),
    "upstream's wheel": ("upstream/*/*.whl", ("stripped",)),
    "an object file": ("build/macatorch-*/cmake/CMakeFiles/macatorch.dir/csrc/operators.cpp.o", ("native",)),
    "a built library": ("build/macatorch-*/cmake/libmacatorch.so", ("native",)),
    "an unpacked header": ("build/macatorch-*/site/torch/include/torch.h", ("native",)),
    "a library to link with": ("build/macatorch-*/site/torch/lib/libtorch_cpu.so", ("native",)),
    "a copy of a source": ("build/macatorch-*/source/csrc/operators.cpp", ("native",)),
    "a header of the SDK's copy": ("build/macatorch-*/sdk/mxmaca/VERSION", ("native",)),
}


def test_what_is_damaged_in_the_cache_reaches_no_wheel(small_release: SmallRelease, cache_folder: Path) -> None:
    assert small_release.build().returncode == 0
    before = [path.read_bytes() for path in (small_release.built, small_release.sdk)]
    for what, (pattern, gone) in READ_BY_A_BUILD.items():
        (path,) = cache_folder.glob(pattern)
        sound = path.read_bytes()
        damage(path)
        for name in gone:
            shutil.rmtree(str(cache_folder / name))
        done = small_release.build()
        assert done.returncode == 0, what + done.stderr
        assert [path.read_bytes() for path in (small_release.built, small_release.sdk)] == before, what
        # The damaged one is not there any more: it was made anew at the same place.
        assert path.read_bytes() == sound, what
        if "native" not in gone:
            assert "is damaged" in done.stderr and path.name in done.stderr, what


def test_an_entry_with_a_file_more_or_less_is_made_anew(small_release: SmallRelease, cache_folder: Path) -> None:
    assert small_release.build().returncode == 0
    before = small_release.sdk.read_bytes()
    (entry,) = cache_folder.glob("native/sdk-*/mxmaca")
    changes: List[Callable[[], object]] = [
        lambda: (entry / "more.py").write_text(""),
        lambda: (entry / "VERSION").unlink(),
        lambda: (entry / "VERSION").chmod(0o755),
        lambda: entry.parent.with_name(entry.parent.name + ".sha256").unlink(),
        lambda: entry.parent.with_name(entry.parent.name + ".sha256").write_text("{"),
    ]
    for change in changes:
        change()
        done = small_release.build()
        assert done.returncode == 0, done.stderr
        assert "it is removed and made anew" in done.stderr
        assert small_release.sdk.read_bytes() == before
    assert "Building" not in small_release.build().stderr


def test_a_whole_stripped_wheel_needs_upstreams_no_more(small_release: SmallRelease, cache_folder: Path) -> None:
    assert small_release.build().returncode == 0
    shutil.rmtree(str(cache_folder / "upstream"))
    done = small_release.run("build", "--python", "3.11", PIP_NO_INDEX="1")
    assert done.returncode == 0, done.stderr


def test_tests_of_upstreams_may_leave_files_and_are_unpacked_again_when_damaged(tmp_path: Path) -> None:
    def kept() -> Path:
        made = tmp_path / "made"
        (made / "test").mkdir(parents=True)
        (made / "test" / "test_x.py").write_text("assert True\n")
        cache.keep(made, entry)
        return entry

    entry = cache.folder("tests") / "0123456789abcdef"
    kept()
    (entry / "test" / "left.pt").write_text("by a test")
    (entry / "test" / "__pycache__").mkdir()
    assert cache.whole(entry, may_grow=True)
    damage(entry / "test" / "test_x.py")
    assert not cache.whole(entry, may_grow=True)
    assert not entry.exists()


def test_fetched_wheels_of_the_image_are_fetched_again_when_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: releases.Table
) -> None:
    fetches = []

    def download(words: Sequence[str], python: str, architecture: str, folder: Path) -> None:
        fetches.append(words)
        (folder / "numpy-1-py3-none-any.whl").write_bytes(b"a wheel")

    monkeypatch.setattr(dependencies, "download", download)
    for _ in range(2):
        (path,) = inputs._fetched(["numpy"], table.releases[0].wheels[0])
        assert path.read_bytes() == b"a wheel" and len(fetches) == 1
    damage(path)
    (path,) = inputs._fetched(["numpy"], table.releases[0].wheels[0])
    assert path.read_bytes() == b"a wheel" and len(fetches) == 2


def test_a_base_of_the_image_is_made_again_when_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def pack(root: Path, part: Path, epoch: int) -> None:
        made.append(part)
        part.write_bytes(b"a base")

    (system, *_) = base.load()
    source = bootstrap.Source("uri", system.suites[0], ("main",), b"")
    monkeypatch.setattr(bootstrap, "require_tools", lambda _: None)
    monkeypatch.setattr(bootstrap, "sources", lambda *_: [source])
    monkeypatch.setattr(bootstrap, "_make", lambda *_: None)
    monkeypatch.setattr(bootstrap.layers, "pack_tree", pack)
    path = bootstrap.obtain(system)
    assert bootstrap.obtain(system) == path and len(made) == 1
    damage(path)
    assert bootstrap.obtain(system).read_bytes() == b"a base" and len(made) == 2


# ---- what killed builds leave ----------------------------------------------------------------------------------------


def test_intermediate_folders_of_dead_builds_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    for name in ("dead", "living"):
        (cache.folder("work", name) / "file").write_text("")
    half = cache.folder("trash", "x")
    (half / "file").write_text("")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / ".dead-1-py3-none-any.whl.part").write_text("")
    with cache.lock("living"), cache.part_file(wheels / "living-1-py3-none-any.whl") as part:
        code = f"from pathlib import Path\nfrom build_scripts import cache\ncache.sweep(Path({str(wheels)!r}))\n"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=str(CHECKOUT))
        assert [path.name for path in wheels.iterdir()] == [part.name]
        assert [path.name for path in (cache.root() / "work").iterdir()] == ["living"]
    assert not half.exists() and not list(wheels.iterdir())


def test_a_build_removes_what_a_killed_one_left_even_where_it_finds_the_result_made(
    small_release: SmallRelease,
) -> None:
    """Killed after the result was in its place and before the intermediate folder was removed."""
    assert small_release.build().returncode == 0
    for name in ("stripped", "upstream"):
        (lock,) = (cache.root() / "locks").glob(f"{name}-*.lock")
        (cache.folder("work", lock.stem) / "raw").write_text("")
    assert small_release.build().returncode == 0
    assert not list((cache.root() / "work").iterdir())


def test_two_builds_with_different_caches_do_not_write_one_wheel_at_once(tmp_path: Path) -> None:
    final, order = tmp_path / "x-1-py3-none-any.whl", []

    def write(word: str, seconds: float) -> None:
        with cache.part_file(final) as part:
            order.append(word)
            part.write_text(word)
            time.sleep(seconds)
            assert part.read_text() == word
            cache.publish(part, final)
            order.append(word)

    threads = [threading.Thread(target=write, args=(word, 0.2)) for word in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order[0::2] == order[1::2] and len(order) == 6
    assert [path.name for path in tmp_path.glob("*x-1*")] == [final.name] and not list(tmp_path.glob(".*"))


def test_compilers_that_outlive_a_killed_build_keep_its_lock(small_release: SmallRelease, tmp_path: Path) -> None:
    started, go_on = tmp_path / "started", tmp_path / "go on"
    slow = tmp_path / "g++"
    wait = f"touch {started}; while [ ! -e '{go_on}' ]; do sleep 0.1; done"
    slow.write_text(f'#!/bin/sh\ncase "$*" in *operators.cpp.o*) {wait};; esac\nexec /usr/bin/env g++ "$@"\n')
    slow.chmod(0o755)
    command = [sys.executable, "-m", "build_scripts", "build", "--python", "3.11", "--from", str(small_release.wheel)]
    environment = {**os.environ, "CXX": str(slow)}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=str(small_release.checkout), env=environment, stderr=log, stdout=log)
        wait_for(started.exists)
        process.kill()
        process.wait()
    lock = cache.root() / "locks" / "native-macatorch-9.9.0.lock"
    with lock.open() as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        go_on.touch()
        wait_for(lambda: is_free(file.fileno()))
    assert small_release.build(CXX=str(slow)).returncode == 0


def is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
