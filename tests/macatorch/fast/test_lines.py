"""Sparse products and convolutions of single planes, line by line: the values are those of the CPU's kernels."""

from __future__ import annotations

from typing import Any, Tuple

import pytest
import torch

FAST_PART = "LINES"
DTYPES = [torch.float32, torch.float64]


def matrix(*sizes: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Small natural numbers, so that every order of a sum has one result."""
    return torch.randint(-8, 9, sizes).to(dtype)


def sparse(height: int, width: int, layout: str, dtype: torch.dtype) -> torch.Tensor:
    """A row in seven is empty. Coordinates are in no order, and some come twice."""
    count = max(height * width // 5, 1)
    rows = torch.randint(height, (count,)) // 7 * 7
    indices = torch.stack([rows, torch.randint(width, (count,))])
    found = torch.sparse_coo_tensor(indices, matrix(count, dtype=dtype), (height, width), check_invariants=True)
    if layout == "coo":
        return found
    return found.coalesce() if layout == "coalesced" else found.to_sparse_csr()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["coo", "coalesced", "csr"])
@pytest.mark.parametrize("sizes", [(50, 70, 300), (200, 33, 65), (9, 400, 97), (128, 128, 1), (64, 512, 4)])
def test_sparse_products_are_exact(sizes: Tuple[int, int, int], layout: str, dtype: torch.dtype) -> None:
    torch.manual_seed(sum(sizes))
    height, width, columns = sizes
    left, right, added = sparse(height, width, layout, dtype), matrix(width, columns, dtype=dtype), matrix(columns)
    dense, added = left.to_dense(), added.to(dtype)
    on, right_on = left.cuda(), right.cuda()
    assert torch.equal(torch.sparse.mm(on, right_on).cpu(), dense @ right)
    assert torch.equal((on @ right_on).cpu(), dense @ right)
    # Operands whose rows do not follow each other.
    assert torch.equal((on @ right_on.t().contiguous().t()).cpu(), dense @ right)
    assert torch.equal((on @ right_on.flip(1)).cpu(), dense @ right.flip(1))
    sums = added * 2 + dense @ right * -3
    assert torch.equal(
        torch.sparse.addmm(added.expand(height, columns).cuda(), on, right_on, beta=2, alpha=-3).cpu(), sums
    )
    assert torch.equal(torch.addmm(added.cuda(), on, right_on, beta=2, alpha=-3).cpu(), sums)
    # What is not read may be anything.
    nothing = torch.full((height, columns), torch.nan, dtype=dtype, device="cuda")
    assert torch.equal(torch.addmm(nothing, on, right_on, beta=0).cpu(), dense @ right)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_results_are_written_where_they_are_asked_for(layout: str) -> None:
    torch.manual_seed(1)
    left, right = sparse(96, 96, layout, torch.float32), matrix(96, 96, dtype=torch.float32)
    want = left.to_dense() @ right
    out = torch.full((96, 96), torch.nan, device="cuda")
    assert torch.mm(left.cuda(), right.cuda(), out=out) is out and torch.equal(out.cpu(), want)
    rows = torch.zeros(192, 96, device="cuda")
    torch.addmm(out, left.cuda(), right.cuda(), out=rows[::2])
    assert torch.equal(rows[::2].cpu(), 2 * want) and not rows[1::2].any()
    # The operand is the result.
    both = right.cuda()
    torch.mm(left.cuda(), both, out=both)
    assert torch.equal(both.cpu(), want)
    both = right.cuda()
    both.addmm_(left.cuda(), both)
    assert torch.equal(both.cpu(), right + want)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_gradients_of_sparse_products(layout: str) -> None:
    torch.manual_seed(2)
    left, right = sparse(64, 48, "coalesced", torch.float64), matrix(48, 40)
    left = left.to_sparse_csr() if layout == "csr" else left
    grads = []
    for device in ("cpu", "cuda"):
        a, b = left.clone().to(device).requires_grad_(), right.clone().to(device).requires_grad_()
        result = torch.sparse.mm(a, b)
        result.backward(torch.ones_like(result) * 3)
        assert a.grad is not None and b.grad is not None
        grads.append([a.grad.to_dense().cpu(), b.grad.cpu()])
    for got, want in zip(*grads):
        assert torch.equal(got, want)


def raised(function: Any) -> Tuple[type, str]:
    with pytest.raises((RuntimeError, IndexError)) as caught:
        function()
    return caught.type, str(caught.value).splitlines()[0].replace("cuda:0", "cpu")


def test_what_does_not_fit_is_refused_as_without_lines() -> None:
    left, right = sparse(64, 64, "coo", torch.float32).cuda(), matrix(64, 64, dtype=torch.float32).cuda()
    assert "size" in raised(lambda: torch.sparse.mm(left, right[:63]))[1]
    with pytest.raises(RuntimeError):
        torch.sparse.mm(left, right.double())
    with pytest.raises(RuntimeError):
        torch.sparse.mm(left, right.cpu())
    with pytest.raises(RuntimeError):
        torch.addmm(right[:5], left, right)
    with pytest.raises(RuntimeError):
        torch.mm(left, right, out=torch.empty(64, 64, dtype=torch.float64, device="cuda"))


def test_rounding_is_of_each_product_and_each_sum() -> None:
    """No product and sum are rounded as one, whatever the processor can do."""
    torch.manual_seed(3)
    indices = torch.stack([torch.arange(40).repeat_interleave(7), torch.randint(30, (280,))])
    values, right = torch.randn(280), torch.randn(30, 101)
    want = torch.zeros(40, 101)
    for k in range(280):
        want[indices[0, k]] += values[k] * right[indices[1, k]]
    left = torch.sparse_coo_tensor(indices, values, (40, 30), device="cuda")
    assert torch.equal(torch.sparse.mm(left, right.cuda()).cpu(), want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", [(), (3,)], ids=["one image", "images"])
@pytest.mark.parametrize("channels, results", [(1, 1), (3, 2), (4, 1)])
@pytest.mark.parametrize("kernel", [(2, 2), (1, 5), (3, 3), (1, 1)])
def test_convolutions_of_planes_are_exact(
    kernel: Tuple[int, int], channels: int, results: int, batch: Tuple[int, ...], dtype: torch.dtype
) -> None:
    torch.manual_seed(4)
    image, weight = matrix(*batch, channels, 90, 117, dtype=dtype), matrix(results, channels, *kernel, dtype=dtype)
    bias = matrix(results, dtype=dtype)
    for given in (None, bias):
        want = torch.nn.functional.conv2d(image, weight, given)
        got = torch.nn.functional.conv2d(image.cuda(), weight.cuda(), None if given is None else given.cuda())
        assert got.shape == want.shape and got.dtype == dtype and torch.equal(got.cpu(), want)
    # A part of a larger image.
    part = image[..., 3:, 2:-1]
    assert torch.equal(
        torch.nn.functional.conv2d(part.cuda(), weight.cuda()).cpu(), torch.nn.functional.conv2d(part, weight)
    )


def test_gradients_of_convolutions_of_planes() -> None:
    torch.manual_seed(5)
    image, weight = matrix(2, 1, 80, 81), matrix(1, 1, 2, 2)
    grads = []
    for device in ("cpu", "cuda"):
        a, b = image.clone().to(device).requires_grad_(), weight.clone().to(device).requires_grad_()
        torch.nn.functional.conv2d(a, b).square().sum().backward()
        assert a.grad is not None and b.grad is not None
        grads.append([a.grad.cpu(), b.grad.cpu()])
    for got, want in zip(*grads):
        assert torch.equal(got, want)


def test_captured_products_and_convolutions_are_computed_at_each_launch() -> None:
    torch.manual_seed(6)
    left = sparse(64, 64, "coalesced", torch.float32)
    given, weight = torch.zeros(64, 64, device="cuda"), matrix(1, 1, 2, 2, dtype=torch.float32).cuda()
    image = torch.zeros(1, 1, 100, 100, device="cuda")
    on = left.cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        product, filtered = torch.mm(on, given), torch.nn.functional.conv2d(image, weight)
    for _ in range(2):
        new, picture = matrix(64, 64, dtype=torch.float32), matrix(1, 1, 100, 100, dtype=torch.float32)
        given.copy_(new)
        image.copy_(picture)
        graph.replay()
        assert torch.equal(product.cpu(), left.to_dense() @ new)
        assert torch.equal(filtered.cpu(), torch.nn.functional.conv2d(picture, weight.cpu()))
