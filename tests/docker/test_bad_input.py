"""What cannot be built is refused with a message that says why, and leaves nothing behind."""

import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from build_scripts import releases
from build_scripts.commands import image as command
from build_scripts.container import base
from build_scripts.container import engine as engine_module
from build_scripts.errors import FactoryError
from build_scripts.products import distribution

from .conftest import CHECKOUT, SUITE, TORCH, factory, left_in


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Path]:
    """Where results would go; it must stay empty."""
    path = tmp_path / "output"
    path.mkdir()
    yield path
    assert list(path.iterdir()) == []


def wheel(folder: Path, name: str) -> None:
    """A wheel with nothing but what pip asks for."""
    project, version = name.split("-")[:2]
    with zipfile.ZipFile(str(folder / name), "w") as archive:
        info = f"{project}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Wheels by the names that the image asks for, and nothing in them."""
    table = releases.load()
    folder = tmp_path / "shelf"
    folder.mkdir()
    release = table.release(TORCH)
    named = distribution.names(table, release, release.wheel_for(base.of_suite(SUITE, base.load()).python))
    for name in [*(path.name for path in named.wheels), "numpy-2.0-py3-none-any.whl"]:
        wheel(folder, name)
    return folder


def refused(output: Path, *arguments: str, **variables: str) -> str:
    """What the command says when it refuses."""
    done = factory("image", "--torch", TORCH, "--output", str(output), *arguments, **variables)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    return done.stderr


