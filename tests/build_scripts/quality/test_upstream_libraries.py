"""Libraries that upstream's tests load are compiled once, from the tests' sources, or the compiler's error is told."""

import ctypes
import json
import sys
from pathlib import Path

import pytest

from build_scripts.errors import FactoryError
from build_scripts.quality import upstream_libraries

TABLE = {"libone.so": {"files": ["test_jit.py"], "sources": ["cpp/one.cpp", "cpp/two.cpp"]}}


@pytest.fixture
def program(tmp_path: Path, c_compiler: None) -> Path:
    """A Python that says where its torch lies."""
    (tmp_path / "lib").mkdir()
    torch = {"includes": [str(tmp_path / "include")], "abi": 1, "libraries": str(tmp_path / "lib"), "link": ["m"]}
    said = json.dumps(torch)
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\nprint('a warning')\nprint('''{said}''')\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    (folder / "cpp").mkdir(parents=True)
    (folder / "cpp" / "one.h").write_text("int one();\n")
    (folder / "cpp" / "one.cpp").write_text("#include <test/cpp/one.h>\nint one() { return 1; }\n")
    (folder / "cpp" / "two.cpp").write_text('#include <test/cpp/one.h>\nextern "C" int two() { return one() + 1; }\n')
    return folder


def test_what_a_file_loads_is_compiled_once(tmp_path: Path, program: Path, upstream: Path) -> None:
    upstream_libraries.provide(program, upstream, TABLE, ["test_jit.py"])
    made = tmp_path / "lib" / "libone.so"
    assert ctypes.CDLL(str(made)).two() == 2
    assert b"libm.so" in made.read_bytes()
    before = made.stat().st_mtime_ns
    upstream_libraries.provide(program, upstream, TABLE, ["test_jit.py"])
    assert made.stat().st_mtime_ns == before


def test_other_files_need_no_compiler(tmp_path: Path, upstream: Path) -> None:
    upstream_libraries.provide(tmp_path / "none", upstream, TABLE, ["test_nn.py"])


def test_an_error_of_the_compiler_is_told_and_leaves_nothing(tmp_path: Path, program: Path, upstream: Path) -> None:
    (upstream / "cpp" / "two.cpp").write_text("int two() { return no_such_name; }\n")
    with pytest.raises(FactoryError, match=r"(?s)libone\.so does not compile.*no_such_name"):
        upstream_libraries.provide(program, upstream, TABLE, ["test_jit.py"])
    assert list((tmp_path / "lib").iterdir()) == []
