"""Every entry of upstream's OpInfo and ModuleInfo, in every dtype that upstream claims for CUDA.

Run by ``make conformity``; a sample of it is in ``make test`` (test_sweep_sample.py).
"""

from __future__ import annotations

from typing import Any, List

import opinfo_checks as checks
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db


def cases(wanted: Any) -> List[Any]:
    """Entry and dtype, for every dtype of every entry that ``wanted`` lets through."""
    return [
        pytest.param(op, dtype, id=f"{checks.entry_name(op)}-{checks.dtype_name(dtype)}")
        for op in op_db
        if not checks.is_for_cpu_alone(op)
        for dtype in sorted(op.supported_dtypes("cuda"), key=str)
        if wanted(op, dtype)
    ]


def differentiable(op: Any, dtype: torch.dtype) -> bool:
    random = checks.treated(op, "random") or checks.treated(op, "undefined")
    return op.supports_autograd and not random and dtype in op.supported_backward_dtypes("cuda")


@pytest.mark.parametrize(("op", "dtype"), cases(lambda op, dtype: True))
def test_values(op: Any, dtype: torch.dtype) -> None:
    if checks.left_out_by_upstream(op, "TestCommon", "test_compare_cpu", dtype):
        pytest.skip("upstream does not compare it with the CPU")
    checks.check_values(op, dtype)


@pytest.mark.parametrize(("op", "dtype"), cases(differentiable))
def test_gradients(op: Any, dtype: torch.dtype) -> None:
    if checks.left_out_by_upstream(op, "TestBwdGradients", "test_fn_grad", torch.float64):
        pytest.skip("upstream does not check its gradient")
    checks.check_gradients(op, dtype)


@pytest.mark.parametrize(
    ("op", "dtype"), cases(lambda op, dtype: op.supports_out and not checks.treated(op, "undefined"))
)
def test_out(op: Any, dtype: torch.dtype) -> None:
    if checks.treated(op, "random"):
        pytest.skip("values come from the device's random stream")
    for name in ("test_out", "test_out_warning"):
        if checks.left_out_by_upstream(op, "TestCommon", name, dtype):
            pytest.skip("upstream does not check its out=")
    checks.check_out(op, dtype)


@pytest.mark.parametrize(("op", "dtype"), cases(lambda op, dtype: op.get_inplace() is not None))
def test_inplace(op: Any, dtype: torch.dtype) -> None:
    if checks.left_out_by_upstream(op, "TestCommon", "test_variant_consistency_eager", dtype):
        pytest.skip("upstream does not check its in-place form")
    checks.check_inplace(op, dtype)


@pytest.mark.parametrize(("op", "dtype"), cases(lambda op, dtype: not checks.treated(op, "undefined")))
def test_strides(op: Any, dtype: torch.dtype) -> None:
    if checks.left_out_by_upstream(op, "TestFakeTensor", "test_fake", dtype):
        pytest.skip("upstream does not compare it with FakeTensor")
    checks.check_strides(op, dtype)


@pytest.mark.parametrize("op", [op for op in op_db if op.error_inputs_func is not None], ids=checks.entry_name)
def test_error_inputs(op: Any) -> None:
    if checks.left_out_by_upstream(op, "TestCommon", "test_errors", torch.float32):
        pytest.skip("upstream does not check its errors")
    checks.check_errors(op)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize(
    ("info", "dtype"),
    [
        pytest.param(info, dtype, id=f"{info.name}-{checks.dtype_name(dtype)}")
        for info in module_db
        for dtype in checks.module_dtypes(info)
    ],
)
def test_module(info: Any, dtype: torch.dtype, training: bool) -> None:
    checks.check_module(info, dtype, training)
