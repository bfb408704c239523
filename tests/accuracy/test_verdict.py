"""Which side of a difference made it."""

from typing import Any, Dict

import pytest


def _row(device0: str, device1: str, dtype: str) -> Dict[str, Any]:
    return {
        "part": "output",
        "tensor": "result",
        "diff2": 5.4e-3,
        "dtype0": dtype,
        "dtype1": dtype,
        "device0": device0,
        "device1": device1,
    }


@pytest.mark.parametrize(
    ("device0", "device1", "dtype", "off0", "off1", "expected"),
    [
        ("cpu", "cuda:0", "bfloat16", 5.4e-3, 1.6e-3, "passed on"),  # the CPU alone is off, in a dtype that it sums in
        ("cuda:0", "cpu", "bfloat16", 1.6e-3, 5.4e-3, "passed on"),
        ("cpu", "cuda:0", "bfloat16", 1.6e-3, 5.4e-3, "wrong"),  # the device alone is off
        ("cuda:0", "cpu", "bfloat16", 5.4e-3, 1.6e-3, "wrong"),
        ("cuda:0", "cuda:1", "bfloat16", 5.4e-3, 1.6e-3, "wrong"),  # two devices: neither is excused
        ("cpu", "cpu", "bfloat16", 5.4e-3, 1.6e-3, "wrong"),
        ("cpu", "cuda:0", "float32", 5.4e-3, 1.6e-7, "wrong"),  # the CPU computes float32 as well as anybody
    ],
)
def test_the_cpu_is_excused_only_for_its_own_rounding_in_low_precision(
    device0: str, device1: str, dtype: str, off0: float, off1: float, expected: str
) -> None:
    from maca_tools.accuracy import verdict
    from maca_tools.accuracy.compare import replay

    found = verdict.judge_again([_row(device0, device1, dtype)], {"result": replay.OwnError(5.4e-3, off0, off1)})
    assert found is not None and found[0] == expected
