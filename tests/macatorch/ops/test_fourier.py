"""Fourier transforms are laid out as cuFFT leaves them, and take in half precision what cuFFT takes."""

from __future__ import annotations

import itertools
from typing import Tuple

import pytest
import release_facts
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])

# Transform, shape, dimensions, strides of the result: one plan; a real step and then the others, batch last; four
# dimensions in two plans.
STRIDES = [
    ("rfftn", (5, 6, 7), (1, 2), (24, 4, 1)),
    ("rfftn", (5, 6, 7), (0, 1, 2), (6, 1, 30)),
    ("rfft2", (5, 6, 7), (0, 1), (1, 5, 20)),
    ("irfftn", (5, 6, 7), (0, 1, 2), (72, 12, 1)),
    ("fftn", (5, 6, 7), (0, 2), (7, 35, 1)),
    ("fftn", (2, 3, 4, 5), (0, 1, 2, 3), (1, 40, 10, 2)),
]


@pytest.mark.parametrize(("name", "shape", "dims", "strides"), STRIDES, ids=str)
def test_a_transform_has_the_strides_of_cufft(
    name: str, shape: Tuple[int, ...], dims: Tuple[int, ...], strides: Tuple[int, ...]
) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    on_device = torch.empty(shape, device="cuda").copy_(x)  # contiguous: images that move arrive in channels-last
    result = getattr(torch.fft, name)(on_device, dim=dims)
    assert result.stride() == strides
    torch.testing.assert_close(result.cpu(), getattr(torch.fft, name)(x, dim=dims))


@pytest.mark.skipif(RELEASE < (2, 12), reason="this release's FakeTensor says that every transform is contiguous")
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_transforms_of_any_dimensions_are_laid_out_as_faketensor_says(name: str) -> None:
    transform = getattr(torch.fft, name)
    x = torch.randn(2, 3, 4, 5, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    given = x if name in ("rfftn", "ihfftn") else x.to(torch.complex128)
    for order in ((0, 1, 2, 3, 4), (4, 2, 0, 1, 3)):
        source = given.permute(order)
        for count in (1, 2, 3, 4, 5):
            for dims in itertools.islice(itertools.permutations(range(5), count), 0, None, 1 + count * count // 3):
                moved = given.cuda().permute(order)
                result = transform(moved, dim=dims)
                with FakeTensorMode() as mode:
                    fake = transform(mode.from_tensor(moved), dim=dims)
                assert result.stride() == fake.stride(), (order, dims)
                torch.testing.assert_close(result.cpu(), transform(source, dim=dims))


@release_facts.wants("transforms_of_bfloat16")
def test_bfloat16_is_transformed_as_float() -> None:
    x = torch.randn(6, 10, generator=torch.Generator().manual_seed(3)).bfloat16()
    for dim in (0, 1):
        got = torch.fft.rfft(x.cuda(), dim=dim)
        assert got.dtype == torch.complex64
        torch.testing.assert_close(got.cpu(), torch.fft.rfft(x.float(), dim=dim))
    window = torch.ones(10).bfloat16()
    framed = torch.stft(x.flatten().cuda(), 10, window=window.cuda(), return_complex=True)
    want = torch.stft(x.flatten().float(), 10, window=window.float(), return_complex=True)
    assert framed.dtype == torch.complex64
    torch.testing.assert_close(framed.cpu(), want)


@release_facts.wants("transforms_of_empty_batches")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft2"])
def test_of_an_empty_batch_the_transform_is_empty(name: str, dtype: torch.dtype) -> None:
    nothing = getattr(torch.fft, name)(torch.ones(0, 2, 4, dtype=dtype, device="cuda"))
    assert nothing.dtype == torch.complex64 and nothing.shape[0] == 0


@pytest.mark.skipif(release_facts.has("transforms_of_empty_batches"), reason="since torch 2.15 the result is empty")
@pytest.mark.parametrize("name", ["fft", "fft2", "rfft", "irfft", "hfft", "ihfft2"])
def test_an_empty_batch_is_refused_as_by_cufft(name: str) -> None:
    with pytest.raises(RuntimeError, match="cuFFT error: CUFFT_INVALID_SIZE"):
        getattr(torch.fft, name)(torch.ones(0, 2, 4, device="cuda"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.complex32], ids=str)
def test_half_precision_takes_powers_of_two_only(dtype: torch.dtype) -> None:
    refusal = r"cuFFT only supports dimensions whose sizes are powers of two .* signal size of\[{}\]"
    x = torch.ones(8, 12, dtype=dtype, device="cuda")
    with pytest.raises(RuntimeError, match=refusal.format(12)):
        torch.fft.fft(x)
    with pytest.raises(RuntimeError, match=refusal.format(6)):
        torch.fft.ifft(x, n=6)
    with pytest.raises(RuntimeError, match=refusal.format(12)):
        torch.fft.fft(x, out=torch.empty(8, 12, dtype=torch.complex32, device="cuda"))
    assert torch.fft.fft(x, dim=0)[0].real.tolist() == [8.0] * 12
    if dtype == torch.float16:
        with pytest.raises(RuntimeError, match=refusal.format("12, 8")):
            torch.fft.rfft2(x, dim=(1, 0))
    else:
        assert torch.fft.irfft(x[:, :5], n=8).shape == (8, 8)
