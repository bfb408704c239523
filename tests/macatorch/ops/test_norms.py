"""Norms of many elements are those of double precision, as CUDA's are: upstream's CPU kernel adds up one by one."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest
import torch

MANY = (1 << 22) + 37
ORDERS = [0, 0.5, 1, 2, 3, float("inf")]


def check(got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype = torch.float32) -> None:
    assert got.is_cuda and got.dtype == dtype and got.shape == want.shape
    limit = 3e-6 if dtype == torch.float32 else torch.finfo(dtype).eps
    torch.testing.assert_close(got.cpu().double(), want, rtol=limit, atol=0)


@pytest.mark.parametrize("order", ORDERS)
def test_a_norm_of_many_elements_is_right_in_single_precision(order: float) -> None:
    values = torch.rand(MANY)
    values[::3] = 0
    check(torch.linalg.vector_norm(values.cuda(), order), torch.linalg.vector_norm(values.double(), order))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, (0, 2), (0, 1, 2), -1], ids=str)
def test_a_norm_over_some_dimensions_is_right(dim: Any, keepdim: bool) -> None:
    values = torch.rand(70001, 3, 20)
    got = torch.linalg.vector_norm(values.cuda(), 3, dim, keepdim)
    check(got, torch.linalg.vector_norm(values.double(), 3, dim, keepdim))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_low_precision_is_rounded_once(dtype: torch.dtype) -> None:
    values = torch.rand(1 << 20).to(dtype)
    want = torch.linalg.vector_norm(values.double())
    check(torch.linalg.vector_norm(values.cuda()), want.to(dtype).double(), dtype)
    check(torch.linalg.vector_norm(values.cuda(), dtype=torch.float32), want)


def test_complex_numbers_and_strided_ones() -> None:
    values = torch.randn(1 << 17, 3, dtype=torch.complex64)
    check(torch.linalg.vector_norm(values.cuda(), 1), torch.linalg.vector_norm(values.to(torch.complex128), 1))
    rows = torch.rand(1 << 17, 6)
    check(rows.cuda()[:, ::2].t().norm(), rows.double()[:, ::2].norm())
    image = torch.rand(2, 64, 128, 128)
    check(image.cuda().norm(), image.double().norm())


@pytest.mark.parametrize("dtype", [None, torch.float32], ids=str)
def test_every_way_to_a_norm_is_right(dtype: Optional[torch.dtype]) -> None:
    values = torch.rand(MANY)
    given, want = values.cuda(), values.double().norm()
    out = torch.empty((), device="cuda")
    check(torch.linalg.vector_norm(given, out=out, dtype=dtype), want)
    check(torch.ops.aten.norm(given), want)
    check(torch.ops.aten.norm.ScalarOpt_dim(given, 2, [0], False), want)
    check(torch.ops.aten.norm.ScalarOpt_dim_dtype(given, 2, [0], False, dtype=torch.float32), want)
    check(torch._foreach_norm([given[:5], given])[1], want)
    given.grad = torch.rand(MANY, device="cuda")
    total = torch.nn.utils.clip_grad_norm_([given], 1e9)
    check(total, given.grad.cpu().double().norm())


def test_gradients_and_errors_are_upstreams() -> None:
    values = torch.rand(1 << 20, device="cuda", requires_grad=True)
    norm = values.norm()
    norm.backward()
    assert values.grad is not None
    torch.testing.assert_close(values.grad, values.detach() / norm.detach())
    wrong: Tuple[Any, ...] = (
        lambda: torch.linalg.vector_norm(values, dtype=torch.float16),
        lambda: torch.linalg.vector_norm(values, 2, 1),
        lambda: torch.linalg.vector_norm(values.detach(), out=torch.empty((), dtype=torch.float64, device="cuda")),
        lambda: torch.linalg.vector_norm(values.detach().long()),
    )
    host = values.detach().cpu()
    expected: Tuple[Any, ...] = (
        lambda: torch.linalg.vector_norm(host, dtype=torch.float16),
        lambda: torch.linalg.vector_norm(host, 2, 1),
        lambda: torch.linalg.vector_norm(host, out=torch.empty((), dtype=torch.float64)),
        lambda: torch.linalg.vector_norm(host.long()),
    )
    for ours, upstreams in zip(wrong, expected):
        with pytest.raises((RuntimeError, IndexError)) as want:
            upstreams()
        with pytest.raises(want.type) as got:
            ours()
        assert str(got.value) == str(want.value)
