"""Random kernels in Triton on the device and in Triton's interpreter, many of them, for `make conformity`.

FUZZ_FIRST   the first seed
FUZZ_COUNT   how many kernels, KERNELS of a seed
"""

import os
import sys
from pathlib import Path

import pytest
import triton

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cu_bridge" / "triton"))
from random_comparison import compare

KERNELS = 20
FIRST, COUNT = int(os.environ.get("FUZZ_FIRST", "0")), int(os.environ.get("FUZZ_COUNT", "1000"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, COUNT // KERNELS)))
def test_kernels(seed: int, tmp_path: Path) -> None:
    compared, wrong = compare(seed, KERNELS, tmp_path)
    assert not wrong, f"random_triton.py {seed} {KERNELS}\n" + "\n".join(wrong)
    assert compared >= KERNELS // (2 if hasattr(triton, "knobs") else 8)
