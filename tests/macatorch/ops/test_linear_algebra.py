"""Linear algebra as CUDA's solvers do it: strides of what they give, and their choice of methods."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest
import torch

SHAPES = [(3, 5), (5, 3), (2, 3, 5), (0, 3), (2, 0, 4, 4)]


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_right_singular_vectors_are_rows(shape: Tuple[int, ...], dtype: torch.dtype, full: bool) -> None:
    a = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1)).cuda()
    u, s, vh = torch.linalg.svd(a, full_matrices=full)
    assert u.mT.is_contiguous() and vh.is_contiguous()
    k = min(shape[-2:])
    torch.testing.assert_close(u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :], a)
    assert torch.svd(a, some=not full).V.mT.is_contiguous()


@pytest.mark.parametrize("driver", [None, "gesvd", "gesvdj", "gesvda"])
def test_every_method_of_svd_is_taken(driver: Optional[str]) -> None:
    a = torch.randn(4, 3, generator=torch.Generator().manual_seed(1)).cuda().requires_grad_()
    u, s, vh = torch.linalg.svd(a, full_matrices=False, driver=driver)
    torch.testing.assert_close(u * s @ vh, a)
    torch.testing.assert_close(torch.linalg.svdvals(a, driver=driver), s)
    out = torch.empty_like(u), torch.empty_like(s), torch.empty_like(vh)
    torch.linalg.svd(a.detach(), full_matrices=False, driver=driver, out=out)
    torch.testing.assert_close(out[1], s.detach())
    s.sum().backward()
    torch.testing.assert_close(a.grad, (u @ vh).detach())


def test_an_unknown_method_of_svd_is_refused() -> None:
    with pytest.raises(RuntimeError, match="unknown svd driver gesdd"):
        torch.linalg.svd(torch.eye(2, device="cuda"), driver="gesdd")


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64], ids=str)
def test_eigenvectors_satisfy_their_equation(dtype: torch.dtype) -> None:
    a = torch.randn(2, 4, 4, dtype=dtype, generator=torch.Generator().manual_seed(1)).cuda()
    values, vectors = torch.linalg.eig(a)
    assert vectors.is_contiguous()
    torch.testing.assert_close(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))


def test_least_squares_gives_residuals_as_cusolver_does() -> None:
    matrix, values = (torch.randn(6, n, dtype=torch.float64) for n in (3, 2))
    found = torch.linalg.lstsq(matrix.cuda(), values.cuda())
    torch.testing.assert_close(found.solution.cpu(), torch.linalg.pinv(matrix) @ values)
    torch.testing.assert_close(found.residuals.cpu(), (matrix @ found.solution.cpu() - values).square().sum(0))
    assert found.rank.numel() == 0


def test_least_squares_has_one_method() -> None:
    matrix = torch.ones(3, 2, device="cuda")
    with pytest.raises(RuntimeError, match="`driver` other than `gels` is not supported on CUDA"):
        torch.linalg.lstsq(matrix, matrix, driver="gelsd")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("shape", [(3, 3), (70, 40), (40, 70), (2, 3, 5, 5), (0, 3), (2, 0, 0)], ids=str)
def test_factors_without_pivots(shape: Tuple[int, ...], dtype: torch.dtype) -> None:
    matrix = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(5))
    matrix.diagonal(dim1=-2, dim2=-1).add_(50)
    given = matrix.cuda()
    factors, pivots, info = torch.linalg.lu_factor_ex(given, pivot=False)
    assert factors.shape == shape and factors.stride() == torch.linalg.lu_factor_ex(given)[0].stride()
    assert torch.equal(pivots.cpu(), torch.arange(1, min(shape[-2:]) + 1, dtype=torch.int32).expand(pivots.shape))
    assert not info.any() and info.shape == shape[:-2]
    permutation, lower, upper = torch.linalg.lu(given, pivot=False)
    assert permutation.numel() == 0
    torch.testing.assert_close(lower @ upper, given)
    assert torch.equal(lower.diagonal(dim1=-2, dim2=-1), torch.ones_like(lower.diagonal(dim1=-2, dim2=-1)))
    assert torch.equal(upper, factors.triu()[..., : upper.shape[-2], :])
    out = tuple(torch.empty(0, dtype=t.dtype, device="cuda") for t in (factors, pivots))
    torch.linalg.lu_factor(given, pivot=False, out=out)
    assert torch.equal(out[0], factors) and torch.equal(out[1], pivots)


def test_factors_without_pivots_solve_and_have_gradients() -> None:
    matrix = (torch.randn(2, 4, 4, dtype=torch.float64) + 8 * torch.eye(4)).cuda().requires_grad_()
    right = torch.randn(2, 4, 3, dtype=torch.float64, device="cuda")
    solution = torch.linalg.lu_solve(*torch.linalg.lu_factor(matrix, pivot=False), right)
    torch.testing.assert_close(solution, torch.linalg.solve(matrix, right))
    assert torch.autograd.gradcheck(lambda x: torch.linalg.lu(x, pivot=False)[1:], matrix)
    assert torch.autograd.gradcheck(lambda x: torch.linalg.lu_factor(x, pivot=False)[0], matrix)


def test_a_zero_that_is_met_without_pivots_is_said() -> None:
    matrix = torch.eye(40, device="cuda")
    matrix[36, 36] = 0
    assert torch.linalg.lu_factor_ex(matrix, pivot=False).info.item() == 37
    with pytest.raises(RuntimeError, match=r"U\[37,37\] is zero"):
        torch.linalg.lu_factor(matrix, pivot=False)
    with pytest.raises(RuntimeError, match="not implemented for 'Half'"):
        torch.linalg.lu_factor(matrix.half(), pivot=False)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (3, 2, 5, 5), (2, 3, 2, 4, 4)], ids=str)
def test_a_batch_of_matrices_has_exponentials(shape: Tuple[int, ...]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    got, want = (matrices.to(device).requires_grad_() for device in ("cuda", "cpu"))
    result = torch.linalg.matrix_exp(got)
    torch.testing.assert_close(result.cpu(), torch.linalg.matrix_exp(want))
    result.sum().backward()
    torch.linalg.matrix_exp(want).sum().backward()
    torch.testing.assert_close(got.grad.cpu(), want.grad)
