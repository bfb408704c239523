"""Random kernels leave on the device exactly what Triton's interpreter leaves; each day others.

The interpreters up to Triton 3.2 have more gaps than the generator avoids, so they get the same kernels each day.
"""

import datetime
import pathlib
import sys

import pytest
import release_facts

torch = pytest.importorskip("torch", reason="needs the torch wheel")
# Where there is no wheel, this folder is importable as `triton`.
pytest.importorskip("triton.language", reason="needs the triton wheel")
if not torch.cuda.is_available():
    pytest.skip("needs the simulated device", allow_module_level=True)

import triton  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from random_comparison import compare  # noqa: E402

COUNT = 24


def test_random_kernels_leave_what_the_interpreter_leaves(tmp_path: pathlib.Path) -> None:
    newer = hasattr(triton, "knobs")
    seed = int(datetime.date.today().strftime("%Y%m%d")) if newer else 20261123
    compared, wrong = compare(seed, COUNT, tmp_path)
    assert not wrong, f"python {HERE / 'random_triton.py'} {seed} {COUNT}\n" + "\n".join(wrong)
    least = 3 if release_facts.has("triton_interprets_most_kernels") else 2
    assert compared >= COUNT * least // 4
