"""Gradients of convolutions over large images, and sizes and strides at the edge (ops/nn/Convolution.cpp)."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any, Dict, List, Tuple

import pytest
import torch

CASES: Dict[str, Tuple[Tuple[int, int, int], Dict[str, object]]] = {
    "3x3": ((40, 48, 3), {"padding": 1}),
    "strided": ((32, 24, 3), {"stride": 2}),
    "dilated": ((32, 24, 3), {"dilation": 2, "padding": 2}),
    "5x5": ((36, 8, 5), {"padding": "same"}),
    "one output channel": ((32, 1, 2), {}),
    "pointwise": ((32, 16, 1), {}),
    "few channels": ((3, 16, 3), {}),
    "pointwise, few channels, strided": ((3, 16, 1), {"stride": (2, 3)}),
    "pointwise, few channels, strided in one": ((15, 4, 1), {"stride": (1, 2)}),
    "pointwise, few channels, in groups": ((6, 8, 1), {"stride": 2, "groups": 2}),
    "pointwise, few channels, padded": ((3, 16, 1), {"stride": 2, "padding": 1}),
    "transposed": ((24, 32, 3), {"transposed": True, "padding": 1}),
    "transposed, strided": ((48, 40, 2), {"transposed": True, "stride": 2}),
    "transposed, pointwise": ((16, 5, 1), {"transposed": True, "stride": 3, "output_padding": 2}),
    "transposed, pointwise, dilated": (
        (8, 4, 1),
        {"transposed": True, "stride": 2, "dilation": 4, "output_padding": 3},
    ),
    "transposed, one input channel": ((1, 32, 4), {"transposed": True, "stride": 3, "output_padding": 1}),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("wanted", ["all", "input", "weight", "weight and bias"])
def test_gradients_are_those_of_double_precision(case: str, dtype: torch.dtype, wanted: str) -> None:
    (inner, outer, width), given_options = CASES[case]
    options = dict(given_options)
    transposed = options.pop("transposed", False)
    convolution = torch.nn.functional.conv_transpose2d if transposed else torch.nn.functional.conv2d
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(2, inner, 26, 30, generator=generator).to(dtype)
    groups = int(str(options.get("groups", 1)))
    sides = (inner, outer) if transposed else (outer, inner // groups)
    weight = torch.randn(*sides, width, width, generator=generator).to(dtype)
    bias = torch.randn(outer, generator=generator).to(dtype)
    places = {"all": (0, 1, 2), "input": (0,), "weight": (1,), "weight and bias": (1, 2)}[wanted]

    def gradients(device: str, kind: torch.dtype) -> Tuple[torch.Tensor, ...]:
        given = [tensor.to(device, kind) for tensor in (x, weight, bias)]
        for place in places:
            given[place].requires_grad_()
        result = convolution(*given, **options)  # type: ignore[arg-type]
        # Values that bfloat16 has: both sides begin with the same gradient.
        ramp = (torch.arange(result.numel(), dtype=torch.float64) % 17 - 5).to(device, kind).view(result.shape)
        return torch.autograd.grad(result, [given[place] for place in places], ramp)

    tolerance = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 1e-2}[dtype]
    for found, expected in zip(gradients("cuda", dtype), gradients("cpu", torch.float64)):
        assert found.dtype == dtype
        difference = (found.cpu().double() - expected).abs().max() / expected.abs().max()
        assert difference < tolerance


def test_gradients_are_right_on_a_processor_without_avx512() -> None:
    """There the weight's gradient is computed in copies, from 32 input channels on."""
    chosen = "test_gradients_are_those_of_double_precision and weight and (3x3 or strided) and not float64"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", chosen]
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": "avx2"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout


