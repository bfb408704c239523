"""A copy between contiguous and channels-last tensors moves every element to its place, whatever tiles it goes in."""

from __future__ import annotations

from typing import Tuple

import pytest
import torch

DTYPES = (
    torch.uint8,
    torch.bool,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.int64,
    torch.float64,
    torch.complex64,
    torch.complex128,
)
# On a tile's border, one before and one behind it, narrower than a tile, and one of several images.
SHAPES = ((2, 64, 8, 16), (1, 63, 13, 5), (3, 65, 7, 19), (2, 5, 64, 64), (2, 80, 3, 3), (5, 17, 300), (2, 33, 4, 5, 6))


def strided(shape: Tuple[int, ...], dtype: torch.dtype, device: str, channels_last: bool) -> torch.Tensor:
    """Not initialised, of that layout, with other elements of the storage before and behind it."""
    sizes = (shape[0] + 2, *shape[2:], shape[1]) if channels_last else (shape[0] + 2, *shape[1:])
    whole = torch.zeros(sizes, dtype=dtype, device=device)[1:-1]
    return whole.movedim(-1, 1) if channels_last else whole


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("gathers", [True, False], ids=["to contiguous", "to channels-last"])
def test_every_element_arrives_and_nothing_else_changes(
    shape: Tuple[int, ...], dtype: torch.dtype, gathers: bool
) -> None:
    numbers = torch.arange(torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)
    values = (numbers * 7 % 251 - (0 if dtype == torch.uint8 else 125)).to(dtype)
    source = strided(shape, dtype, "cuda", channels_last=gathers)
    for pixel in range(values[0, 0].numel()):  # by other copies than the one under test
        source.flatten(2)[..., pixel] = values.flatten(2)[..., pixel].cuda()
    target = strided(shape, dtype, "cuda", channels_last=not gathers)
    target.copy_(source)
    assert target.cpu().flatten().tolist() == values.flatten().tolist()
    base = target._base
    assert base is not None and not base[0].any() and not base[-1].any()


def test_upload_and_download_in_the_other_layout() -> None:
    x = torch.randn(3, 48, 20, 20)
    device = x.cuda()
    assert device.is_contiguous(memory_format=torch.channels_last)
    host = torch.empty(3, 48, 20, 20)
    host.copy_(device)
    assert torch.equal(host, x)
    assert torch.equal(torch.empty_like(x, device="cuda").copy_(x).cpu(), x)


def test_a_copy_onto_memory_that_it_reads_is_refused() -> None:
    whole = torch.arange(3 * 32**3, dtype=torch.float32).cuda()
    rows = whole[: 2 * 32**3].view(2, 32, 32, 32)
    pixels = whole[32**3 :].view(2, 32, 32, 32).permute(0, 3, 1, 2)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        rows.copy_(pixels)
    assert torch.equal(whole.cpu(), torch.arange(3 * 32**3, dtype=torch.float32))


@pytest.mark.skipif(not hasattr(torch.Tensor, "refine_names"), reason="this release has no named tensors")
@pytest.mark.filterwarnings("ignore:Named tensors")
def test_names_are_compared_and_handed_on() -> None:
    source = torch.randn(2, 16, 16, 32, device="cuda").permute(0, 3, 1, 2).refine_names("N", "C", "X", "W")
    target = torch.zeros(2, 32, 16, 16, device="cuda")
    assert target.copy_(source).names == ("N", "C", "X", "W")
    with pytest.raises(RuntimeError, match="Error when attempting to broadcast dims"):
        torch.zeros(2, 32, 16, 16, names=("N", "C", "H", "W"), device="cuda").copy_(source)
