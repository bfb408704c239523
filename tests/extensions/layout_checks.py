"""Kernels that read data_ptr() in upstream's order, with no look at strides, get images in that order."""

import pytest
import torch
from building import HERE, build_folder
from torch.utils import cpp_extension


@pytest.fixture(scope="module")
def linear():
    """An extension that copies elements in the order of memory (`read`, `read_all`), and numbers them (`number`)."""
    sources = HERE / "layout"
    folder = build_folder("layout", sources)
    built = cpp_extension.load(
        name="linear_order",
        sources=[str(path) for path in sorted(sources.iterdir())],
        build_directory=str(folder),
        extra_cflags=["-O0"],
    )
    (folder / ".complete").touch()
    return built


def image() -> torch.Tensor:
    return torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)


def test_a_kernel_reads_an_image_in_upstreams_order(linear):
    x = image().cuda()
    assert not x.is_contiguous()
    assert torch.equal(linear.read(x).cpu(), image().flatten())
    assert torch.equal(x.cpu(), image())
    first, second = linear.read_all([image().cuda(), image().cuda() * 2])
    assert torch.equal(first.cpu(), image().flatten()) and torch.equal(second.cpu(), image().flatten() * 2)


def test_a_kernel_writes_an_image_in_upstreams_order(linear):
    x = torch.zeros(2, 3, 4, 5).cuda()
    linear.number(x)
    assert torch.equal(x.cpu(), image())


def test_an_image_that_somebody_else_holds_is_told_of(linear, capfd):
    """Nothing can be reordered there, and what the kernel does is not known: the tensor and the switch are named."""
    x = image().cuda()
    part = x[:, 1:]
    assert torch.equal(linear.read(image()[0, 0].cuda()).cpu(), image()[0, 0].flatten())
    linear.read(x.contiguous())
    assert capfd.readouterr().err == ""
    linear.read(x)
    # pybind11's functions have no handler that makes a Python warning of it.
    said = capfd.readouterr().err
    assert "[2, 3, 4, 5]" in said and "[60, 1, 15, 3]" in said and "PYTORCH_DEFAULT_NCHW=1" in said
    assert torch.equal(part.cpu(), image()[:, 1:])


def test_other_arguments_are_as_upstreams(linear):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        linear.read([1.0])
    with pytest.raises(RuntimeError, match="CUDA"):
        linear.read(image())
