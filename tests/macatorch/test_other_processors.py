"""What looks at the processor compiles for the other one, too.

The whole build for it takes too long for every run (tests/emulated, on demand); these files are what breaks it.
"""

import pathlib
import re
import shutil
import subprocess
from typing import List

import pytest
from torch.utils import cpp_extension

import mxmaca

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = shutil.which("aarch64-linux-gnu-g++")
CONDITION = re.compile(r"__(?:x86_64|aarch64)__")
SOURCES = [
    path.relative_to(CHECKOUT)
    for folder in ("macatorch/csrc", "cu_bridge/runtime", "cu_bridge/shims")
    for path in sorted((CHECKOUT / folder).rglob("*.cpp"))
    if CONDITION.search(path.read_text(encoding="utf-8"))
]


def _options(source: pathlib.Path) -> List[str]:
    """As the CMakeLists.txt of its part has them, as far as they decide what compiles."""
    if source.parts[0] == "macatorch":
        torch = [f"-isystem{path}" for path in cpp_extension.include_paths()]
        names = ["-DMACATORCH_DEVICE=CUDA", "-DMACATORCH_HOST=CPU", "-DMACATORCH_FAST_LINES=1"]
        return [f"-iquote{CHECKOUT / 'macatorch' / 'csrc'}", "-std=c++20", "-fopenmp", *names, *torch]
    runtime, shims = CHECKOUT / "cu_bridge" / "runtime", CHECKOUT / "cu_bridge" / "shims"
    folders = [runtime / "src", runtime / "include", shims / "common", CHECKOUT.joinpath(*source.parts[:3])]
    return ["-std=c++17", "-DMXMACA_CUDA_MAJOR=13", *(f"-I{path}" for path in folders)]


@pytest.mark.skipif(COMPILER is None, reason="needs aarch64-linux-gnu-g++ (Debian: g++-aarch64-linux-gnu)")
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_what_looks_at_the_processor_compiles_for_aarch64(source: pathlib.Path) -> None:
    include = pathlib.Path(mxmaca.__file__).parent / "include"
    command = [str(COMPILER), "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *_options(source), f"-isystem{include}"]
    done = subprocess.run([*command, str(CHECKOUT / source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
