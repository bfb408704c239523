"""Half precision where upstream's CPU kernels round at each step, or crash: values and gradients are rounded once."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import pytest
import torch
import torch.nn.functional as F

HALVES = [torch.float16, torch.bfloat16]


def assert_rounded_once(function: Callable[..., torch.Tensor], *arguments: torch.Tensor, ulps: float = 1.01) -> None:
    """Value and gradients on the device against those in double, in units in the last place of the largest."""
    dtype = arguments[0].dtype
    found: List[List[torch.Tensor]] = []
    for device, wide in (("cuda", dtype), ("cpu", torch.float64)):
        given = [argument.to(device, wide).requires_grad_() for argument in arguments]
        value = function(*given)
        grad = (torch.arange(value.numel(), device=device) % 7 - 2).view(value.shape).to(value)
        found.append([value.detach(), *torch.autograd.grad(value, given, grad)])
    for got, want in zip(*found):
        assert got.dtype == dtype
        unit = want.abs().max().item() * torch.finfo(dtype).eps
        assert (got.cpu().double() - want).abs().max().item() <= ulps * unit


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_of_images(mode: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    image, grid = torch.randn(4, 10, 60, 60).to(dtype), (torch.rand(4, 30, 30, 2) * 2 - 1).to(dtype)
    if mode == "nearest":  # whose grid has no gradient
        assert_rounded_once(lambda x: F.grid_sample(x, grid.to(x), mode=mode, align_corners=True), image)
    else:
        assert_rounded_once(lambda x, g: F.grid_sample(x, g, mode=mode, align_corners=False), image, grid)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_grid_sample_of_volumes(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    volume, grid = torch.randn(2, 3, 9, 10, 11).to(dtype), (torch.rand(2, 8, 8, 8, 3) * 2 - 1).to(dtype)
    assert_rounded_once(lambda x, g: F.grid_sample(x, g, align_corners=True), volume, grid)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("scale", [False, True])
def test_a_row_that_is_embedded_often_gets_its_whole_gradient(scale: bool, dtype: torch.dtype) -> None:
    places = torch.arange(5000) % 7
    table = torch.randn(9, 30).to(dtype)
    assert_rounded_once(lambda t: F.embedding(places.to(t.device), t, 3, scale_grad_by_freq=scale), table)
    ones = torch.ones(5000, 1, dtype=dtype, device="cuda")
    added = torch.ops.aten.embedding_dense_backward(
        ones, torch.zeros(5000, dtype=torch.long, device="cuda"), 2, -1, False
    )
    assert added.flatten().tolist() == [
        torch.tensor(5000.0).to(dtype).item(),
        0,
    ]  # 256 if each sum is rounded to bfloat16


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_a_row_that_lies_in_many_bags_gets_its_whole_gradient(mode: str, dtype: torch.dtype) -> None:
    places, weights = (torch.arange(5000) % 7).view(100, 50), (torch.rand(100, 50) + 1).to(dtype)
    table = torch.randn(9, 30).to(dtype)
    assert_rounded_once(lambda t: F.embedding_bag(places.to(t.device), t, mode=mode), table)
    if mode == "sum":
        assert_rounded_once(
            lambda t, w: F.embedding_bag(places.to(t.device), t, mode=mode, per_sample_weights=w), table, weights
        )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("size", [1, 32, 33])
def test_indices_that_repeat_add_in_float_where_cudas_kernel_does(size: int, dtype: torch.dtype) -> None:
    """Of slices longer than a warp each sum is rounded."""
    start, rows = torch.full((2, 3, size), 0.5, dtype=dtype), torch.arange(4000) % 2
    ones = torch.ones(4000, size, dtype=dtype)
    got = start.cuda().index_put_((rows.cuda(), (rows * 2).cuda()), ones.cuda(), accumulate=True)
    want = start.clone()
    largest = 2000.5 if size <= 32 else {torch.float16: 2000.5, torch.bfloat16: 256.0}[dtype]
    want[0, 0] = want[1, 2] = torch.tensor(largest).to(dtype)
    assert torch.equal(got.cpu(), want)
    assert torch.equal(torch.index_put(start.cuda(), (rows.cuda(), (rows * 2).cuda()), ones.cuda(), True), got)


@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_products_for_the_weight_of_a_sample_are_rounded(dtype: torch.dtype, padding: Optional[int]) -> None:
    """As by CUDA's kernel, which multiplies in the dtype and adds in float."""
    torch.manual_seed(0)
    table, grad = torch.randn(5, 33).to(dtype), torch.randn(3, 33).to(dtype)
    indices, offsets = torch.tensor([3, 1, 1, 4, 0]), torch.tensor([0, 2, 4])
    weights = torch.rand(5).to(dtype).cuda().requires_grad_()
    options = {"mode": "sum", "per_sample_weights": weights, "padding_idx": padding}
    rows = table.cuda().requires_grad_()  # torch 2.1 fails where the weights alone want a gradient
    F.embedding_bag(indices.cuda(), rows, offsets.cuda(), **options).backward(grad.cuda())
    want = (grad[torch.tensor([0, 0, 1, 1, 2])] * table[indices]).float().sum(1)
    want[indices == (-1 if padding is None else padding)] = 0
    torch.testing.assert_close(weights.grad.cpu(), want.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_a_slice_is_counted_as_cudas_kernel_counts_it() -> None:
    """Behind indices that stand together; all that have none where they do not."""

    def total(shape: Sequence[int], indices: Sequence[Any]) -> float:
        zeros = torch.zeros(shape, dtype=torch.bfloat16, device="cuda")
        at = [index if index is None else torch.zeros(4000, dtype=torch.long, device="cuda") for index in indices]
        return torch.ops.aten.index_put_(zeros, at, zeros.new_ones(()), True).max().item()

    one, exact, rounded = 1, 4000.0, 256.0
    assert total((40, 2, 4), [None, one]) == exact
    assert total((2, 40), [one]) == rounded
    assert total((2, 40, 2), [one, None, one]) == rounded
    assert total((2, 8, 2, 4), [one, None, one]) == exact
    with pytest.warns(UserWarning, match="index_put_ on expanded tensors"):
        torch.zeros(1, dtype=torch.float16, device="cuda").expand(3).index_put_(
            (torch.tensor([0, 1], device="cuda"),), torch.ones(2, dtype=torch.float16, device="cuda"), True
        )
    mask = torch.ones(4, 8, dtype=torch.bool, device="cuda")
    sums = torch.zeros(4, 8, 40, dtype=torch.bfloat16, device="cuda")
    assert sums.index_put_((mask,), sums.new_ones(()), True).eq(1).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_patches_that_overlap_add_up_and_are_rounded_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    assert_rounded_once(lambda p: F.fold(p, (40, 40), 7), torch.rand(2, 3 * 49, 34 * 34).to(dtype))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients_of_windows_that_overlap_are_rounded_once(dtype: torch.dtype, layout: torch.memory_format) -> None:
    """Each place lies in up to 169 windows, whose gradients CUDA adds up in float."""
    torch.manual_seed(0)
    image = torch.randn(2, 8, 24, 24).to(dtype).contiguous(memory_format=layout)

    def gradient(function: Callable[..., torch.Tensor], given: torch.Tensor) -> torch.Tensor:
        given = given.cuda().requires_grad_()
        value = function(given, 13, 1, 2)
        grad = torch.arange(value.numel(), device="cuda").remainder(1.75).view(value.shape)
        return torch.autograd.grad(value, given, grad.to(value))[0]

    for function, given in ((F.max_pool2d, image), (F.avg_pool2d, image), (F.avg_pool1d, image[0])):
        want = gradient(function, given.float())
        assert torch.equal(gradient(function, given), want.to(dtype)), function.__name__


CONVOLUTIONS = [
    (F.conv1d, (2, 8, 300), (16, 8, 5), {"stride": 2}),
    (F.conv2d, (4, 16, 40, 40), (32, 16, 3, 3), {"padding": 1}),
    (F.conv2d, (4, 16, 40, 40), (32, 16, 3, 3), {"dilation": 2}),
    (F.conv2d, (4, 16, 40, 40), (16, 1, 3, 3), {"groups": 16}),
    (F.conv2d, (1, 3, 9, 9), (4, 3, 2, 2), {}),
    (F.conv3d, (2, 4, 9, 10, 11), (8, 4, 3, 3, 3), {}),
    (F.conv_transpose2d, (2, 16, 20, 20), (16, 8, 3, 3), {"stride": 2, "output_padding": 1}),
]


# Each in contiguous tensors, images in channels-last too.
LAID_OUT = [
    (*case, layout)
    for layout in (torch.contiguous_format, torch.channels_last)
    for case in CONVOLUTIONS
    if layout == torch.contiguous_format or len(case[1]) == 4
]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("function", "image", "kernel", "options", "layout"), LAID_OUT)
def test_convolutions_are_rounded_once(function, image, kernel, options, layout, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(image).to(dtype).to(memory_format=layout), torch.randn(kernel).to(dtype)
    bias = torch.randn(kernel[1] if function is F.conv_transpose2d else kernel[0]).to(dtype)
    assert_rounded_once(lambda x, w, b: function(x, w, b, **options), x, weight, bias)


INTERPOLATED = [
    ("linear", (2, 3, 17), 29),
    ("bicubic", (2, 3, 9, 11), (14, 13)),
    ("trilinear", (2, 3, 7, 6, 5), (9, 8, 7)),
]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize(("mode", "shape", "size"), INTERPOLATED, ids=[mode for mode, _, _ in INTERPOLATED])
def test_interpolation_is_rounded_once(
    mode: str, shape: Sequence[int], size: Any, corners: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    image = torch.randn(shape).to(dtype)
    assert_rounded_once(lambda x: F.interpolate(x, size=size, mode=mode, align_corners=corners), image)


# Each is given two tensors of a half dtype, or of the floats that these are.
ROUNDED = {
    "softmax": lambda x, g: torch.softmax(x, 1),
    "softmax_backward": lambda x, g: torch.ops.aten._softmax_backward_data(g, x.abs() / 4, -1, g.dtype),
    "log_softmax_backward": lambda x, g: torch.ops.aten._log_softmax_backward_data(g, -x.abs(), -1, g.dtype),
    "glu_backward": lambda x, g: torch.ops.aten.glu_backward(g[..., :20], x, -1),
    "logit": lambda x, g: torch.logit(x.abs() / 4, 0.01),
    "logit_backward": lambda x, g: torch.ops.aten.logit_backward(g, x.abs() / 4, 0.01),
    "log_sigmoid_backward": lambda x, g: torch.ops.aten.log_sigmoid_backward(g, x, g.new_empty(0)),
    "prod": lambda x, g: x.prod(-1),
    "rsqrt": lambda x, g: torch.rsqrt(x.abs()),
    "polygamma": lambda x, g: torch.polygamma(3, x.abs().clamp_min(0.5)),
    "entr": lambda x, g: torch.special.entr(x.abs()),
    "adaptive_avg_pool3d": lambda x, g: F.adaptive_avg_pool3d(x.view(2, 3, 8, 4, 10), (3, 3, 4)),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ROUNDED)
def test_an_operator_is_computed_in_float_and_rounded_once(name: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(6)
    x, g = (torch.randn(6, 8, 40, generator=generator).to("cuda", dtype) for _ in range(2))
    got, want = ROUNDED[name](x, g), ROUNDED[name](x.float(), g.float()).to(dtype)
    # Of floats the CPU's vectorised functions may be off by a unit, and round to the other side now and then.
    assert (got != want).float().mean().item() <= 0.005
    torch.testing.assert_close(got, want, rtol=torch.finfo(dtype).eps, atol=0)


def test_a_range_of_bfloat16_is_rounded_once() -> None:
    want = (0.3 + 0.7 * torch.arange(3001, dtype=torch.float64)).to(torch.bfloat16)
    got = torch.arange(0.3, 2101.0, 0.7, dtype=torch.bfloat16, device="cuda")
    assert got.shape == want.shape
    assert (got.cpu() != want).sum().item() <= 3  # float may round to the other side
    out = torch.empty(3001, 2, dtype=torch.bfloat16, device="cuda")[:, 0]
    assert torch.arange(0.3, 2101.0, 0.7, out=out) is out
    assert torch.equal(out, got)
    with pytest.warns(UserWarning, match="resized"):
        assert torch.equal(torch.arange(0.3, 2101.0, 0.7, out=torch.empty(2, dtype=out.dtype, device="cuda")), got)