def test_no_engine(output: Path, shelf: Path, tmp_path: Path) -> None:
    said = refused(output, "--base", "debian:12", "--wheels", str(shelf), DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert "No Docker engine answers" in said and "DOCKER_HOST" in said


def test_no_wheels(output: Path, tmp_path: Path) -> None:
    said = refused(output, "--wheels", str(tmp_path), DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert f"torch-{TORCH}+maca" in said and f"make wheels TORCH={TORCH} PYTHON=3." in said


def test_wheels_for_another_python(output: Path, shelf: Path, tmp_path: Path) -> None:
    torch = next(shelf.glob("torch-*"))
    torch.rename(shelf / torch.name.replace(torch.name.split("-")[2], "cp38"))
    tag = "cp" + base.default_for(releases.load().release(TORCH), base.load()).python.replace(".", "")
    said = refused(output, "--wheels", str(shelf), DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert tag in said and "there is one for cp38" in said and "make wheels" in said


def test_an_unknown_suite(output: Path) -> None:
    said = refused(output, "--bootstrap", "buzz")
    assert "Unknown suite 'buzz'" in said and "bookworm" in said


def test_an_unknown_release(output: Path) -> None:
    done = factory("image", "--torch", "1.0.0", "--output", str(output))
    assert done.returncode == 1 and "Known releases" in done.stderr


def test_a_time_that_is_none(output: Path, shelf: Path, engine: Any) -> None:
    said = refused(output, "--wheels", str(shelf), SOURCE_DATE_EPOCH="yesterday")
    assert "SOURCE_DATE_EPOCH is 'yesterday'" in said


def test_a_base_that_is_not_there(output: Path, shelf: Path, engine: Any) -> None:
    said = refused(output, "--base", "localhost:1/none:1", "--wheels", str(shelf))
    assert "The base localhost:1/none:1 is not on this machine, and could not be fetched" in said
    assert "--bootstrap" in said
    assert left_in(engine) == []


def test_a_base_that_is_no_name(output: Path, shelf: Path, engine: Any) -> None:
    assert "The base 'NO NAME' is no image's name" in refused(output, "--base", "NO NAME", "--wheels", str(shelf))


NAME = "macatorch-test-base"
DEBIAN = "ID=debian\nVERSION_ID=12\n"


def base_with(engine: Any, files: Dict[str, bytes]) -> str:
    """A small image of those files, all of them executable."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755
            tar.addfile(info, io.BytesIO(data))
    tag = hashlib.sha256(content.getvalue()).hexdigest()[:8]
    engine.api.import_image_from_stream(iter([content.getvalue()]), repository=NAME, tag=tag)
    return f"{NAME}:{tag}"


@pytest.fixture(autouse=True)
def no_base_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "engine" in request.fixturenames:
        client = request.getfixturevalue("engine")
        for image in client.images.list(NAME):
            client.images.remove(image.id, force=True)


@pytest.mark.parametrize("os_release, found", [('ID=alpine\nPRETTY_NAME="Alpine 3"\n', "Alpine 3"), ("", "a system")])
def test_a_base_of_another_kind(engine: Any, output: Path, shelf: Path, os_release: str, found: str) -> None:
    image = base_with(engine, {"etc/os-release": os_release.encode()})
    said = refused(output, "--base", image, "--wheels", str(shelf))
    assert f"The base {image} is {found}" in said and "Known: " in said
    assert left_in(engine) == []


def arguments(output: Path, wheels: Path, image: str) -> Namespace:
    names = {"torch": TORCH, "base": image, "bootstrap": None, "mirror": None, "given": None, "compression": 0}
    return Namespace(wheels=wheels, output=output, **names)


def test_a_base_whose_python_the_release_has_no_wheel_for(
    engine: Any, output: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = base_with(engine, {"etc/os-release": b"ID=ubuntu\nVERSION_ID=24.04\n"})
    table = releases.load()
    release = table.release(TORCH)
    fewer = replace(release, wheels=tuple(wheel for wheel in release.wheels if wheel.python != "3.12"))
    monkeypatch.setattr(releases, "load", lambda: replace(table, releases=(fewer,)))
    with pytest.raises(FactoryError, match=f"torch {re.escape(TORCH)} has no wheel for Python 3.12"):
        command.run(arguments(output, shelf, image))
    assert left_in(engine) == []


def test_no_space(engine: Any, output: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))
    with pytest.raises(FactoryError, match=r"needs .* GB below .*, but only 0.0 GB are free"):
        command.run(arguments(output, shelf, "debian:12"))


def test_no_space_left_for_the_engine() -> None:
    """The engine says so in the middle of a step."""
    failure = engine_module.Engine._failure
    docker = engine_module.Engine.__new__(engine_module.Engine)
    docker.log = ["Step 1/2", "tar: x: Cannot write: No space left on device"]
    said = str(failure(docker, "Building the image", "The command 'sh' returned a non-zero code: 2"))
    assert "no space is left where the engine keeps its images" in said and "docker system df" in said


# What the base's shell is for the builds below: it says something and fails, or goes on for long.
SHELL = """
#include <stdio.h>
#include <unistd.h>
int main() {{ puts("there is no such package"); fflush(stdout); sleep({seconds}); return 7; }}
"""


@pytest.fixture
def broken(engine: Any, shelf: Path, tmp_path: Path) -> Callable[[int], Tuple[List[str], Dict[str, str]]]:
    """`broken(seconds)`: arguments and variables of a build whose first step fails after that time."""

    def make(seconds: int) -> Tuple[List[str], Dict[str, str]]:
        shell = tmp_path / "shell"
        command = ["g++", "-static", "-Os", "-x", "c++", "-", "-o", str(shell)]
        subprocess.run(command, input=SHELL.format(seconds=seconds), text=True, check=True)
        image = base_with(engine, {"bin/sh": shell.read_bytes(), "etc/os-release": DEBIAN.encode()})
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "PIP_CONFIG_FILE": os.devnull}
        return ["--base", image, "--wheels", str(shelf)], {**offline, "MACATORCH_CACHE": str(tmp_path / "cache")}

    return make


def test_a_step_that_fails(engine: Any, output: Path, broken: Callable[..., Any]) -> None:
    words, variables = broken(0)
    said = refused(output, *words, **variables)
    assert "Building the image failed" in said and "there is no such package" in said
    assert left_in(engine) == []


def started(engine: Any, output: Path, words: List[str], variables: Dict[str, str]) -> "subprocess.Popen[str]":
    """A build whose first step is running."""
    command = [sys.executable, "-m", "build_scripts", "image", "--torch", TORCH, "--output", str(output), *words]
    process = subprocess.Popen(
        command, cwd=str(CHECKOUT), env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 120
    while not engine.api.containers(filters={"label": "maca.build"}):
        assert process.poll() is None and time.monotonic() < end, process.communicate()[1]
        time.sleep(0.1)
    return process


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_build(
    engine: Any, output: Path, broken: Callable[..., Any], number: signal.Signals, status: int
) -> None:
    process = started(engine, output, *broken(600))
    process.send_signal(number)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == status and "Traceback" not in said, said
    assert left_in(engine) == []


def test_the_next_build_removes_what_a_killed_one_left(engine: Any, output: Path, broken: Callable[..., Any]) -> None:
    words, variables = broken(600)
    process = started(engine, output, words, variables)
    process.kill()
    process.communicate()
    assert left_in(engine) != []
    words, variables = broken(0)
    refused(output, *words, **variables)
    assert left_in(engine) == []
