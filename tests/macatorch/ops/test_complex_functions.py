"""Functions of complex numbers where formulas overflow, cancel or lose infinities: the C library's, as on CUDA."""

from __future__ import annotations

from typing import Any, Callable, Dict

import numpy
import pytest
import torch

REFERENCES: Dict[str, Callable[[Any], Any]] = {
    "acos": numpy.arccos,
    "asin": numpy.arcsin,
    "atan": numpy.arctan,
    "exp": numpy.exp,
    "exp2": numpy.exp2,
    "reciprocal": lambda z: 1 / z,
    "sigmoid": lambda z: 1 / (1 + numpy.exp(-z)),
}
RANGE = {"exp": 80.0, "exp2": 100.0, "sigmoid": 60.0}


def numbers(largest: float, dtype: torch.dtype) -> torch.Tensor:
    """Random signs and magnitudes, evenly spread from 1e-30 to ``largest`` on a logarithmic scale."""
    generator = torch.Generator().manual_seed(3)
    top = float(torch.tensor(largest).log10())
    exponents = torch.rand(2, 999, dtype=torch.float64, generator=generator) * (30 + top) - 30
    signs = torch.randint(2, (2, 999), generator=generator) * 2 - 1
    return torch.complex(*(10.0**exponents * signs)).to(dtype)


def close(got: torch.Tensor, want: torch.Tensor) -> None:
    relative = 1e-3 if got.dtype == torch.complex32 else 1e-4
    wide = got.cpu().to(torch.complex128)
    assert bool(((wide - want).abs() <= relative * want.abs() + 1e-38).all())


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", REFERENCES)
def test_every_magnitude_has_its_value(name: str, dtype: torch.dtype) -> None:
    x = numbers(RANGE.get(name, 1e30), dtype)
    want = torch.from_numpy(REFERENCES[name](x.numpy().astype(numpy.complex128)))
    function = getattr(torch, name)
    given = x.cuda()
    close(function(given), want)
    close(function(given[::2]), want[::2])
    close(function(given.conj()), want.conj())
    out = torch.empty(0, dtype=torch.complex128, device="cuda")
    assert function(given, out=out) is out
    close(out, want)
    half = given.clone()[5:]
    assert function(half, out=half) is half
    close(half, want[5:])
    assert getattr(given, name + "_")() is given
    close(given, want)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["exp", "asin", "sigmoid"])
def test_complex_halves_are_rounded_once(name: str) -> None:
    x = torch.complex(torch.linspace(-3, 3, 20), torch.linspace(2, -2, 20)).to(torch.complex32)
    want = torch.from_numpy(REFERENCES[name](x.to(torch.complex128).numpy()))
    close(getattr(torch, name)(x.cuda()), want)


def same(got: torch.Tensor, want: Any) -> bool:
    return bool(numpy.array_equal(got.cpu().numpy(), numpy.array(want, dtype=numpy.complex64), equal_nan=True))


def test_infinities_have_their_values() -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([complex(inf, 0), complex(-inf, inf), complex(-inf, nan), complex(inf, inf)], device="cuda")
    y = torch.exp(x)
    assert y[0].item() == complex(inf, 0) and y[1:3].tolist() == [0, 0] and y[3].real.item() == inf
    assert torch.exp2(x)[:3].tolist() == [complex(inf, 0), 0, 0]
    z = torch.tensor([complex(inf, 1), complex(3, -inf), complex(inf, inf), complex(nan, 1)], device="cuda")
    assert same(torch.reciprocal(z), [0, 0, complex(nan, nan), complex(nan, nan)])
    assert torch.atan(x[:1]).real.item() == pytest.approx(1.5707964)
    assert torch.asin(x[:1]).imag.item() == inf
    assert torch.sigmoid(x[:1]).item() == 1


def test_outputs_are_checked_as_before() -> None:
    x = torch.ones(4, dtype=torch.complex64, device="cuda")
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.exp(x, out=torch.empty(4, device="cuda"))
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.exp(x, out=torch.empty(1, dtype=torch.complex64, device="cuda").expand(4))
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        torch.exp(x[1:], out=x[:-1])
    assert torch.exp(torch.empty(0, dtype=torch.complex64, device="cuda")).shape == (0,)


def test_a_nan_part_leaves_what_the_other_part_of_log1p_says() -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([complex(nan, inf), complex(-inf, nan), complex(1, nan)], device="cuda")
    y = torch.log1p(x)
    assert y.real[:2].tolist() == [inf, inf] and bool(y.imag.isnan().all()) and bool(y.real[2].isnan())
    small = torch.tensor([1e-20 + 1e-20j, 0.25 - 2j, -3 + 0j], dtype=torch.complex128)
    want = torch.cat([small[:1], torch.log(1 + small[1:])])
    torch.testing.assert_close(torch.log1p(small.cuda()).cpu(), want, atol=0, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", ["acos", "asin", "atan", "exp", "log1p", "reciprocal", "sigmoid"])
def test_a_list_of_tensors_has_the_values_of_each(name: str, dtype: torch.dtype) -> None:
    parts = [float("inf"), -float("inf"), float("nan"), 0.0, 1.0, -1e30]
    extremal = torch.tensor([complex(a, b) for a in parts for b in parts], dtype=dtype, device="cuda")
    tensors = [extremal, torch.ones(3, device="cuda"), extremal[::2]]
    wanted = [getattr(torch, name)(tensor) for tensor in tensors]
    copies = [tensor.clone() for tensor in tensors]
    getattr(torch, f"_foreach_{name}_")(copies)
    for list_ in (getattr(torch, f"_foreach_{name}")(tensors), copies):
        for got, want in zip(list_, wanted):
            torch.testing.assert_close(got, want, equal_nan=True)


def test_one_suspect_element_among_many_is_found() -> None:
    for place in (0, 63, 64, 1000, 1023):
        x = torch.zeros(1024, dtype=torch.complex128)
        x[place] = complex(float("inf"), 0)
        assert torch.exp(x.cuda())[place].item() == complex(float("inf"), 0)
        x = torch.full((1024,), 0.5 + 0.5j, dtype=torch.complex64)
        x[place] = -60 + 1j
        assert abs(torch.sigmoid(x.cuda())[place].item() / numpy.exp(-60 + 1j) - 1) < 1e-5
