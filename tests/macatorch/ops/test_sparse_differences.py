"""Where sparse and nested tensors on CUDA differ from the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch


def test_sparse_booleans_multiply() -> None:
    a = torch.tensor([[True, False], [True, True]], device="cuda")
    b = torch.tensor([[True, True], [False, True]], device="cuda")
    product = a.to_sparse() * b.to_sparse()
    assert product.is_sparse and product.dtype == torch.bool and torch.equal(product.to_dense(), a & b)
    assert torch.equal(a.to_sparse().mul_(b.to_sparse()).to_dense(), a & b)


def test_nested_tensors_that_are_no_batch_of_matrices_are_refused() -> None:
    none = torch.nested.nested_tensor([], device="cuda")
    vectors = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="cuda")
    matrices = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], device="cuda")
    for first in (none, vectors):
        with pytest.raises(RuntimeError, match="batch1 must be a 3D tensor"):
            first.bmm(matrices)
    with pytest.raises(RuntimeError, match="batch2 must be a 3D tensor"):
        matrices.bmm(vectors)
    product = matrices.bmm(torch.nested.nested_tensor([torch.ones(4, 1), torch.ones(4, 2)], device="cuda"))
    assert [part.tolist() for part in product.unbind()] == [[[4.0]] * 2, [[4.0, 4.0]] * 3]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_a_product_of_compressed_matrices_has_a_pattern_of_its_own(dtype: torch.dtype) -> None:
    a = torch.tensor([[1.0, 0, 2], [0, 0, 3]], dtype=dtype)
    b = torch.tensor([[0.0, 4], [5, 0], [6, 7]], dtype=dtype)
    start = torch.tensor([[0.0, 1], [0, 0]], dtype=dtype)
    given = [t.cuda().to_sparse_csr() for t in (start, a, b)]
    result = torch.addmm(*given, beta=2, alpha=1)
    assert result.layout == torch.sparse_csr and result.dtype == dtype
    assert result.to_dense().tolist() == (2 * start.double() + a.double() @ b.double()).tolist()
    out = torch.zeros(2, 2, dtype=dtype, device="cuda").to_sparse_csr()
    torch.addmm(*given, beta=2, alpha=1, out=out)
    assert torch.equal(out.to_dense(), result.to_dense())


@pytest.mark.filterwarnings("ignore")
def test_one_compressed_matrix_serves_a_batch() -> None:
    matrix = torch.tensor([[1.0, 0, 2], [0, 3, 0]], dtype=torch.float64).cuda().to_sparse_csr()
    batch = torch.sparse_csr_tensor(
        matrix.crow_indices(), matrix.col_indices(), matrix.values(), (2, 2, 3), check_invariants=False
    )
    dense = torch.arange(24, dtype=torch.float64, device="cuda").reshape(2, 3, 4)
    assert torch.equal(torch.bmm(batch, dense), matrix.to_dense() @ dense)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64], ids=str)
def test_a_sum_of_coordinate_lists_lists_the_elements_of_both(dtype: torch.dtype) -> None:
    def tensor(indices: list[int], values: list[float]) -> torch.Tensor:
        return torch.sparse_coo_tensor(torch.tensor([indices]), torch.tensor(values, dtype=dtype), (9,)).cuda()

    a, b = tensor([0, 2], [1, 2]).coalesce(), tensor([2, 5], [3, 4]).coalesce()
    for got, want in ((a + b, [1, 0, 5, 0, 0, 4]), (torch.sub(a, b, alpha=2), [1, 0, -4, 0, 0, -8])):
        assert got._nnz() == 4 and not got.is_coalesced() and got.dtype == dtype
        assert got.to_dense()[:6].tolist() == want
    c = a.clone()
    assert c.add_(b) is c and c._indices().tolist() == [[0, 2, 2, 5]] and c.coalesce()._nnz() == 3
    assert c.add_(c)._nnz() == 8 and c.to_dense()[2].item() == 10
    assert (c + c)._nnz() == 3, "more elements than places"
    assert (a + tensor([], []))._nnz() == 2
    assert (a + b.to(torch.complex128)).dtype == torch.complex128
    with pytest.raises(RuntimeError, match="same size"):
        a + torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (3,)).cuda()


@pytest.mark.filterwarnings("ignore")
def test_a_compressed_matrix_grows_in_place() -> None:
    def matrix(*rows: Any) -> torch.Tensor:
        return torch.tensor(rows, dtype=torch.float32, device="cuda").to_sparse_csr()

    a, c = matrix([1, 0, 2], [0, 3, 0], [4, 0, 5]), matrix([1, 0, 0], [0, 0, 0], [0, 0, 0])
    want = c.to_dense() + a.to_dense() @ a.to_dense()
    assert c.addmm_(a, a) is c and torch.equal(c.to_dense(), want) and c._nnz() == 5
    torch.add(a, a, out=c)
    assert torch.equal(c.to_dense(), 2 * a.to_dense())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc], ids=str)
def test_products_of_compressed_matrices_are_in_order(layout: torch.layout) -> None:
    generator = torch.Generator().manual_seed(6)
    dense = torch.randn(40, 40, generator=generator) * (torch.rand(40, 40, generator=generator) < 0.3)
    matrix = dense.cuda().to_sparse(layout=layout)
    with torch.sparse.check_sparse_tensor_invariants():
        product = torch.mm(matrix, matrix)
        assert torch.sparse.check_sparse_tensor_invariants.is_enabled()
    torch.testing.assert_close(product.to_dense().cpu(), dense @ dense)
    rows = product.layout == torch.sparse_csr
    starts = (product.crow_indices() if rows else product.ccol_indices()).tolist()
    plain = (product.col_indices() if rows else product.row_indices()).cpu()
    assert all(bool((plain[a:b].diff() > 0).all()) for a, b in zip(starts, starts[1:]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_a_block_matrix_is_solved_as_a_dense_one(upper: bool, unit: bool) -> None:
    dense = (torch.randn(6, 6, generator=torch.Generator().manual_seed(7)) + 5 * torch.eye(6)).cuda()
    right = torch.randn(6, 2, device="cuda")
    options = {"upper": upper, "unitriangular": unit, "transpose": True}
    want = torch.triangular_solve(right, dense, **options).solution
    got = torch.triangular_solve(right, dense.to_sparse_bsr((2, 2)), **options)
    torch.testing.assert_close(got.solution, want)
    assert got.cloned_coefficient.numel() == 0


@pytest.mark.filterwarnings("ignore:Sparse BSR")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_sum_with_a_block_product_is_rounded_at_each_step(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(8)
    c, a, b = (torch.randn(12, 12, generator=generator).to("cuda", dtype) for _ in range(3))
    product = (a.float() @ b.float()).to(dtype)
    want = product * 0.3 + c * 0.7
    exact = (0.3 * (a.float() @ b.float()) + 0.7 * c.float()).to(dtype)
    assert not torch.equal(want, exact)
    blocks, out = a.to_sparse_bsr((3, 3)), torch.empty_like(c)
    assert torch.equal(torch.addmm(c, blocks, b, alpha=0.3, beta=0.7), want)
    assert torch.equal(torch.addmm(c, blocks, b, alpha=0.3, beta=0.7, out=out), want) and torch.equal(out, want)
    assert torch.equal(torch.addmm(c.T, b.T, blocks.transpose(0, 1), alpha=0.3, beta=0.7), want.T)
    assert torch.equal(torch.addmm(c[0], blocks, b), product + c[0])
    assert torch.equal(blocks @ b, product)
