"""Where upstream's CUDA operators differ from the CPU kernels that compute here: values, errors, shapes of results."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import pytest
import release_facts
import torch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("window", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_a_window_is_rounded_once(window: str, dtype: torch.dtype) -> None:
    function = getattr(torch, f"{window}_window")
    assert torch.equal(function(50, dtype=dtype, device="cuda").cpu(), function(50, dtype=torch.float32).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_sum_without_nan_is_rounded_once(dtype: torch.dtype) -> None:
    x = torch.randn(40, 31, generator=torch.Generator().manual_seed(1)).to(dtype)[:, ::2]
    x[3] = float("nan")
    assert torch.equal(torch.nansum(x.cuda(), 1).cpu(), torch.nansum(x.float(), 1).to(dtype))


def test_a_sum_without_nan_of_complex_numbers() -> None:
    nan = float("nan")
    x = torch.tensor([[1 + 2j, complex(nan, 1)], [complex(3, nan), 4 - 1j]], device="cuda")
    assert torch.nansum(x).item() == 5 + 1j
    assert torch.nansum(x, 0, keepdim=True).tolist() == [[1 + 2j, 4 - 1j]]
    out = torch.empty(0, dtype=x.dtype, device="cuda")
    assert torch.nansum(x, 1, out=out).tolist() == [1 + 2j, 4 - 1j] and out.shape == (2,)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", [torch.complex32, torch.complex64, torch.complex128], ids=str)
def test_a_mean_without_nan_of_complex_numbers_goes_to_an_out(dtype: torch.dtype) -> None:
    nan = float("nan")
    x = torch.tensor([[1 + 2j, complex(nan, 1)], [3, 4 - 1j]], dtype=dtype, device="cuda")
    out = torch.empty(0, dtype=dtype, device="cuda")
    assert torch.nanmean(x, 0, out=out) is out and out.tolist() == [2 + 1j, 4 - 1j]
    assert torch.nanmean(x, 1, keepdim=True, out=out).tolist() == [[1 + 2j], [3.5 - 0.5j]]
    assert torch.nanmean(x[0, 0], out=torch.empty((), dtype=dtype, device="cuda")).item() == 1 + 2j


@release_facts.wants("nonzero_static_on_the_device")
def test_places_of_nonzero_elements_are_laid_out_by_columns() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]], device="cuda")
    places = torch.nonzero_static(x, size=3)
    assert places.tolist() == [[0, 1], [1, 0], [-1, -1]] and places.stride() == (1, 3)


def test_a_permutation_of_nothing_takes_any_generator() -> None:
    assert torch.randperm(0, device="cuda", generator=torch.Generator("cpu")).shape == (0,)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.randperm(1, device="cuda", generator=torch.Generator("cpu"))
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.randperm(1, generator=torch.Generator("cuda"))


def test_the_inverse_of_a_singular_factor_is_not_finite() -> None:
    factor = torch.tensor([[[0.0, 0.0], [1.0, 2.0]], [[1.0, 0.0], [1.0, 2.0]]], device="cuda")
    inverse = torch.cholesky_inverse(factor)
    assert not inverse[0].isfinite().all()
    torch.testing.assert_close(inverse[1].cpu(), torch.cholesky_inverse(factor[1].cpu()))
    out = torch.empty(2, 2, device="cuda")
    assert torch.cholesky_inverse(factor[0], out=out) is out and not out.isfinite().all()


MIXED: Dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "dot": lambda a, b: torch.dot(a[0, 0], b[0, 0]),
    "vdot": lambda a, b: torch.vdot(a[0, 0], b[0, 0]),
    "mm": lambda a, b: torch.mm(a[0], b[0]),
    "mv": lambda a, b: torch.mv(a[0], b[0, 0]),
    "bmm": torch.bmm,
    "addmm": lambda a, b: torch.addmm(a[0], a[0], b[0]),
    "baddbmm": lambda a, b: torch.baddbmm(a, a, b),
}


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("low", [torch.float16, torch.bfloat16], ids=str)
def test_a_product_of_two_dtypes_is_refused(name: str, low: torch.dtype) -> None:
    a, b = torch.ones(2, 3, 3, device="cuda"), torch.ones(2, 3, 3, device="cuda", dtype=low)
    with pytest.raises(RuntimeError, match=r"(same|have) .*dtype|expected scalar type|should have the same"):
        MIXED[name](a, b)


def test_dot_looks_at_dtypes_before_sizes() -> None:
    with pytest.raises(RuntimeError, match="dot : expected both vectors to have same dtype"):
        torch.dot(torch.ones(1, device="cuda"), torch.ones(3, device="cuda", dtype=torch.float16))


@pytest.mark.parametrize("value", [2.0, "tensor"])
def test_a_scattered_product_of_complex_numbers_is_refused(value: Any) -> None:
    x = torch.ones(3, dtype=torch.complex64, device="cuda")
    index = torch.tensor([0, 0, 1], device="cuda")
    with pytest.raises(RuntimeError, match="not implemented for 'ComplexFloat'"):
        x.scatter_(0, index, x.clone() if value == "tensor" else value, reduce="multiply")
    assert x.tolist() == [1, 1, 1]


def test_one_cpu_scalar_is_taken_two_are_not() -> None:
    x, scalar = torch.ones((), device="cuda"), torch.tensor(2.0)
    assert torch.add(x, scalar).item() == 3
    with pytest.raises(RuntimeError, match="Trying to pass too many CPU scalars to non-CPU kernel!"):
        torch.add(scalar, scalar, out=x)
    assert x.item() == 1
    assert torch.where(torch.ones(2, device="cuda") > 0, scalar, torch.tensor(1.0)).tolist() == [2, 2]


@release_facts.wants("addcmul_looks_at_numbers")
def test_addcmul_takes_its_last_number_alone_from_the_host() -> None:
    x, number = torch.ones(2, 2, device="cuda"), torch.tensor(3.0)
    assert torch.addcmul(x, x, number, value=2).eq(7).all()
    for given, name in (((number, x, x), "self"), ((x, number, x), "tensor1")):
        with pytest.raises(RuntimeError, match=f"CPU Scalar support for {name} argument is not supported"):
            torch.addcmul(*given)
    with pytest.raises(RuntimeError, match="please swap your tensor1 and tensor2 terms"):
        x.addcmul_(number, x)
    assert x.eq(1).all()


def test_log_sigmoid_keeps_no_buffer() -> None:
    x = torch.linspace(-20, 20, 9)
    output, buffer = torch.ops.aten.log_sigmoid_forward(x.cuda())
    assert buffer.shape == (0,) and buffer.is_cuda
    torch.testing.assert_close(output.cpu(), torch.nn.functional.logsigmoid(x))
    gradients = []
    for device in ("cuda", "cpu"):
        leaf = x.to(device).requires_grad_()
        (first,) = torch.autograd.grad(torch.nn.functional.logsigmoid(leaf).sum(), leaf, create_graph=True)
        first.pow(2).sum().backward()
        gradients.append([first.detach().cpu(), leaf.grad.cpu()])
    torch.testing.assert_close(*gradients)
    out = torch.empty(3, device="cuda")
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.nn.functional.logsigmoid(x.detach().cuda(), out=out)
    assert torch.equal(out, output)


def test_sync_debug_mode_hears_of_masks_and_host_indices() -> None:
    x, mask = torch.arange(4.0, device="cuda"), torch.tensor([True, False, True, False], device="cuda")
    index = torch.tensor([0, 1], device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        for wait in (
            lambda: x[mask],
            lambda: x[index.cpu()],
            lambda: torch.ops.aten.index_put(x, [mask], index.float()),
        ):
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                wait()
        x[index]
        x[mask] = 1.0
        x[index] = torch.zeros(2, device="cuda")
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_unpooling_gives_rows() -> None:
    x = torch.rand(2, 3, 4, 6, generator=torch.Generator().manual_seed(1))
    pooled, places = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    want = torch.nn.functional.max_unpool2d(pooled, places, 2)
    given = [tensor.cuda().contiguous(memory_format=torch.channels_last) for tensor in (pooled, places)]
    got = torch.nn.functional.max_unpool2d(*given, 2)
    assert got.is_contiguous() and torch.equal(got.cpu(), want)
    out = torch.empty(0, device="cuda")
    assert torch.equal(torch.ops.aten.max_unpool2d.out(*given, [4, 6], out=out), got) and out.is_contiguous()
    with pytest.raises(RuntimeError, match="^output must be contiguous$"):
        torch.ops.aten.max_unpool2d.out(*given, [4, 6], out=out.to(memory_format=torch.channels_last))


def test_a_real_transform_of_complex_halves_has_a_place_for_its_result() -> None:
    x = torch.fft.rfft(torch.arange(8.0)).to(torch.complex32).cuda()
    out = torch.empty(8, dtype=torch.float16, device="cuda")
    assert torch.fft.irfft(x, out=out) is out
    torch.testing.assert_close(out.cpu(), torch.arange(8.0).half(), atol=2e-2, rtol=0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.float32, torch.bool], ids=str)
@pytest.mark.parametrize("name", ["all", "any"])
def test_a_full_reduction_writes_to_its_own_device_only(name: str, dtype: torch.dtype) -> None:
    x = torch.ones(3, dtype=dtype, device="cuda")
    out = torch.zeros((), dtype=torch.uint8 if dtype == torch.uint8 else torch.bool)
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cuda:0, but got cpu instead"):
        getattr(torch, name)(x, out=out)
    assert not out.item()
    assert getattr(torch, name)(x, out=out.cuda()).item()


@pytest.mark.parametrize("mode", [0, 1, 2], ids=["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True])
def test_bags_of_embeddings_know_their_elements_and_sizes(mode: int, last: bool) -> None:
    weight = torch.randn(10, 3)
    indices = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])
    offsets = torch.tensor([0, 4, 4, 8] if last else [0, 4, 4])
    given = (weight.cuda(), indices.cuda(), offsets.cuda(), False, mode, False, None, last, 4)
    values, bags, sizes, largest = torch._embedding_bag(*given)
    assert bags.tolist() == [0, 0, 0, 0, 2, 2, 2, 2]
    assert sizes[:3].tolist() == [3, 0, 3] and sizes.shape == offsets.shape
    assert largest.shape == ((3, 3) if mode == 2 else (0,))
    gradients = []
    for device in ("cpu", "cuda"):
        leaf = weight.clone().to(device).requires_grad_()
        result = torch._embedding_bag(leaf, *(t.to(device) for t in (indices, offsets)), *given[3:])[0]
        result.square().sum().backward()
        gradients.append(leaf.grad.cpu())
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(torch._embedding_bag_forward_only(*given)[0], values)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_first_bag_begins_at_the_first_index(mode: str) -> None:
    """CUDA's kernel does not read the first offset; the CPU's refuses any but 0."""
    weight = torch.randn(10, 3)
    indices = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])
    results = []
    for device, first in (("cpu", 0), ("cuda", 3)):
        leaf = weight.clone().to(device).requires_grad_()
        offsets = torch.tensor([first, 5], device=device)
        bags = torch.nn.functional.embedding_bag(indices.to(device), leaf, offsets, mode=mode)
        bags.square().sum().backward()
        assert offsets.tolist() == [first, 5]
        results.append((bags.detach().cpu(), leaf.grad.cpu()))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(
    "dtypes", [(torch.int32, torch.int64), (torch.int64, torch.int32), (torch.int32,) * 2], ids=str
)
def test_indices_and_offsets_of_bags_may_be_of_two_dtypes(dtypes: Tuple[torch.dtype, torch.dtype], mode: str) -> None:
    grads = []
    for device in ("cpu", "cuda"):
        weight = torch.arange(15.0).view(5, 3).to(device).requires_grad_()
        indices, offsets = (torch.tensor(x, dtype=t, device=device) for x, t in zip(([0, 1, 1, 4], [0, 2]), dtypes))
        torch.nn.functional.embedding_bag(indices, weight, offsets, mode=mode).sum().backward()
        grads.append(weight.grad.cpu())
    assert torch.equal(*grads)
    bags, sizes = torch._embedding_bag(weight.detach(), indices, offsets)[1:3]
    assert bags.dtype == sizes.dtype == torch.promote_types(*dtypes)


def test_one_volume_may_lie_in_channels_last() -> None:
    x = torch.randn(2, 4, 6, 6).requires_grad_()
    y = x.detach().cuda().to(memory_format=torch.channels_last).requires_grad_()
    for leaf in (x, y):
        torch.nn.functional.max_pool3d(leaf, 2).square().sum().backward()
    torch.testing.assert_close(torch.nn.functional.max_pool3d(y, 2).cpu(), torch.nn.functional.max_pool3d(x, 2))
    torch.testing.assert_close(y.grad.cpu(), x.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_one_volume_in_channels_last_3d_stays_there(dtype: torch.dtype) -> None:
    x = torch.randn(1, 6, 8, 9, 10).to(dtype)
    y = x.cuda().contiguous(memory_format=torch.channels_last_3d).squeeze(0).requires_grad_()
    x = x.squeeze(0).float().requires_grad_()  # old releases pool no halves on the CPU
    results = [torch.nn.functional.max_pool3d(leaf, (2, 3, 4), return_indices=True) for leaf in (x, y)]
    for got, want in zip(results[1], results[0]):
        assert got.unsqueeze(0).is_contiguous(memory_format=torch.channels_last_3d)
        assert torch.equal(got.cpu().to(want.dtype), want)
    for values, _ in results:
        values.float().square().sum().backward()
    assert torch.equal(y.grad.cpu(), x.grad.to(dtype))


def test_a_half_to_a_complex_power_is_a_complex_half() -> None:
    x = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float16, device="cuda")
    for got, want in (
        (torch.pow(x, 1 + 1j), torch.pow(x.cpu().to(torch.complex64), 1 + 1j)),
        (torch.pow(1 + 1j, x), torch.pow(1 + 1j, x.cpu().to(torch.complex64))),
        (torch.pow(x, torch.tensor(1 + 1j)), torch.pow(x.cpu().to(torch.complex64), 1 + 1j)),
    ):
        assert got.dtype == torch.complex32
        assert torch.equal(got.cpu().to(torch.complex64), want.to(torch.complex32).to(torch.complex64))
    assert torch.pow(x, 2).dtype == torch.float16 and torch.pow(x, 2).tolist() == [1, 4, 0.25]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_powers_of_halves_and_complex_halves_mix() -> None:
    x = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float16, device="cuda")
    number = torch.tensor(1 + 1j, dtype=torch.complex32, device="cuda")
    wide, wider = x.to(torch.complex64), number.to(torch.complex64)
    out = torch.empty(3, dtype=torch.complex32, device="cuda")
    for got, want in (
        (torch.pow(1 + 1j, x, out=out).clone(), torch.pow(1 + 1j, wide)),
        (torch.pow(number, x), torch.pow(wider, wide)),
        (torch.pow(x, number), torch.pow(wide, wider)),
        (torch.pow(x, number, out=out), torch.pow(wide, wider)),
    ):
        assert got.dtype == torch.complex32
        assert torch.equal(got.to(torch.complex64), want.to(torch.complex32).to(torch.complex64))


INTEGER_PRODUCTS: Dict[str, Callable[[torch.Tensor], Any]] = {
    "addmm_cuda": lambda m: m[0] @ m[1],
    "addmm_cuda_": lambda m: torch.addmm(m[0], m[0], m[1]),
    "baddbmm_cuda": lambda m: torch.bmm(m, m),
    "baddbmm_cuda_": lambda m: m.baddbmm_(m.clone(), m.clone()),
    "addmv_impl_cuda": lambda m: m[0] @ m[1, 0],
    "dot": lambda m: torch.dot(m[0, 0], m[1, 0]),
    "vdot": lambda m: torch.vdot(m[0, 0], m[1, 0]),
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("name", INTEGER_PRODUCTS)
def test_products_of_integers_are_refused(name: str, dtype: torch.dtype) -> None:
    matrices = torch.ones(2, 3, 3, dtype=dtype, device="cuda")
    with pytest.raises(RuntimeError, match=f'"{name.rstrip("_")}" not implemented for'):
        INTEGER_PRODUCTS[name](matrices)
    with pytest.raises(RuntimeError, match="not implemented for"):
        torch.mm(matrices[0], matrices[1], out=torch.empty(0, dtype=dtype, device="cuda"))
    assert (matrices[0, :0] @ matrices[1]).shape == (0, 3), "an empty product asks no kernel"
    assert (matrices[0].float() @ matrices[1].float()).sum().item() == 27


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["native_batch_norm", "_native_batch_norm_legit"])
def test_batch_norm_in_evaluation_hands_on_its_statistics(name: str, dtype: torch.dtype) -> None:
    x = torch.randn(3, 2, 4, dtype=dtype, device="cuda")
    mean, var = torch.tensor([1.0, 2.0], device="cuda"), torch.tensor([4.0, 0.25], device="cuda")
    operator = getattr(torch.ops.aten, name)
    given = (x, None, None, mean, var, False, 0.1, 0.0)
    results = operator(*given)
    assert results[0].dtype == dtype
    torch.testing.assert_close(results[1:], (mean, torch.tensor([0.5, 2.0], device="cuda")))
    results[1].zero_()
    assert mean.tolist() == [1, 2], "a copy"
    names = ("out", "save_mean", "save_invstd")
    outs = {key: torch.empty(0, dtype=result.dtype, device="cuda") for key, result in zip(names, results)}
    operator.out(*given, **outs)
    assert outs["save_mean"].tolist() == [1, 2] and outs["save_invstd"].tolist() == [0.5, 2]


@release_facts.wants("batch_norm_with_update")
def test_fake_tensors_know_what_batch_norm_keeps_for_its_backward() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    given = [torch.rand(2, 3, 4, 4, device="cuda"), *(torch.rand(3, device="cuda") for _ in range(4))]
    operator = torch.ops.aten._batch_norm_with_update
    with FakeTensorMode() as mode:
        fake = operator(*(mode.from_tensor(tensor) for tensor in given), 0.1, 1e-5)
    assert [tensor.shape for tensor in fake] == [tensor.shape for tensor in operator(*given, 0.1, 1e-5)]


REDUCTIONS: Dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "sum": lambda x, out: torch.sum(x, 0, out=out),
    "mean": lambda x, out: torch.mean(x, 0, out=out),
    "prod": lambda x, out: torch.prod(x, 0, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "all": lambda x, out: torch.all(x, out=out),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_names_the_device_that_its_out_should_have(name: str) -> None:
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cuda:0, but got cpu instead"):
        REDUCTIONS[name](torch.ones(3, device="cuda"), torch.empty(1))


def test_a_median_along_one_of_many_dimensions_is_refused() -> None:
    x = torch.ones([1] * 26, device="cuda")
    for function in (torch.median, torch.nanmedian):
        with pytest.raises(RuntimeError, match="CUDA Tensors cannot have more than 25 dimensions"):
            function(x, 0)
        assert function(x[0], 0).values.dim() == 24


def test_pooled_volumes_reach_an_out_with_gaps() -> None:
    aten = torch.ops.aten
    x = torch.randn(2, 3, 4, 4, 4, device="cuda")

    def gaps(values: torch.Tensor) -> torch.Tensor:
        return torch.full((*values.shape[:-1], 2 * values.shape[-1]), 7.0, device="cuda")[..., ::2]

    for operator in (aten.avg_pool3d, aten.adaptive_avg_pool3d):
        want = operator(x, [2, 2, 2])
        out = gaps(want)
        assert operator.out(x, [2, 2, 2], out=out) is out
        assert torch.equal(out, want)
        assert torch.equal(operator.out(x, [2, 2, 2], out=torch.empty(0, device="cuda")), want)
    given = torch.randn(2, 3, 2, 2, 2, device="cuda")
    options = [[2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None]
    want = aten.avg_pool3d_backward(given, x, *options)
    out = gaps(want)
    aten.avg_pool3d_backward.grad_input(given, x, *options, grad_input=out)
    assert torch.equal(out, want)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("dims", [2, 3])
def test_borders_make_an_image_contiguous(dims: int, mode: str) -> None:
    layout = torch.channels_last if dims == 2 else torch.channels_last_3d
    x = torch.randn(2, 3, *[5] * dims, generator=torch.Generator().manual_seed(1)).to(memory_format=layout)
    given = torch.empty_like(x, device="cuda").copy_(x)
    assert given.is_contiguous(memory_format=layout)
    want = torch.nn.functional.pad(x, [1, 2] * dims, mode=mode)
    got = torch.nn.functional.pad(given, [1, 2] * dims, mode=mode)
    assert got.is_contiguous() and torch.equal(got.cpu(), want)
    given.requires_grad_()
    torch.nn.functional.pad(given, [1, 2] * dims, mode=mode).sum().backward()
    x.requires_grad_()
    torch.nn.functional.pad(x, [1, 2] * dims, mode=mode).sum().backward()
    torch.testing.assert_close(given.grad.cpu(), x.grad)


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("height", [1, 4, 20])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing_makes_an_image_of_one_pixel_in_width(mode: str, height: int, order: torch.memory_format) -> None:
    image = torch.randn(2, 4, 9, 5, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    want = torch.nn.functional.interpolate(image, size=(height, 1), mode=mode, antialias=True)
    on_device = torch.empty(image.shape, dtype=image.dtype, device="cuda", memory_format=order).copy_(image)
    got = torch.nn.functional.interpolate(on_device, size=(height, 1), mode=mode, antialias=True)
    torch.testing.assert_close(got.cpu(), want)
    assert got.is_contiguous(memory_format=order)
    operator = getattr(torch.ops.aten, f"_upsample_{mode}2d_aa").out
    for out in (got.new_empty(0), torch.empty_like(got), got.new_empty(1, height, 4, 2).permute(3, 2, 1, 0)):
        operator(on_device, [height, 1], False, out=out)
        torch.testing.assert_close(out.cpu(), want)
