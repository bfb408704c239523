"""Compiled kernels give what NumPy says, and what Triton's interpreter gives."""

import functools
import os
import pathlib
import pickle
import re
import subprocess
import sys
import textwrap
from typing import Any, Dict

import numpy as np
import pytest
import release_facts

torch = pytest.importorskip("torch", reason="needs the torch wheel")
# Where there is no wheel, this folder is importable as `triton`.
pytest.importorskip("triton.language", reason="needs the triton wheel")
if not torch.cuda.is_available():
    pytest.skip("needs the simulated device", allow_module_level=True)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cases_columns  # noqa: E402, F401
import cases_control  # noqa: E402, F401
import cases_elementwise  # noqa: E402, F401
import cases_hazards  # noqa: E402, F401
import cases_memory  # noqa: E402, F401
import cases_narrowing  # noqa: E402, F401
import cases_tiles  # noqa: E402, F401
from registry import CASES, Outcome  # noqa: E402

# The interpreter computes in NumPy, whose sums and functions round otherwise.
INTERPRETER_TOLERANCE = {"f": 1e-4, "i": 0, "u": 0, "b": 0}
# Where the interpreter differs from Triton on a GPU, which NumPy's expectation follows: it truncates to bfloat16,
# NumPy's minimum and maximum give NaN, and its sums of int8 do not wrap where those of Triton 3.2 do.
INTERPRETER_DIFFERS = re.compile(r"bfloat16|float_binary\[(max|min|maxnan)-|clamp|reduction\[sum-int8-")


def test_the_interpreter_computes_or_says_which_numpy_it_wants() -> None:
    # With a NumPy that it was not built for, Triton 3.0's loads and stores nothing.
    program = """
        import os, sys
        os.environ["TRITON_INTERPRET"] = "1"
        import numpy
        numpy.__version__ = "2.0.0"
        sys.path.insert(0, sys.argv[1])
        from registry import CASES
        import cases_elementwise
        print(sum(abs(next(iter(CASES.values()))("cpu").got)) > 0)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(pathlib.Path(__file__).parent)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if release_facts.has("triton_interprets_with_numpy_2"):
        assert done.stdout.split() == ["True"], done.stderr
    else:
        assert done.returncode != 0 and 'pip install "numpy<2"' in done.stderr


@pytest.fixture(scope="session")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Any]:
    """Return what Triton's interpreter gives for each case: an array, or the text of its error."""
    file = tmp_path_factory.mktemp("triton") / "interpreted"
    environment = dict(os.environ, TRITON_INTERPRET="1")
    subprocess.run([sys.executable, str(HERE / "run_cases.py"), str(file)], env=environment, check=True, timeout=600)
    return pickle.loads(file.read_bytes())


@functools.lru_cache(maxsize=None)
def compiled(name: str) -> Outcome:
    return CASES[name]("cuda")


def check(got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert got.shape == expected.shape
    if got.dtype.kind == "f" and tolerance:
        np.testing.assert_allclose(
            got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True
        )
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_kernel_gives_what_numpy_says(name: str) -> None:
    got, expected, tolerance = compiled(name)
    if expected is None:
        pytest.skip("the interpreter is the oracle")
    check(got, expected, tolerance)


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_kernel_gives_what_the_interpreter_gives(name: str, interpreted: Dict[str, Any]) -> None:
    other = interpreted[name]
    if INTERPRETER_DIFFERS.search(name):
        pytest.skip("the interpreter follows NumPy here and not the GPU")
    if isinstance(other, str):
        pytest.skip(f"the interpreter does not run this: {other[:200]}")
    got, _, tolerance = compiled(name)
    if other.size == 0:
        pytest.skip("this case is about the device")
    check(got, other, max(tolerance, INTERPRETER_TOLERANCE[got.dtype.kind]))
