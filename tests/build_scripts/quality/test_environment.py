"""Environments with the wheels: made once, kept while nothing changed."""

import os
import sys
from pathlib import Path

import pytest

from build_scripts.errors import FactoryError
from build_scripts.quality import environment

from ..small import write_zip

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def wheel(folder: Path, value: int) -> Path:
    info = "thing-1.0.dist-info"
    members = {
        "thing.py": f"VALUE = {value}\n".encode(),
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    return write_zip(folder / "thing-1.0-py3-none-any.whl", members)


def value(program: Path, tmp_path: Path) -> str:
    target = tmp_path / "value"
    code = f"import thing; open({str(target)!r}, 'w').write(str(thing.VALUE))"
    assert environment.run([str(program), "-c", code], tmp_path) == 0
    return target.read_text()


def test_an_overlay_is_the_torch_of_an_environment_with_other_libraries(tmp_path: Path) -> None:
    program = environment.obtain("overlaid", PYTHON, [wheel(tmp_path, 1)], [])
    site = next((program.parent.parent / "lib").glob("python*/site-packages"))
    files = {"torch/__init__.py": "", "torch/nn/__init__.py": "X = 2\n", "mxmaca/__init__.py": ""}
    files.update({"torch/lib/libone.so": "one", "torch/lib/libtwo.so": "two"})
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "libtwo.so").write_text("another")
    path = environment.overlay(program, tmp_path / "other", tmp_path / "overlay")
    code = f"import torch.nn, sys; sys.exit(torch.nn.X if torch.__file__.startswith({str(path)!r}) else 1)"
    assert environment.run([str(program), "-c", code], tmp_path, {**os.environ, "PYTHONPATH": str(path)}) == 2
    assert (path / "torch" / "lib" / "libone.so").read_text() == "one"
    assert (path / "torch" / "lib" / "libtwo.so").read_text() == "another"
    assert (site / "torch" / "lib" / "libtwo.so").read_text() == "two"


def test_an_environment_is_kept_while_nothing_changed_and_follows_its_wheels(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("")
    program = environment.obtain("e", PYTHON, [wheel(tmp_path, 1)], [requirements])
    assert value(program, tmp_path) == "1"
    capfd.readouterr()
    assert environment.obtain("e", PYTHON, [wheel(tmp_path, 1)], [requirements]) == program
    assert "environment" not in capfd.readouterr().err
    environment.obtain("e", PYTHON, [wheel(tmp_path, 2)], [requirements])
    assert "Installing the new wheels" in capfd.readouterr().err
    assert value(program, tmp_path) == "2"
    requirements.write_text("# changed\n")
    environment.obtain("e", PYTHON, [wheel(tmp_path, 2)], [requirements])
    assert "Making the environment" in capfd.readouterr().err
    environment.obtain("e", PYTHON, [wheel(tmp_path, 2)], [requirements], beside=["thing<2"])
    assert "Making the environment" in capfd.readouterr().err


def test_what_a_release_wants_beside_it_bounds_the_environment(tmp_path: Path) -> None:
    with pytest.raises(FactoryError, match="Installing the wheels failed"):
        environment.obtain("bounded", PYTHON, [wheel(tmp_path, 1)], [], beside=["thing<1"])


def test_an_environment_whose_making_failed_is_made_anew(tmp_path: Path) -> None:
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"no wheel")
    with pytest.raises(FactoryError, match="Installing the wheels failed"):
        environment.obtain("e", PYTHON, [broken], [])
    program = environment.obtain("e", PYTHON, [wheel(tmp_path, 3)], [])
    assert value(program, tmp_path) == "3"
