"""Integer division where a processor traps: by zero, and of the smallest number by -1. A GPU has a result for both."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Callable, Dict, List

import pytest
import torch

SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
QUOTIENTS: Dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "floor_divide": torch.floor_divide,
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}
REMAINDERS: Dict[str, Callable[[Any, Any], torch.Tensor]] = {"remainder": torch.remainder, "fmod": torch.fmod}
IN_PLACE: Dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "floor_divide": lambda a, b: a.floor_divide_(b),
    "floor": lambda a, b: a.div_(b, rounding_mode="floor"),
    "trunc": lambda a, b: a.div_(b, rounding_mode="trunc"),
    "remainder": lambda a, b: a.remainder_(b),
    "fmod": lambda a, b: a.fmod_(b),
}


def out_of(name: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty(0, dtype=a.dtype, device="cuda")
    if name in ("floor", "trunc"):
        return torch.div(a, b, rounding_mode=name, out=out)
    return getattr(torch, name)(a, b, out=out)


def all_forms(name: str, a: torch.Tensor, b: Any) -> List[int]:
    """The result, after all forms of the operator have given the same one."""
    function = {**QUOTIENTS, **REMAINDERS}[name]
    result = function(a, b)
    assert result.dtype == a.dtype and result.is_cuda
    assert torch.equal(IN_PLACE[name](a.clone(), b), result)
    if isinstance(b, torch.Tensor):
        assert torch.equal(out_of(name, a, b), result)
        assert torch.equal(function(a.repeat(2)[::2], b.repeat(2)[::2]), function(a.repeat(2), b.repeat(2))[::2])
    return result.tolist()


@pytest.mark.parametrize("dtype", [torch.uint8, *SIGNED], ids=str)
@pytest.mark.parametrize("name", [*QUOTIENTS, *REMAINDERS])
def test_a_division_by_zero_gives_all_ones(name: str, dtype: torch.dtype) -> None:
    a = torch.tensor([5, 0, 7], dtype=dtype, device="cuda")
    ones = {torch.uint8: 255, torch.int64: 2**32 - 1}.get(dtype, -1)
    rest = {"remainder": 1, "fmod": 1}.get(name, 3)
    assert all_forms(name, a, torch.tensor([0, 0, 2], dtype=dtype, device="cuda")) == [ones, ones, rest]
    assert all_forms(name, a, 0) == [ones] * 3
    if name == "remainder":
        assert torch.remainder(3, a).tolist() == [3, ones, 3]


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
@pytest.mark.parametrize("name", [*QUOTIENTS, *REMAINDERS])
def test_the_smallest_number_by_minus_one_does_not_end_the_process(name: str, dtype: torch.dtype) -> None:
    smallest = torch.iinfo(dtype).min
    a = torch.tensor([smallest, 6, -7], dtype=dtype, device="cuda")
    want = [0, 0, 0] if name in REMAINDERS else [smallest, -6, 7]
    assert all_forms(name, a, torch.full((3,), -1, dtype=dtype, device="cuda")) == want
    assert all_forms(name, a, -1) == want


def test_dtypes_and_shapes_are_those_of_any_division() -> None:
    a = torch.tensor([[4], [-5]], dtype=torch.int8, device="cuda")
    b = torch.tensor([2, 0, -1], dtype=torch.int32, device="cuda")
    quotient = torch.floor_divide(a, b)
    assert quotient.dtype == torch.int32 and quotient.tolist() == [[2, -1, -4], [-3, -2, 5]]
    assert (a // torch.tensor(0)).dtype == torch.int8
    assert torch.remainder(a, torch.tensor([True], device="cuda")).tolist() == [[0], [0]]
    out = torch.empty(2, 3, device="cuda")
    assert torch.floor_divide(a, b, out=out).tolist() == [[2, -1, -4], [-3, -2, 5]]
    with pytest.raises(RuntimeError, match="at least two devices"):
        torch.floor_divide(a, b.cpu())
    assert (a / 0).isinf().all() and (a.float() // 0).isinf().all()


def test_a_divisor_that_becomes_special_in_the_divisions_dtype_is_found() -> None:
    x = torch.tensor([-128, 5], dtype=torch.int8, device="cuda")
    assert (x // 256).tolist() == (x // torch.zeros_like(x)).tolist()  # 256 is 0 in eight bits
    assert (x // torch.tensor(256, device="cuda")).tolist() == (x // torch.zeros_like(x)).tolist()
    assert (x // 255).tolist() == [-128, -5]
    assert (x % 255).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_one_zero_among_many_divisors_is_found(dtype: torch.dtype) -> None:
    for place in (0, 127, 128, 999):
        divisor = torch.arange(1000).remainder(100).add(2).to(dtype)
        divisor[place] = 0
        got = torch.floor_divide(torch.full_like(divisor, 100).cuda(), divisor.cuda()).cpu()
        others = torch.arange(1000) != place
        assert torch.equal(got[others], torch.floor_divide(100, divisor[others]))
        assert got[place].item() == {torch.uint8: 255, torch.int64: 2**32 - 1}.get(dtype, -1)
    assert torch.equal(
        torch.tensor([200], dtype=torch.uint8).cuda().fmod(255).cpu(), torch.tensor([200], dtype=torch.uint8)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("size", [1, 40])
def test_a_quotient_that_no_float_holds_leaves_a_modulus(size: int, dtype: torch.dtype) -> None:
    x = torch.full((size,), -4.375, dtype=dtype, device="cuda")
    tiny = torch.full((size,), torch.finfo(dtype).tiny, dtype=dtype, device="cuda")
    infinite, zero = torch.full_like(x, -float("inf")), torch.zeros_like(x)
    assert torch.equal(torch.fmod(x, tiny), zero) and torch.equal(torch.remainder(x, tiny), zero)
    assert torch.equal(torch.div(x, tiny, rounding_mode="floor"), infinite)
    assert torch.equal(torch.floor_divide(x, tiny), infinite)
    assert torch.equal(x.clone().fmod_(tiny), zero) and torch.equal(x.clone().floor_divide_(tiny), infinite)
    assert torch.equal(x.clone().remainder_(tiny), zero)
    assert torch.equal(torch.fmod(x, tiny, out=torch.empty_like(x)), zero)
    assert torch.equal(x.clone().div_(tiny, rounding_mode="floor"), infinite)
    assert torch.fmod(x, 0).isnan().all() and torch.fmod(infinite, x).isnan().all(), "what has no value stays NaN"


def test_a_number_that_the_common_dtype_does_not_hold_is_an_infinity() -> None:
    for device in ("cpu", "cuda"):
        t = torch.tensor([1, 2, 3], device=device)
        x = torch.tensor([float("-inf"), 2.0], device=device)
        assert bool((1e300 // t).isnan().all()) and bool((1e300 % t).isnan().all())
        assert bool(torch.div(x, 1e300, rounding_mode="trunc")[0].isnan())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize("number", [0.3, 3, -7])
def test_a_low_precision_quotient_by_a_number_is_rounded_after_its_integer_part(
    dtype: torch.dtype, mode: str, number: float
) -> None:
    x = torch.arange(-4096, 4096, device="cuda").to(dtype)
    want = torch.div(x.float(), number, rounding_mode=mode).to(dtype)
    assert torch.equal(torch.div(x, number, rounding_mode=mode), want)
    assert torch.equal(x.clone().div_(number, rounding_mode=mode), want)
    if mode == "floor":
        assert torch.equal(x // number, want)


def test_a_low_precision_quotient_by_zero_is_infinite() -> None:
    x = torch.tensor([-1.0, 1.0], dtype=torch.bfloat16, device="cuda")
    for mode in ("trunc", "floor"):
        assert torch.div(x, 0.0, rounding_mode=mode).tolist() == [-torch.inf, torch.inf]
        assert torch.div(x[:1] * 0, 0.0, rounding_mode=mode).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_floored_quotients_of_halves_are_rounded_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a, b = (((torch.rand(20000) - 0.5) * 130000).to(dtype) for _ in range(2))
    b[b == 0] = 1
    floored = [math.floor(Fraction(x) / Fraction(y)) for x, y in zip(a.tolist(), b.tolist())]
    want = torch.tensor(floored, dtype=torch.float64).to(dtype)
    got = torch.floor_divide(a.cuda(), b.cuda())
    assert got.dtype == dtype
    # Upstream's kernel on the CPU rounds each of its steps.
    assert torch.equal(got.cpu(), want) and not torch.equal(torch.floor_divide(a, b), want)
    for other in (IN_PLACE["floor"](a.cuda(), b.cuda()), out_of("floor_divide", a.cuda(), b.cuda())):
        assert torch.equal(other, got)
    turned = torch.floor_divide(a.cuda().view(100, 200).t(), b.cuda().view(100, 200).t())
    assert turned.stride() == (1, 200) and torch.equal(turned.t().flatten(), got)
    by_one = torch.floor_divide(a.cuda(), b.cuda()[:1])
    assert torch.equal(by_one, torch.floor_divide(a.cuda(), b.cuda()[:1].expand(20000)))
    with pytest.raises(RuntimeError, match="same device"):
        torch.floor_divide(a.cuda(), b)
