"""2:4 semi-structured sparse matrices in both of upstream's layouts multiply as their dense ones."""

from __future__ import annotations

from typing import Iterator

import pytest
import release_facts
import torch

release_facts.need_for_module("semi_structured_layouts")

from torch.sparse import (  # noqa: E402
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)
from torch.sparse._semi_structured_conversions import (  # noqa: E402
    sparse_semi_structured_from_dense_cutlass,
    sparse_semi_structured_to_dense_cutlass,
)

aten = torch.ops.aten
LAYOUTS = [SparseSemiStructuredTensorCUTLASS, SparseSemiStructuredTensorCUSPARSELT]


@pytest.fixture(params=LAYOUTS, ids=lambda c: c.BACKEND)
def layout(request: pytest.FixtureRequest) -> Iterator[type]:
    before = SparseSemiStructuredTensor._FORCE_CUTLASS
    SparseSemiStructuredTensor._FORCE_CUTLASS = request.param is SparseSemiStructuredTensorCUTLASS
    yield request.param
    SparseSemiStructuredTensor._FORCE_CUTLASS = before


def sparse_matrix(rows: int, columns: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """Two of every four, chosen at random."""
    torch.manual_seed(0)
    keep = torch.rand(rows, columns // 4, 4).argsort(-1) < 2
    values = torch.randint(1, 9, (rows, columns)) - 4.5
    return (values * keep.view(rows, columns)).to(dtype).cuda()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_product_and_linear_equal_the_dense_ones(layout: type, dtype: torch.dtype) -> None:
    a = sparse_matrix(64, 128, dtype)
    sparse = to_sparse_semi_structured(a)
    assert isinstance(sparse, layout)
    b, bias = torch.randn(128, 32, device="cuda").to(dtype), torch.randn(64, device="cuda").to(dtype)
    want = a.float() @ b.float()
    torch.testing.assert_close(torch.mm(sparse, b).float(), want, rtol=1e-2, atol=1e-1)
    x = b.t().contiguous()
    got = torch.nn.functional.linear(x, sparse, bias)
    torch.testing.assert_close(got.float(), want.t() + bias.float(), rtol=1e-2, atol=1e-1)


def test_dense_comes_back(layout: type) -> None:
    a = sparse_matrix(64, 128)
    assert torch.equal(to_sparse_semi_structured(a).to_dense(), a)


def test_bytes_multiply_exactly(layout: type) -> None:
    a = sparse_matrix(32, 128).to(torch.int8)
    b = torch.randint(-50, 50, (128, 32), dtype=torch.int8)
    want = a.cpu().int() @ b.int()
    sparse = to_sparse_semi_structured(a)
    across = b.t().contiguous().cuda().t()
    if layout is SparseSemiStructuredTensorCUTLASS:
        got = aten._sparse_semi_structured_mm(sparse.packed, sparse.meta, across, out_dtype=torch.int32)
    else:
        got = torch._cslt_sparse_mm(sparse.packed, across, out_dtype=torch.int32)
        turned = torch._cslt_sparse_mm(sparse.packed, across, out_dtype=torch.int32, transpose_result=True)
        assert torch.equal(turned.t(), got)
    assert torch.equal(got.cpu(), want)
    # Tensor Cores take bytes in this order alone.
    words = "spgemm_cutlass_dispatch_layouts|operation not supported when calling `cusparseLtMatmulDescriptorInit"
    with pytest.raises(RuntimeError, match=words):
        torch.mm(sparse, b.cuda())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int8], ids=str)
def test_metadata_is_that_of_upstreams_conversion(dtype: torch.dtype) -> None:
    dense = sparse_matrix(64, 128, dtype)
    if dtype == torch.float32:
        dense = dense * (torch.arange(128, device="cuda") % 2)
    want = sparse_semi_structured_from_dense_cutlass(dense.cpu())
    got = aten._to_sparse_semi_structured(dense)
    for a, b in zip(got, want):
        assert a.dtype == b.dtype and torch.equal(a.cpu(), b)
    assert torch.equal(sparse_semi_structured_to_dense_cutlass(*got), dense)


def test_sum_with_a_vector() -> None:
    a = sparse_matrix(64, 128)
    packed, meta = aten._to_sparse_semi_structured(a)
    b, c = torch.randn(128, 16, device="cuda").half(), torch.randn(64, device="cuda").half()
    got = aten._sparse_semi_structured_addmm(c, packed, meta, b, alpha=2, beta=3)
    want = 2 * (a.float() @ b.float()) + 3 * c.float()[:, None]
    torch.testing.assert_close(got.float(), want, rtol=1e-2, atol=1e-1)


def test_pruning_keeps_the_largest_in_both_directions(layout: type) -> None:
    torch.manual_seed(0)
    dense = torch.randn(128, 64, device="cuda").half()
    sparse = layout.prune_dense_static_sort(dense)
    pruned = sparse.to_dense()
    kept = pruned != 0
    assert torch.equal(pruned, dense * kept)
    assert int(kept.view(128, 16, 4).sum(-1).max()) <= 2
    assert int(kept.t().reshape(64, 32, 4).sum(-1).max()) <= 2
    for i, j in ((0, 0), (4, 8), (64, 32)):
        tile, mask = dense[i : i + 4, j : j + 4].abs(), kept[i : i + 4, j : j + 4]
        assert mask.flatten()[tile.argmax()]
    # Both packed forms multiply, and the mask prunes a gradient alike.
    x = torch.randn(64, 16, device="cuda").half()
    torch.testing.assert_close(torch.mm(sparse, x).float(), pruned.float() @ x.float(), rtol=1e-2, atol=1e-1)
    y = torch.randn(128, 16, device="cuda").half()
    torch.testing.assert_close(torch.mm(sparse.t(), y).float(), pruned.t().float() @ y.float(), rtol=1e-2, atol=1e-1)
    grad = torch.randn_like(dense)
    bitmask = sparse.compressed_swizzled_bitmask
    assert torch.equal(aten._sparse_semi_structured_apply_dense(grad, bitmask), grad * kept)
    packed, packed_t = aten._sparse_semi_structured_apply(grad, bitmask)
    if layout is SparseSemiStructuredTensorCUTLASS:
        assert torch.equal(sparse_semi_structured_to_dense_cutlass(packed, sparse.meta), grad * kept)
        assert torch.equal(sparse_semi_structured_to_dense_cutlass(packed_t, sparse.meta_t), (grad * kept).t())
