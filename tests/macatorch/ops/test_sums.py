"""Sums of low precision with a factor: computed in float and rounded once, wherever an element stands."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Tuple

import pytest
import torch

LOW = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("size", [1, 37])
@pytest.mark.parametrize("function", [torch.add, torch.sub], ids=["add", "sub"])
def test_a_product_or_number_that_no_half_holds_does_not_spoil_the_sum(function: Callable[..., Any], size: int) -> None:
    given = torch.full((size,), 60000.0, dtype=torch.float16, device="cuda")
    sign = -1 if function is torch.add else 1
    want = torch.full((size,), -60000.0, dtype=torch.float16)
    other = sign * given
    assert torch.equal(function(given, other, alpha=2).cpu(), want)
    assert torch.equal(function(given, sign * 120000.0).cpu(), want)
    assert torch.equal(function(given, other, alpha=2, out=torch.empty_like(given)).cpu(), want)
    changed = given.clone()
    name = f"{function.__name__}_"
    assert getattr(changed, name)(other, alpha=2) is changed
    assert torch.equal(changed.cpu(), want)
    assert torch.equal(getattr(given.clone(), name)(sign * 120000.0).cpu(), want)
    assert torch.equal(torch.rsub(given, 120000.0).cpu(), -want)


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_a_sum_with_a_factor_is_rounded_once(dtype: torch.dtype) -> None:
    one, other = torch.randn(2, 1003, dtype=torch.float64).to(dtype)
    want = (one.double() + 3 * other.double()).to(torch.float32).to(dtype)
    assert torch.equal(torch.add(one.cuda(), other.cuda(), alpha=3).cpu(), want)
    assert torch.equal(torch.add(one.cuda()[::2], other.cuda()[::2], alpha=3).cpu(), want[::2])


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_dtypes_of_sums_with_a_factor_are_those_of_promotion(dtype: torch.dtype) -> None:
    low, wide = torch.ones(3, dtype=dtype, device="cuda"), torch.ones(3, device="cuda")
    assert torch.add(low, wide, alpha=2).dtype == torch.float32
    assert torch.add(low, low.int(), alpha=2).dtype == dtype
    assert torch.add(low, wide.double().sum(), alpha=2).dtype == dtype
    assert torch.sub(low, low, alpha=2, out=torch.empty(0, device="cuda")).dtype == torch.float32
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        low[:1].add_(low.clone(), alpha=2)
    with pytest.raises(RuntimeError, match="single memory location"):
        low[1:].add_(low[:-1], alpha=2)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.add(low, low, alpha=2, out=torch.empty(3, dtype=torch.int64, device="cuda"))


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_a_product_with_a_number_is_rounded_once_whichever_comes_first(dtype: torch.dtype) -> None:
    x = torch.randn(1003, generator=torch.Generator().manual_seed(2)).to("cuda", dtype)
    number = torch.tensor(0.3, dtype=torch.float64)
    want = (x.float() * 0.3).to(dtype)
    assert torch.equal(torch.mul(x, number), want)
    assert torch.equal(torch.mul(number, x), want)
    assert torch.equal(torch.mul(number, x, out=torch.empty_like(x)), want)
    assert torch.equal(torch.ops.aten.mul_.Scalar(x.clone(), 0.3), want)
    assert torch.mul(number, x.float()).dtype == torch.float32


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("value", [0.3, 1.0003, 111411.2])
@pytest.mark.parametrize("name", ["mul", "div"])
def test_a_number_on_the_device_is_rounded_to_the_elements_dtype(name: str, value: float, dtype: torch.dtype) -> None:
    function = getattr(torch, name)
    x = torch.randn(1003, generator=torch.Generator().manual_seed(2)).to("cuda", dtype)
    number = torch.tensor(value, device="cuda")
    exact = number.to(dtype).float()
    want = function(x.float(), exact).to(dtype)
    assert torch.equal(function(x, number), want)
    assert torch.equal(function(x, number, out=torch.empty_like(x)), want)
    changed = x.clone()
    assert getattr(changed, f"{name}_")(number) is changed and torch.equal(changed, want)
    swapped = function(exact, x.float()).to(dtype)
    assert torch.equal(function(number, x), swapped)
    assert torch.equal(function(number, x, out=torch.empty_like(x)), swapped)
    assert torch.equal(torch.add(x, number, alpha=3), (x.float() + 3 * exact).to(dtype))
    assert function(x, number[None]).dtype == torch.float32
    assert function(x[0], number).dtype == torch.float32


def test_a_sum_of_complex_halves_with_a_factor_is_rounded_once() -> None:
    generator = torch.Generator().manual_seed(3)
    one, other = (torch.randn(2, 1003, generator=generator, dtype=torch.complex64) * 100).to(torch.complex32)
    want = (one.to(torch.complex64) - 3.125 * other.to(torch.complex64)).to(torch.complex32)
    for out in (None, torch.empty(0, dtype=torch.complex32, device="cuda")):
        got = torch.sub(one.cuda(), other.cuda(), alpha=3.125, out=out)
        assert torch.equal(torch.view_as_real(got).cpu(), torch.view_as_real(want))
    for given in (one.real.cuda(), torch.empty(0, dtype=torch.float16, device="cuda")):
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            torch.sub(one.cuda(), other.cuda(), alpha=3.125, out=given)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        one.real.cuda().sub_(other.cuda(), alpha=3.125)


# ---- Softmax over many terms: as exact as CUDA's, which adds up in parts


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
@pytest.mark.parametrize("shape, dim", [((1 << 21, 3), 0), ((2, 1 << 20), -1), ((2, 100000, 2), 1)])
def test_many_terms_of_a_softmax_cost_no_precision(function, shape, dim, dtype):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype).cuda().requires_grad_()
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype).cuda()
    exact = x.detach().double().requires_grad_()
    got, wanted = function(x, dim), function(exact, dim)
    got.backward(grad)
    wanted.backward(grad.double())
    assert got.dtype == x.grad.dtype == dtype and got.stride() == x.stride()
    # Halves are rounded once, numbers below their normal ones to a fixed step.
    tolerance = {torch.float32: 3e-7, torch.float16: 6e-2, torch.bfloat16: 4e-3}[dtype]
    for one, other in ((got, wanted), (x.grad, exact.grad)):
        assert ((one.double() - other).norm() / other.norm()).item() <= tolerance


def test_a_softmax_over_many_terms_has_the_forms_and_errors_of_one_over_few():
    x = torch.randn(40000, 2).cuda()
    out = torch.empty(0, device="cuda")
    torch._softmax(x, 0, False, out=out)
    assert torch.equal(out, torch.softmax(x, 0))
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.softmax(x, 2)
    with pytest.raises(RuntimeError, match="[Ee]xpected out tensor to have dtype"):
        torch._softmax(x, 0, False, out=torch.empty(0, device="cuda", dtype=torch.double))
    integers = torch.ones(40000, 2, dtype=torch.int64, device="cuda")
    assert torch.softmax(integers.float(), 0).sum().item() == pytest.approx(2)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [*LOW, torch.complex32], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_a_sum_of_many_halves_on_several_threads_is_rounded_once(
    seed: int, dtype: torch.dtype, two_threads: None
) -> None:
    generator = torch.Generator().manual_seed(seed)
    wide = torch.complex64 if dtype.is_complex else torch.float32
    numbers = torch.randn(512, 513, 2, generator=generator, dtype=wide).to(dtype)
    x = numbers.cuda()
    exact = numbers.to(torch.complex128 if dtype.is_complex else torch.float64)

    def check(got: torch.Tensor, want: torch.Tensor) -> None:
        assert got.shape == want.shape and got.dtype == dtype
        parts = [(got, want)] if not dtype.is_complex else [(got.real, want.real), (got.imag, want.imag)]
        for part, value in parts:
            step = torch.finfo(part.dtype).eps * value.abs().item() + 0.01
            assert abs(part.item() - value.item()) <= step

    check(x.sum(), exact.sum())
    check(x.transpose(0, 1).sum((0, 1, 2), keepdim=True), exact.sum((0, 1, 2), keepdim=True))
    check(x[:, ::2].sum(), exact[:, ::2].sum())
    check(x.view(1, -1).sum(1), exact.view(1, -1).sum(1))
    check(torch.sum(x, (0, 1, 2), out=torch.empty(0, dtype=dtype, device="cuda")), exact.sum())
    with torch.inference_mode():
        check(x.clone().sum(), exact.sum())


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("dims", [(0, 1), (0, 2, 3), (1, 3), (0, 1, 2, 3)], ids=str)
def test_a_sum_over_several_dimensions_is_rounded_once(dims: Tuple[int, ...], dtype: torch.dtype) -> None:
    numbers = torch.randn(16, 6, 20, 30, generator=torch.Generator().manual_seed(5)).to(dtype)
    for take in (lambda t: t, lambda t: t[:, ::2, :, :13], lambda t: t.transpose(1, 3)):
        want = take(numbers).double().sum(dims).to(dtype)
        got = take(numbers.cuda()).sum(dims)
        torch.testing.assert_close(got.cpu(), want, rtol=torch.finfo(dtype).eps, atol=2e-3)
        out = torch.sum(take(numbers.cuda()), dims, out=torch.empty(0, dtype=dtype, device="cuda"))
        assert torch.equal(out, got)


NUMBERS = [0.1, -1e-6, 2049, 65519.0, 1e5]  # 2049 is 2048 as a half, the last two are infinite


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_on_the_cpu_is_not_rounded_before_a_sum(dtype: torch.dtype, number: float) -> None:
    x = torch.randn(70001, generator=torch.Generator().manual_seed(3)).to("cuda", dtype)  # more than one block
    wide = x.float()
    assert torch.equal(x + number, (wide + number).to(dtype))
    assert torch.equal(x - number, (wide - number).to(dtype))
    assert torch.equal(number - x, (number - wide).to(dtype))
    assert torch.equal(torch.rsub(x, number, alpha=3), (number - 3 * wide).to(dtype))
    assert torch.equal(torch.add(torch.tensor(number), x[::3]), (number + wide[::3]).to(dtype))
    assert torch.equal(torch.add(x, number, out=torch.empty(0, device="cuda")), (wide + number).to(dtype).float())
    changed = x.clone()
    assert changed.sub_(number) is changed
    assert torch.equal(changed, (wide - number).to(dtype))


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_a_number_on_the_cpu_is_not_rounded_before_a_quotient(dtype: torch.dtype) -> None:
    x = torch.rand(40001, generator=torch.Generator().manual_seed(4)).add(0.1).to("cuda", dtype)
    number = torch.tensor(0.3, dtype=torch.float64)
    want = (0.3 / x.float()).to(dtype)
    assert torch.equal(torch.div(number, x), want)
    assert torch.equal(torch.div(number, x.view(1, 13, 17, -1).transpose(1, 3)).transpose(1, 3).reshape(-1), want)
    assert torch.equal(torch.div(number, x, out=torch.empty_like(x)), want)
    assert torch.div(number.float(), x[0]).dtype == torch.float32


def test_a_number_that_a_sum_keeps_costs_no_float_copy_of_the_tensor() -> None:
    x = torch.ones(1 << 24, dtype=torch.float16, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    y = x + 0.1
    assert torch.cuda.max_memory_allocated() - before <= 1.5 * y.nbytes  # blocks of each thread


@pytest.mark.parametrize("number", [0.1, 0.1 + 0.2j])
def test_complex_halves_keep_a_number_in_float(number: complex) -> None:
    x = torch.randn(37, dtype=torch.complex64).to(torch.complex32)
    want = (x.to(torch.complex64) + number).to(torch.complex32)
    assert torch.equal(torch.view_as_real((x.cuda() + number).cpu()), torch.view_as_real(want))
