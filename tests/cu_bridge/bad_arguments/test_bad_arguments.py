"""Bad arguments are CUDA's errors: no crash, no success, in any exported function of any library."""

import os
import pathlib
import shutil
import subprocess
from typing import Dict

import pytest
from bad_arguments import engine
from library_calls import find_openblas

TABLES = sorted({row.folder for row in engine.libraries() if (engine.HERE / (row.folder + ".toml")).exists()})


@pytest.mark.parametrize("folder", TABLES)
def test_bad_arguments_are_errors(
    sdk: pathlib.Path, major: int, folder: str, tmp_path: pathlib.Path, environment: Dict[str, str]
) -> None:
    if not any((row.folder, row.major) == (folder, major) for row in engine.libraries()):
        pytest.skip(f"{folder} is a library of the other CUDA major alone")
    variables = {**environment, "MACA_BLAS_LIBRARY": os.environ.get("MACA_BLAS_LIBRARY", find_openblas())}
    outcome = engine.try_library(sdk, folder, major, tmp_path, variables)
    assert outcome.calls > 0
    assert outcome.problems == [], "\n".join(outcome.problems)


def test_every_library_has_a_table(sdk: pathlib.Path, major: int) -> None:
    for row in engine.libraries():
        if row.major == major:
            own, _ = engine.exported(sdk / "lib" / f"cuda{major}" / row.soname)
            assert not own or row.folder in TABLES, row.soname


LIBRARY = """
#include <unistd.h>
int crashes(int* place) { return *place; }
int succeeds(int* place) { return place != 0 && 0; }
int errs(int* place) { return place == 0 ? 3 : 4; }
int ends(int* place) { _exit(place == 0 ? 5 : 6); }
"""


def test_the_engine_reports_crashes_successes_and_other_codes(
    sdk: pathlib.Path, tmp_path: pathlib.Path, environment: Dict[str, str]
) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, target = tmp_path / "bad.c", tmp_path / "libbad.so"
    source.write_text(LIBRARY, encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
    names = ["errs", "crashes", "succeeds", "errs", "ends", "errs"]
    statuses = [3, 3, 3, 1, 3, 3]
    calls = [engine.Call(name, "0.null", ["null"], [status], "status") for name, status in zip(names, statuses)]
    row = engine.Row("bad", 13, str(target), 1)
    problems = engine.run_calls(sdk, row, {}, calls, tmp_path, environment)
    assert [problem.split(" ")[0] for problem in problems] == ["crashes", "succeeds", "errs", "ends"]
    wanted = ("crash (SIGSEGV)", "success, wanted 3", "status 3, wanted 1", "the child ended with status 5")
    assert all(text in problem for text, problem in zip(wanted, problems)), problems