# Shapes that oneDNN computes wrongly in bfloat16 on processors with AMX, or ends the process at: input, weight, others.
NARROW: Dict[str, Tuple[Tuple[int, ...], Tuple[int, ...], Dict[str, object]]] = {
    "one column, strided and padded": ((2, 16, 5, 1), (16, 16, 2, 4), {"stride": (1, 2), "padding": (0, 2)}),
    "one column of results": ((2, 4, 11, 11), (2, 4, 2, 4), {"stride": 2, "dilation": 3}),
    "one column of results, volumes": ((2, 4, 11, 11, 11), (1, 4, 2, 1, 4), {"stride": 2, "dilation": 3}),
    "a line of one": ((2, 3, 1), (8, 3, 4), {"stride": 2, "padding": 2}),
    "a kernel larger than the line": ((1, 1, 2), (33, 1, 3), {"stride": 3, "padding": 2}),
    "dilated, one channel a kernel": ((3, 32, 40, 40), (32, 1, 3, 3), {"dilation": 3, "groups": 32}),
    "a dilated point on a padded column": (
        (2, 3, 6, 1),
        (8, 3, 3, 1),
        {"stride": (3, 2), "padding": (0, 1), "dilation": 2},
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", NARROW)
def test_narrow_images_and_dilated_kernels_are_convolved(case: str, dtype: torch.dtype) -> None:
    sizes, kernel, options = NARROW[case]
    convolution = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)[len(sizes) - 3]
    generator = torch.Generator().manual_seed(5)
    x, weight = (torch.randn(*shape, generator=generator).to(dtype) for shape in (sizes, kernel))

    def computed(device: str, kind: torch.dtype) -> Tuple[torch.Tensor, ...]:
        given = [tensor.to(device, kind).requires_grad_() for tensor in (x, weight)]
        # What a result leaves unwritten is no number then.
        left = [torch.full((size,), float("nan"), dtype=kind, device=device) for size in (40, 800, 9000) * 20]
        del left
        result = convolution(*given, **options)  # type: ignore[operator]
        ramp = (torch.arange(result.numel(), dtype=torch.float64) % 17 - 5).to(device, kind).view(result.shape)
        return (result, *torch.autograd.grad(result, given, ramp))

    for found, expected in zip(computed("cuda", dtype), computed("cpu", torch.float64)):
        difference = (found.cpu().double() - expected).abs().max() / expected.abs().max().clamp(min=1)
        assert difference < (1e-2 if dtype == torch.bfloat16 else 1e-5)


# oneDNN wrote behind its workspace for the weight's gradient of these (Note at overruns_workspace).
STRIDED_POINTS = """
import torch

for channels, others, size in ((3, 48, 96), (8, 1, 97), (15, 64, 74), (4, 20, 174)):
    image = torch.randn(2, channels, size, size)
    small = torch.randn(2, others, (size + 1) // 2, (size + 1) // 2)
    given = [t.cuda().to(memory_format=torch.channels_last) for t in (image, small)]
    wanted = torch.einsum("bohw,bihw->oi", small.double(), image[:, :, ::2, ::2].double())
    for transposed in (False, True):
        weight = torch.empty(others, channels, 1, 1, device="cuda")
        pair = given if transposed else given[::-1]
        left = [(size + 1) % 2] * 2 if transposed else [0, 0]
        _, found, _ = torch.ops.aten.convolution_backward(
            *pair, weight, None, [2, 2], [0, 0], [1, 1], transposed, left, 1, [False, True, False]
        )
        apart = (found.cpu()[:, :, 0, 0].double() - wanted).abs().max() / wanted.abs().max()
        assert apart < 1e-5, (channels, others, size, transposed, apart)
print("within")
"""


def test_gradients_of_pointwise_strided_kernels_stay_within_their_memory() -> None:
    command = [sys.executable, "-c", STRIDED_POINTS]
    environment = {**os.environ, "MACA_CHECK": "memory"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0 and done.stdout.endswith("within\n"), done.stdout


def test_gradients_of_images_and_kernels_are_channels_last() -> None:
    """As cuDNN's: the layout of the arguments; an optimizer's state follows it."""
    layers = [torch.nn.Conv2d(inner, 32, 3) for inner in (32, 3)]
    for layer, size in itertools.product(layers, (40, 6)):
        layer.cuda().zero_grad()
        x = torch.randn(2, layer.in_channels, size, size, device="cuda").to(memory_format=torch.channels_last)
        x.requires_grad_()
        layer(x).sum().backward()
        for tensor in (x, layer.weight):
            assert tensor.grad is not None and tensor.grad.stride() == tensor.stride()


def test_double_backward_passes_through_the_copies() -> None:
    x = torch.randn(2, 32, 20, 20, dtype=torch.float64, device="cuda").to(memory_format=torch.channels_last)
    weight = torch.randn(4, 32, 3, 3, dtype=torch.float64, device="cuda", requires_grad=True)
    x.requires_grad_()

    def penalty(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        (gradient,) = torch.autograd.grad(
            torch.nn.functional.conv2d(x, weight).square().sum(), weight, create_graph=True
        )
        return gradient.square().sum()

    found = torch.autograd.grad(penalty(x, weight), (x, weight))
    given = [tensor.detach().cpu().requires_grad_() for tensor in (x, weight)]
    for one, other in zip(found, torch.autograd.grad(penalty(*given), given)):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-10, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("batch", [1, 2])
def test_convolutions_in_double_precision_are_contiguous(batch: int, dtype: torch.dtype) -> None:
    x = torch.randn(batch, 4, 6, 6, dtype=dtype).cuda().contiguous(memory_format=torch.channels_last).requires_grad_()
    weight = torch.randn(3, 4, 3, 3, dtype=dtype).cuda().contiguous(memory_format=torch.channels_last)
    result = torch.nn.functional.conv2d(x, weight)
    double = dtype in (torch.float64, torch.complex128)
    assert result.is_contiguous(memory_format=torch.contiguous_format if double else torch.channels_last)
    torch.testing.assert_close(result.cpu(), torch.nn.functional.conv2d(x.detach().cpu(), weight.cpu()))
    (gradient,) = torch.autograd.grad(result.abs().sum(), x)
    if not dtype.is_complex:
        assert gradient.is_contiguous(memory_format=torch.contiguous_format if double else torch.channels_last)


ONE_COLUMN = [
    # weight, image, stride, padding
    ((4, 1, 1, 3), (3, 1, 2, 4), (1, 2), 0),
    ((8, 1, 3, 3), (2, 1, 5, 3), (1, 3), 0),
    ((2, 1, 2, 3, 3), (2, 1, 3, 5, 2), (2, 1, 2), (0, 0, 1)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", ONE_COLUMN, ids=str)
def test_steps_to_the_right_alone_that_end_in_one_column(case: Any, dtype: torch.dtype) -> None:
    weight_shape, shape, stride, padding = case
    generator = torch.Generator().manual_seed(7)
    order = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    x, weight = (torch.randn(size, generator=generator).to(dtype) for size in (shape, weight_shape))
    convolution = getattr(torch.nn.functional, f"conv{len(shape) - 2}d")
    want = convolution(x.double(), weight.double(), stride=stride, padding=padding)
    assert want.shape[-1] == 1
    got = convolution(
        x.cuda().to(memory_format=order), weight.cuda().to(memory_format=order), stride=stride, padding=padding
    )
    assert got.is_contiguous(memory_format=order)
    torch.testing.assert_close(got.cpu().double(), want.to(dtype).double(), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dims", [2, 3])
def test_a_side_of_one_pixel_may_have_any_stride(dims: int, groups: int, transposed: bool) -> None:
    generator = torch.Generator().manual_seed(7)
    convolution = getattr(torch.nn.functional, f"conv{'_transpose' if transposed else ''}{dims}d")
    kernel = (1, 3) if dims == 2 else (1, 3, 1)
    x = torch.randn(3, 32, *(4, 5, 2)[:dims], generator=generator)
    weight = torch.randn(32, 8, *kernel, generator=generator)
    if not transposed:
        weight = torch.randn(16, 32 // groups, *kernel, generator=generator)
    order = torch.channels_last if dims == 2 else torch.channels_last_3d
    want: List[torch.Tensor] = []
    got: List[torch.Tensor] = []
    for device, results in (("cpu", want), ("cuda", got)):
        given = [tensor.to(device) for tensor in (x, weight)]
        if device == "cuda":
            given = [tensor.to(memory_format=order) for tensor in given]
            strides = [396 if size == 1 else step for size, step in zip(given[1].shape, given[1].stride())]
            given[1] = given[1].as_strided(given[1].shape, strides)
        for tensor in given:
            tensor.requires_grad_()
        results.append(convolution(*given, groups=groups))
        slope = torch.linspace(-1, 1, results[0].numel()).view(results[0].shape).to(device)
        results.extend(torch.autograd.grad(results[0], given, slope))
    for one, other in zip(got, want):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("outer", [1, 4, 16])
@pytest.mark.parametrize("dims", [2, 3])
def test_pixels_that_no_kernel_reaches_have_the_bias(dims: int, outer: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(7)
    convolution = getattr(torch.nn.functional, f"conv_transpose{dims}d")
    x, weight = (torch.randn(8, size, *[n] * dims, generator=generator).to(dtype) for size, n in ((8, 4), (outer, 2)))
    bias = torch.full((outer,), 0.875, dtype=dtype)
    result = convolution(x.cuda(), weight.cuda(), bias.cuda(), stride=3)
    torch.testing.assert_close(
        result.cpu(), convolution(x.double(), weight.double(), bias.double(), stride=3).to(dtype)
    )
    assert (result[..., 2::3] == 0.875).all()
