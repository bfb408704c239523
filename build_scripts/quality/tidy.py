"""clang-tidy over the SDK's runtime, with the checks of .clang-tidy; the other sources would take a minute."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import List, Sequence

from .. import children
from ..releases import CHECKOUT

SOURCE, FILES = CHECKOUT / "cu_bridge", "runtime/src/**/*.cpp"
# CMake's options speak of GCC's warnings.
PLAIN = ("--extra-arg=-Wno-error", "--extra-arg=-Wno-unknown-warning-option")


def run() -> List[str]:
    """What was found, in a line for each file; the findings themselves are on the terminal."""
    tidy, cmake, ninja = (children.program(name) for name in ("clang-tidy", "cmake", "ninja"))
    if tidy is None or cmake is None or ninja is None:
        return ["clang-tidy, cmake or ninja is missing (python -m pip install -r requirements/dev.txt)"]
    with tempfile.TemporaryDirectory(prefix="maca-lint-") as build:
        # The commands of the build, and the headers that it generates.
        configure = [cmake, "-S", str(SOURCE), "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        configure += ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DPython3_EXECUTABLE={sys.executable}"]
        for command in (configure, [ninja, "-C", build, "tables"]):
            done = children.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                print(done.stdout)
                return ["clang-tidy: the SDK cannot be configured"]
        check = [tidy, "-p", build, "--quiet", *PLAIN]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(filter(None, pool.map(lambda file: _checked(check, file), sorted(SOURCE.glob(FILES)))))


def _checked(command: Sequence[str], file: Path) -> str:
    done = children.run([*command, str(file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if not done.returncode:
        return ""
    print(done.stdout)
    return f"clang-tidy has findings in {file.relative_to(CHECKOUT)}"
