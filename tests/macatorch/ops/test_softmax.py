"""Softmax over many terms: as exact as CUDA's, which adds up in parts."""

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
@pytest.mark.parametrize("shape, dim", [((1 << 21, 3), 0), ((2, 1 << 20), -1), ((2, 100000, 2), 1)])
def test_many_terms_cost_no_precision(function, shape, dim, dtype):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype).cuda().requires_grad_()
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype).cuda()
    exact = x.detach().double().requires_grad_()
    got, wanted = function(x, dim), function(exact, dim)
    got.backward(grad)
    wanted.backward(grad.double())
    assert got.dtype == x.grad.dtype == dtype and got.stride() == x.stride()
    # Halves are rounded once, numbers below their normal ones to a fixed step.
    tolerance = {torch.float32: 3e-7, torch.float16: 6e-2, torch.bfloat16: 4e-3}[dtype]
    for one, other in ((got, wanted), (x.grad, exact.grad)):
        assert ((one.double() - other).norm() / other.norm()).item() <= tolerance


def test_forms_and_errors_are_those_of_few_terms():
    x = torch.randn(40000, 2).cuda()
    out = torch.empty(0, device="cuda")
    torch._softmax(x, 0, False, out=out)
    assert torch.equal(out, torch.softmax(x, 0))
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.softmax(x, 2)
    with pytest.raises(RuntimeError, match="[Ee]xpected out tensor to have dtype"):
        torch._softmax(x, 0, False, out=torch.empty(0, device="cuda", dtype=torch.double))
    integers = torch.ones(40000, 2, dtype=torch.int64, device="cuda")
    assert torch.softmax(integers.float(), 0).sum().item() == pytest.approx(2)
