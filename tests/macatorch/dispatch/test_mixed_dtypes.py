"""What CUDA refuses by its dtypes or shapes is refused, also where the CPU or a wider kernel would compute it."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import release_facts
import torch
from torch.nn import functional as F

LOW = (torch.float16, torch.bfloat16)


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype, device="cuda")


NORMS: Any = {
    "layer": lambda x, w: F.layer_norm(x, (4,), w, w),
    "group": lambda x, w: F.group_norm(x, 2, w, w),
    "batch": lambda x, w: F.batch_norm(x, None, None, w, w, training=True),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("low", LOW)
def test_norms_refuse_parameters_of_another_dtype(norm: str, low: torch.dtype) -> None:
    call: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = NORMS[norm]
    x = torch.randn(3, 4, 4, device="cuda")
    name = {torch.float16: "Half", torch.bfloat16: "BFloat16"}[low]
    # group_norm's own check comes first, on every device.
    words = {"layer": f"expected scalar type Float but found {name}", "group": "mixed dtype"}.get(norm)
    with pytest.raises(RuntimeError, match=words):
        call(x, ones(4, dtype=low))
    if norm == "batch":
        # Statistics in float are the rule there.
        assert call(x.to(low), ones(4)).dtype == low
    else:
        words = f"expected scalar type {name} but found Float"
        if norm == "group" and low == torch.float16 and not release_facts.has("mixed_group_norms_in_later_words"):
            words = "mixed dtype"
        with pytest.raises(RuntimeError, match=words):
            call(x.to(low), ones(4))
    for dtype in (torch.float32, low):
        assert call(x.to(dtype), ones(4, dtype=dtype)).dtype == dtype


def test_a_refused_batch_norm_leaves_its_running_statistics_alone() -> None:
    x, mean, var = torch.randn(4, 3, 5, device="cuda").half(), ones(3) * 7, ones(3)
    for enabled in (True, False):
        with torch.backends.cudnn.flags(enabled=enabled), pytest.raises(RuntimeError):
            F.batch_norm(x, mean, var, ones(3, dtype=torch.bfloat16), ones(3, dtype=torch.bfloat16), training=True)
        assert mean.tolist() == [7.0] * 3 and var.tolist() == [1.0] * 3


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("statistic", ["running_mean", "running_var"])
def test_the_backward_of_batch_norm_refuses_statistics_of_another_dtype(low: torch.dtype, statistic: str) -> None:
    weight = ones(5, dtype=low).requires_grad_()
    mean, var = (ones(5, dtype=torch.float32 if name == statistic else low) for name in ("running_mean", "running_var"))
    name = {torch.float16: "Half", torch.bfloat16: "BFloat16"}[low]

    def output(x: torch.Tensor, *statistics: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, *(statistics or (mean, var)), weight, weight, training=False)

    x = torch.randn(3, 5, 7, device="cuda").to(low).requires_grad_()
    with pytest.raises(RuntimeError, match=f"Expected {statistic} to have type {name} but got Float"):
        output(x).sum().backward()
    assert x.grad is None
    # Rows and channels-last images have kernels of their own, which take them, as does any of one dtype.
    for taken in (x[:, :, 0].contiguous(), x[:, :, None].contiguous(memory_format=torch.channels_last)):
        output(taken.detach().requires_grad_()).sum().backward()
    output(x, mean.to(low), var.to(low)).sum().backward()
    output(x.detach()).sum().backward()


def test_kernels_that_take_one_dtype_are_not_given_two_made_one() -> None:
    x = ones(2, 2, 2)
    with pytest.raises(RuntimeError, match="Expected object of scalar type Float but got scalar type Half"):
        torch.polar(x, x.half())
    half = ones(2, 2, 2, dtype=torch.complex32)
    with pytest.raises(RuntimeError, match="Input dtypes must be the same"):
        torch.baddbmm(half.to(torch.complex64), half, half)


def test_an_outer_product_does_not_resize_its_own_input() -> None:
    rows, columns = ones(3), ones(4)
    with pytest.raises(RuntimeError, match="2D tensor expected, got 0D tensor for input"):
        ones().addr_(rows, columns)
    with pytest.raises(RuntimeError, match="size mismatch"):
        ones(1, 4).addr_(rows, columns)
    assert ones(3, 4).addr_(rows, columns).tolist() == [[2.0] * 4] * 3
    out = torch.empty(0, device="cuda")
    assert torch.addr(ones(1, 4), rows, columns, out=out) is out and out.tolist() == [[2.0] * 4] * 3


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_out_has_its_size_when_its_kernel_raises(device: str) -> None:
    x, out = torch.ones(2, 3, dtype=torch.complex64, device=device), torch.empty(0, device=device, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="not implemented for 'ComplexFloat'|not supported for complex"):
        torch.nextafter(x, x, out=torch.empty(0, dtype=torch.complex64, device=device))
    with pytest.raises(RuntimeError):
        torch.lt(x, x, out=out)
    half = torch.ones(2, 3, dtype=torch.int16, device=device)
    out = torch.empty(0, device=device, dtype=torch.int16)
    with pytest.raises(RuntimeError, match="not implemented for 'Short'"):
        torch.hypot(half, half, out=out)
    assert out.shape == (2, 3)


@pytest.mark.parametrize("function", [torch.fmod, torch.remainder, torch.floor_divide])
def test_an_integer_quotient_is_laid_out_as_its_operands(function: Callable[..., torch.Tensor]) -> None:
    left = torch.randint(-9, 9, (10, 1, 5))
    right = torch.randint(1, 9, (10, 5)).t().contiguous().t()[None]
    wanted = function(left, right).stride()
    assert function(left.cuda(), right.cuda()).stride() == wanted
    # A divisor with 0 or -1 has a way of its own.
    right = right.clone()
    right[0, 0, 0] = -1
    assert right.stride() != right.contiguous().stride()
    assert function(left.cuda(), right.cuda()).stride() == function(left, right).stride() == wanted


def test_an_operand_that_is_out_is_not_resized_by_a_sum_or_an_integer_quotient() -> None:
    small, large = ones(1, 2, 1, dtype=torch.float16), ones(1, 2, 3, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.sub(small, large, alpha=-1.5, out=small)
    zero = torch.zeros(2, 1, dtype=torch.int64, device="cuda")
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.floor_divide(ones(2, 3, dtype=torch.int64), zero, out=zero)
    assert small.shape == (1, 2, 1) and zero.shape == (2, 1)


def test_an_integer_quotient_refuses_a_divisor_that_overlaps_its_result() -> None:
    memory = torch.arange(6, device="cuda")
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        memory[1:].remainder_(memory[:-1])
    assert memory.tolist() == list(range(6))


@pytest.mark.parametrize("low", LOW)
def test_a_mean_of_low_precision_into_float_reads_low_precision(low: torch.dtype) -> None:
    x = torch.randn(3, 10).to(low)
    x[0, 0] = torch.nan
    for given, dim in ((x, (0, 1)), (x[:, ::2], (0, 1)), (x, 1)):
        out = torch.empty(0, device="cuda")
        found = torch.nanmean(given.cuda(), dim=dim, keepdim=True, out=out)
        torch.testing.assert_close(found.cpu(), given.float().nanmean(dim=dim, keepdim=True))


def test_a_boolean_number_is_not_subtracted() -> None:
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        torch.sub(ones(2, dtype=torch.float16), torch.tensor(True, device="cuda"), alpha=2.5)
    assert torch.add(ones(2, dtype=torch.float16), torch.tensor(True, device="cuda")).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.float32, *LOW])
@pytest.mark.parametrize("exponent", [torch.int32, torch.int64, torch.float32])
def test_exponents_keep_their_dtype(dtype: torch.dtype, exponent: torch.dtype) -> None:
    x, n = torch.tensor([1.5, -2.0, 0.75], dtype=dtype), torch.tensor([1, -2, 3], dtype=exponent)
    wanted = torch.ldexp(x, n)
    found = torch.ldexp(x.cuda(), n.cuda())
    assert found.dtype == wanted.dtype and found.cpu().equal(wanted)
    assert x.cuda().ldexp_(n.cuda()).cpu().equal(x.clone().ldexp_(n))


@pytest.mark.parametrize("low", LOW)
def test_statistics_of_an_evaluation_may_be_expanded(low: torch.dtype) -> None:
    x, mean = torch.randn(2, 3, 4).to(low), torch.tensor([0.5]).to(low).expand(3)
    wanted = F.batch_norm(x.float(), mean.float(), mean.abs().float() + 1, training=False).to(low)
    on_device = mean[:1].cuda().expand(3)
    found = F.batch_norm(x.cuda(), on_device, on_device.abs() + 1, training=False)
    torch.testing.assert_close(found.cpu(), wanted)
