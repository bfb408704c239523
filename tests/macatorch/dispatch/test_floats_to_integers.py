"""Floating-point numbers that an integer type does not hold become what PTX's cvt makes of them, as upstream's do."""

import math

import pytest
import torch

NUMBERS = [
    math.nan, math.inf, -math.inf, 3e9, -3e9, 5e9, -5e9, 1e19, -1e19, 2e19, 2.0**31, -(2.0**31), 2.0**32, 2.0**63,
    -(2.0**63), 2.0**64, 70000.0, -70000.0, 300.75, -300.75, 255.0, 128.0, -128.5, 1.5, -1.5, -0.25, 0.0, -0.0,
]  # fmt: skip
SOURCES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
TARGETS = [
    getattr(torch, name)
    for name in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
    if hasattr(torch, name)
]


def ptx(number: float, bits: int, signed: bool, wide: bool) -> int:
    """cvt.rzi to 32 or 64 bits; wide: the number has 64."""
    if math.isnan(number):
        highest = -(1 << (bits - 1)) if signed else 1 << (bits - 1)
        return highest if wide or bits == 64 else 0
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if math.isinf(number):
        return most if number > 0 else least
    return max(least, min(most, int(number)))


def wanted(number: float, source: torch.dtype, target: torch.dtype) -> int:
    """nvcc's code for a cast: small types have the low bits of a conversion to 32, torch's uint8 those of one to 64."""
    info = torch.iinfo(target)
    signed = target == torch.uint8 or info.min < 0
    bits = 64 if target == torch.uint8 else max(32, info.bits)
    low = ptx(number, bits, signed, source == torch.float64) & ((1 << info.bits) - 1)
    return low - (1 << info.bits) if info.min < 0 and low >> (info.bits - 1) else low


def numbers(source: torch.dtype) -> torch.Tensor:
    return torch.tensor(NUMBERS, dtype=torch.float64).to(source)


def listed(tensor: torch.Tensor) -> list:
    # Newer unsigned types have few operators.
    return tensor.cpu().numpy().tolist()


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_conversions_are_those_of_ptx(source, target):
    x = numbers(source)
    expected = [wanted(number, source, target) for number in x.double().tolist()]
    got = listed(x.cuda().to(target))
    assert got == expected, [(n, g, e) for n, g, e in zip(NUMBERS, got, expected) if g != e]
    # Between numbers that fit, in blocks, in steps and one by one.
    many = torch.ones(1000, dtype=source)
    many[::37] = x[: len(many[::37])]
    expected = [wanted(number, source, target) for number in many.double().tolist()]
    assert listed(many.cuda().to(target)) == expected
    assert listed(many.cuda()[::3].to(target)) == expected[::3]
    assert listed(many.cuda()[37].to(target)) == expected[37]
    columns = [expected[k::40] for k in range(40)]
    assert listed(many.cuda().reshape(25, 40).t().to(target)) == columns


def test_reported_values():
    """Outputs of GPUs in issues 154311, 154724 and 154726 of pytorch/pytorch."""
    ends = [math.inf, -math.inf, math.nan]
    assert torch.tensor(ends).cuda().int().tolist() == [2**31 - 1, -(2**31), 0]
    assert torch.tensor(ends).cuda().long().tolist() == [2**63 - 1, -(2**63), -(2**63)]
    assert torch.tensor(ends, dtype=torch.float64).cuda().int().tolist() == [2**31 - 1, -(2**31), -(2**31)]


def test_every_way_of_copying():
    x = torch.tensor([[3e9, 1.0, -3e9], [math.nan, math.inf, 2.5]], device="cuda")
    expected = [[2**31 - 1, 1, -(2**31)], [0, 2**31 - 1, 2]]
    into = torch.zeros(2, 3, dtype=torch.int32, device="cuda")
    assert into.copy_(x).tolist() == expected
    assert into.zero_().t().copy_(x.t()).t().tolist() == expected
    assert torch.zeros(2, 2, 3, dtype=torch.int32, device="cuda").copy_(x).tolist() == [expected, expected]
    assert x[:, :1].expand(2, 3).int().tolist() == [[2**31 - 1] * 3, [0] * 3]
    assert x.type(torch.cuda.IntTensor).tolist() == expected
    into.zero_()[:] = x
    assert into.tolist() == expected
    torch._foreach_copy_([into.zero_()], [x])
    assert into.tolist() == expected
    assert torch.complex(x, x).imag.int().tolist() == expected
    turned = torch.complex(x, x).conj().imag  # negative by a bit alone
    assert turned.int().tolist() == [[-(2**31), -1, 2**31 - 1], [0, -(2**31), -2]]
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="imaginary"):
            assert torch.complex(x, x).int().tolist() == expected
    finally:
        torch.set_warn_always(False)
    small = torch.tensor([math.nan, 448.0, -1.5], device="cuda").to(torch.float8_e4m3fn)
    assert small.int().tolist() == [0, 448, -1]


@pytest.mark.parametrize("target", (torch.uint8, torch.int16, torch.int32, torch.int64), ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_sums_and_products_convert_first(name, target):
    """Upstream converts what it combines in an integer dtype by a copy on the device."""
    call = getattr(torch, name)
    x = torch.tensor([[math.inf, 3e9, -1.5], [2.5, math.nan, -math.inf]], device="cuda")
    for dims in [[0], [1], *{"sum": [[()]], "prod": [[]]}.get(name, [])]:
        expected = call(x.to(target), *dims, dtype=target)
        for given in x, x.t().contiguous().t():
            assert torch.equal(call(given, *dims, dtype=target), expected)
        if dims:
            into = torch.zeros_like(expected)
            assert torch.equal(call(x, *dims, out=into), expected) and torch.equal(into, expected)
            assert torch.equal(call(x, *dims, dtype=target, out=into.zero_()), expected)
    assert call(x, 1).isnan().any() and call(x > 0, 1, dtype=target).dtype == target


def test_a_copy_from_the_host_converts_there():
    """As upstream, which converts on the host before it copies."""
    x = torch.tensor([3e9, math.nan, 7.0])
    assert torch.zeros(3, dtype=torch.int32, device="cuda").copy_(x).tolist() == x.int().tolist()
    assert torch.zeros(3, dtype=torch.int32).copy_(x.cuda()).tolist() == x.int().tolist()


def test_sizes_that_do_not_fit_are_refused():
    into = torch.zeros(3, dtype=torch.int32, device="cuda")
    with pytest.raises(RuntimeError, match=r"must match the size|doesn't match"):
        into.copy_(torch.full((2,), math.inf, device="cuda"))
    assert into.tolist() == [0, 0, 0]
