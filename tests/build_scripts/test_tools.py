"""The Makefile's virtual environment is whole, or is made anew; whatever killed its making."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Dict, Tuple

import pytest

from build_scripts import tools

from .small import CHECKOUT, write_zip
from .test_cache import wait_for


def wheel(shelf: Path, name: str, version: str = "1.0") -> Path:
    """A package with a program whose first line names the interpreter."""
    info = f"{name}-{version}.dist-info"
    members = {
        f"{name}.py": f"VERSION = {version!r}\n\n\ndef main():\n    print(VERSION)\n".encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n".encode(),
    }
    return write_zip(shelf / f"{name}-{version}-py3-none-any.whl", members)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Makefile and its tools script, with small requirements, in a folder with a space in its name."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for name in ("first", "second", "third"):
        wheel(shelf, name)
    wheel(shelf, "first", "2.0")
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "PIP_CONFIG_FILE": os.devnull}
    for key, value in settings.items():
        monkeypatch.setenv(key, value)
    folder = tmp_path / "a checkout"
    (folder / "build_scripts").mkdir(parents=True)
    shutil.copy(str(CHECKOUT / "Makefile"), str(folder))
    shutil.copy(str(CHECKOUT / "build_scripts" / "tools.py"), str(folder / "build_scripts"))
    (folder / "requirements").mkdir()
    (folder / "requirements" / "factory.txt").write_text("first==1.0\n")
    (folder / "requirements" / "image.txt").write_text("second\n")
    (folder / "requirements" / "dev.txt").write_text("-r factory.txt\n-r image.txt\nthird\n")
    return folder


def command(checkout: Path, level: str = "tools") -> Tuple[Tuple[str, ...], Dict[str, str]]:
    kept = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL")}
    return ("make", "-C", str(checkout), f"HOST_PYTHON={sys.executable}", f".venv/.{level}"), kept


def make(checkout: Path, level: str = "tools") -> str:
    """Run it; returns what it said."""
    words, environment = command(checkout, level)
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def works(checkout: Path, *names: str) -> bool:
    """Whether the packages, their programs and pip itself work."""
    folder = checkout / ".venv" / "bin"
    calls = [[str(folder / name)] for name in names] + [[str(folder / "python"), "-m", "pip", "check"]]
    return all(subprocess.run(call, stdout=subprocess.DEVNULL, check=False).returncode == 0 for call in calls)


def test_an_environment_is_made_once_and_brought_up_to_date(checkout: Path) -> None:
    assert "Installing the factory's tools" in make(checkout)
    assert works(checkout, "first")
    quiet = make(checkout)
    assert "Installing" not in quiet and "made anew" not in quiet
    assert "Installing the test and lint tools" in make(checkout, "dev")
    assert works(checkout, "first", "second", "third")
    assert "Installing" not in make(checkout) and "Installing" not in make(checkout, "dev")
    (checkout / "requirements" / "factory.txt").write_text("first==2.0\n")
    said = make(checkout)
    assert "Installing the factory's tools" in said and "made anew" not in said
    output = subprocess.run([str(checkout / ".venv" / "bin" / "first")], stdout=subprocess.PIPE, text=True, check=True)
    assert output.stdout == "2.0\n"
    # The other level includes what changed.
    assert "Installing the test and lint tools" in make(checkout, "dev")


def test_a_failed_installation_counts_for_nothing_and_what_was_moved_is_made_anew(checkout: Path) -> None:
    make(checkout)
    words, environment = command(checkout, "dev")
    done = subprocess.run(words, env={**environment, "PIP_FIND_LINKS": ""}, stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0 and "error: pip could not install the tools" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in (checkout / ".venv").glob(".*") if path.name != ".lock"]
    # Scripts carry the old place.
    moved = checkout.with_name("moved")
    checkout.rename(moved)
    assert "is made anew" in make(moved)
    assert works(moved, "first")


def test_an_environment_of_another_checkout_behind_a_link_is_left_alone(checkout: Path) -> None:
    make(checkout)
    other = checkout.with_name("other")
    shutil.copytree(str(checkout), str(other), ignore=shutil.ignore_patterns(".venv"))
    (other / ".venv").symlink_to(checkout / ".venv")
    words, environment = command(other)
    done = subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0 and "is a link" in done.stderr and "remove the link" in done.stderr
    assert works(checkout, "first")


def test_only_what_was_finished_in_this_place_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = tmp_path / ".venv"
    monkeypatch.setattr(tools, "FOLDER", venv)
    assert not tools.is_usable()
    # As `python -m venv` leaves it when it is killed before pip is there.
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    assert not tools.is_usable() and not tools.is_whole("tools")
    # The stamps of Makefiles from before were empty: they said nothing of a kill that came later.
    (venv / ".tools").write_text("")
    assert not tools.is_usable() and not tools.is_whole("tools")
    (venv / ".tools").write_text(tools.wanted("tools"))
    assert tools.is_usable() and tools.is_whole("tools") and not tools.is_whole("dev")
    # An interpreter that was removed from the machine.
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to(tmp_path / "gone")
    assert not tools.is_usable() and not tools.is_whole("tools")


@pytest.mark.parametrize(
    "sign, whom", [("pyvenv.cfg", "leader"), ("bin/pip", "group"), ("first-1.0.dist-info", "leader")]
)
def test_after_a_kill_in_the_first_seconds_the_next_make_works(checkout: Path, sign: str, whom: str) -> None:
    """``leader``: only make and the tools script die, what they started goes on."""
    words, environment = command(checkout)
    process = subprocess.Popen(
        words, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    venv = checkout / ".venv"
    pattern = f"lib/python*/site-packages/{sign}" if sign.endswith("info") else sign
    wait_for(lambda: any(venv.glob(pattern)))
    if whom == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        children = subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
        for pid in (process.pid, *map(int, children)):
            # On a loaded machine a child may have come to its end by now.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.wait()
    make(checkout)
    assert works(checkout, "first")
    assert {path.name for path in venv.iterdir() if path.name.startswith(".")} == {".lock", ".tools"}


def test_two_makes_at_once_wait_for_each_other_and_a_clean_that_was_killed_counts(checkout: Path) -> None:
    words, environment = command(checkout)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    both = [subprocess.Popen(words, env=environment, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum("Installing" in text for text in said) == 1
    # This `rm` is killed in the middle of its work, and make with it.
    killed = checkout / "rm"
    killed.write_text(
        '#!/bin/sh\nif [ "$1" = -rf ]; then /bin/rm -rf .venv/lib; kill -9 $PPID $$; fi\nexec /bin/rm "$@"\n'
    )
    killed.chmod(0o755)
    clean = ["make", "-C", str(checkout), "clean"]
    path = f"{checkout}:{os.environ['PATH']}"
    assert subprocess.run(clean, env={**environment, "PATH": path}, stdout=subprocess.DEVNULL).returncode != 0
    assert not (checkout / ".venv" / "lib").exists() and (checkout / ".venv" / "bin" / "python").exists()
    killed.unlink()
    assert "is made anew" in make(checkout)
    assert works(checkout, "first")
    assert subprocess.run(clean, env=environment, stdout=subprocess.DEVNULL).returncode == 0
    assert not (checkout / ".venv").exists()


def test_wrong_usage_is_said() -> None:
    done = subprocess.run([sys.executable, str(tools.__file__), "all"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "usage:" in done.stderr
