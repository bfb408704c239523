"""Low-precision operators have the dtypes that CUDA's have, also where the CPU's differ."""

from __future__ import annotations

from typing import Type

import pytest
import release_facts
import torch
from torch.nn import functional as F

RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
LOW = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


@LOW
@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_softmax_to_float_is_computed_in_float(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 9).to(dtype)
    operator = getattr(torch, name)
    want = operator(x.float(), 1, False)
    got = operator(x.cuda(), 1, True)
    assert got.dtype == torch.float32 and torch.equal(got.cpu(), want)
    out = torch.empty(0, device="cuda")
    assert torch.equal(getattr(torch.ops.aten, name).out(x.cuda(), 1, True, out=out).cpu(), want)
    grad = torch.randn(4, 9)
    backward = getattr(torch.ops.aten, f"{name}_backward_data")
    wanted = backward(grad, want, 1, torch.float32).to(dtype)
    given = backward(grad.cuda(), got, 1, dtype)
    assert given.dtype == dtype and torch.equal(given.cpu(), wanted)


@LOW
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_softmax_writes_to_its_own_device_only(function, dtype: torch.dtype) -> None:
    out = torch.zeros(4, 9, dtype=dtype)
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cuda:0, but got cpu instead"):
        function(torch.ones(4, 9, dtype=dtype, device="cuda"), 0, out=out)
    assert not out.any()


@LOW
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_softmax_is_rounded_once(function, dim: int, dtype: torch.dtype) -> None:
    """As on CUDA: the largest term's logarithm, near zero, has all the digits of its dtype."""
    torch.manual_seed(0)
    x = (torch.randn(65, 33) * 3).to(dtype)
    want = function(x.float(), dim).to(dtype)
    # Two roundings to even may part where float itself was off; the least numbers of halves have a fixed step.
    limits = {"rtol": torch.finfo(dtype).eps, "atol": torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps}
    torch.testing.assert_close(function(x.cuda(), dim).cpu(), want, **limits)
    out = torch.empty(0, dtype=dtype, device="cuda")
    assert function(x.cuda(), dim, out=out) is out
    torch.testing.assert_close(out.cpu(), want, **limits)


@LOW
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_softmax_has_a_gradient_along_each_dimension(function, dim: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, grad = (torch.randn(5, 7).to(dtype) for _ in range(2))
    wide = x.float().requires_grad_()
    function(wide, dim).backward(grad.float())
    on_device = x.cuda().requires_grad_()
    function(on_device, dim).backward(grad.cuda())
    assert on_device.grad.dtype == dtype
    torch.testing.assert_close(on_device.grad.cpu().float(), wide.grad, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_of_half_with_a_float_result_trains(function) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 5).half()
    grads = []
    for device in ("cpu", "cuda"):
        leaf = x.clone().to(device).requires_grad_()
        y = function(leaf, dim=-1, dtype=torch.float32)
        assert y.dtype == torch.float32
        y.square().sum().backward()
        assert leaf.grad.dtype == torch.float16
        grads.append(leaf.grad.cpu())
    torch.testing.assert_close(grads[0], grads[1])


def test_softmax_to_float_wants_a_low_precision_input() -> None:
    with pytest.raises(RuntimeError, match="conversion is supported for Half type only"):
        torch._softmax(torch.ones(3, device="cuda"), 0, True)


@LOW
def test_saved_statistics_are_float(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 6, 5).to(dtype)
    w, b = torch.randn(6).to(dtype), torch.randn(6).to(dtype)
    last, first = torch.randn(5).to(dtype), torch.randn(5).to(dtype)
    wide = [t.float() for t in (x, w, b, last, first)]
    low = [t.cuda() for t in (x, w, b, last, first)]
    calls = {
        "native_layer_norm": lambda x, w, b, g, h: torch.native_layer_norm(x, [5], g, h, 1e-5),
        "native_batch_norm": lambda x, w, b, g, h: torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5),
    }
    for name, call in calls.items():
        want, got = call(*wide), call(*low)
        assert [t.dtype for t in got] == [dtype, torch.float32, torch.float32], name
        assert torch.equal(got[0].cpu(), want[0].to(dtype)), name
        for saved, expected in zip(got[1:], want[1:]):
            torch.testing.assert_close(saved.cpu(), expected)


@LOW
def test_gradients_of_float_weights_beside_a_low_precision_input_stay_float(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 6, 5).to(dtype)
    grads = []
    for device in ("cpu", "cuda"):
        leaf = (x.float() if device == "cpu" else x.cuda()).requires_grad_()
        norm = torch.nn.BatchNorm1d(6).to(device)
        with torch.backends.cudnn.flags(enabled=False):
            norm(leaf).float().square().mean().backward()
        grads.append((leaf.grad, norm.weight.grad))
    assert grads[1][0].dtype == dtype and grads[1][1].dtype == torch.float32
    torch.testing.assert_close(grads[1][1].cpu(), grads[0][1], rtol=1e-2, atol=1e-4)


FIRST_CALLS = {
    "trace": (lambda x: x.trace(), (4, 4)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), (1, 2, 4, 4, 4)),
    "multi_margin_loss": (lambda x: F.multi_margin_loss(x, torch.tensor([1, 0], device=x.device)), (2, 3)),
    "rfft": (lambda x: torch.view_as_real(torch.fft.rfft(x)), (8,)),
    "fft": (lambda x: torch.view_as_real(torch.fft.fft(x)), (8,)),
}


@pytest.mark.parametrize("name", FIRST_CALLS)
def test_the_call_that_learns_of_a_missing_dtype_is_right_already(name: str) -> None:
    call, shape = FIRST_CALLS[name]
    torch.manual_seed(0)
    x = torch.randn(shape).half()
    for _ in range(2):
        got = call(x.cuda())
        assert got.is_cuda and got.dtype == torch.float16
        torch.testing.assert_close(got.cpu(), call(x.float()).half())


INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_histc_counts_integers(dtype: torch.dtype) -> None:
    values = torch.tensor([0, 1, 1, 3, 7, 7, 7, 9, 100], dtype=dtype)
    got = torch.histc(values.cuda(), bins=4, min=0, max=7)
    assert got.dtype == dtype and got.tolist() == [3, 1, 0, 3]  # the quotient 4 v / 7 in whole numbers, 4 counts as 3
    out = torch.empty(0, dtype=dtype, device="cuda")
    torch.histc(values.cuda(), bins=101, out=out)  # from the least to the largest value
    assert out.tolist() == torch.bincount(values.long(), minlength=101).tolist()
    assert torch.histc(values.cuda(), bins=4, min=-4, max=4).tolist() == [0, 0, 3, 1]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.histc(values.cuda(), out=torch.empty(0, device="cuda"))
    on_host = torch.zeros(4, dtype=dtype)
    with pytest.raises(RuntimeError, match="out is on cpu, different from other|cuda:0 and cpu! .* argument out"):
        torch.histc(values.cuda(), bins=4, out=on_host)
    assert not on_host.any()


@release_facts.wants("scattered_floats_of_8_bits")
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
def test_eight_bit_floats_are_scattered(name: str) -> None:
    dtype = getattr(torch, name)
    index = torch.tensor([[2, 0], [0, 1]]).cuda()
    wide = torch.arange(6.0).view(3, 2).cuda() - 2
    source = torch.tensor([[0.5, -1.5], [-3.0, 8.0]]).cuda()
    narrow = wide.to(dtype)
    want = wide.scatter(0, index, source)
    assert torch.equal(narrow.scatter(0, index, source.to(dtype)).float(), want)
    assert torch.equal(narrow.scatter(0, index, -1.5).float(), wide.scatter(0, index, -1.5))
    out = torch.empty(3, 4, device="cuda").to(dtype)[:, ::2]
    torch.scatter(narrow, 0, index, source.to(dtype), out=out)
    assert torch.equal(out.float(), want) and torch.equal(narrow.float(), wide)
    assert narrow.scatter_(0, index, source.to(dtype)) is narrow and torch.equal(narrow.float(), want)
    with pytest.raises(RuntimeError, match="dtype"):
        narrow.scatter(0, index, source)


@LOW
def test_the_angles_of_halves(dtype: torch.dtype) -> None:
    x = torch.tensor([-2.0, 0.0, 3.0, float("nan")], dtype=dtype)
    if not release_facts.has("angles_of_halves"):
        with pytest.raises(RuntimeError, match='"angle_cuda" not implemented'):
            torch.angle(x.cuda())
        return
    got = torch.angle(x.cuda())
    assert got.dtype == dtype and torch.equal(got[:3].cpu(), torch.angle(x[:3].float()).to(dtype)) and got[3].isnan()


@LOW
@release_facts.wants("sampled_products_of_halves")
def test_products_at_the_places_of_a_compressed_matrix_take_halves(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    places, left, right = torch.eye(5)[[0, 2, 2, 4, 1]], torch.randn(5, 7).to(dtype), torch.randn(7, 5).to(dtype)
    compressed = places.to(dtype).cuda().to_sparse_csr()
    got = torch.sparse.sampled_addmm(compressed, left.cuda(), right.cuda(), beta=0.5, alpha=2.0)
    want = (places * (0.5 + 2 * left.double() @ right.double())).to(dtype)
    assert got.layout == torch.sparse_csr and got.dtype == dtype
    torch.testing.assert_close(got.to_dense().cpu(), want)


def test_booleans_have_a_trace_and_an_absolute_value() -> None:
    mask = torch.tensor([[True, False, True], [False, True, True]], device="cuda")
    trace = mask.trace()
    assert trace.dtype == torch.int64 and trace.item() == 2
    assert torch.equal(mask.abs(), mask)
    with pytest.raises(RuntimeError, match="matrix"):
        mask[0].trace()


@pytest.mark.parametrize("dtype", [torch.float16, torch.complex32], ids=str)
@pytest.mark.parametrize("name", ["fft", "fft2", "fftn", "ifft", "ifftn", "hfft", "hfftn", "irfft", "irfft2", "ihfftn"])
def test_half_precision_is_transformed(name: str, dtype: torch.dtype) -> None:
    if dtype.is_complex and name == "ihfftn":
        pytest.skip("takes real numbers")
    torch.manual_seed(0)
    wide = torch.complex64 if dtype.is_complex else torch.float32
    # Powers of two, before or, from one half of a signal to a real one, after the transform.
    width = 5 if name.startswith(("hfft", "irfft")) else 4
    x = torch.randn(2, 4, width, dtype=wide).to(dtype)
    transform = getattr(torch.fft, name)
    want = transform(x.to(wide))
    got = transform(x.cuda())
    assert got.dtype == {torch.float32: torch.float16, torch.complex64: torch.complex32}[want.dtype]
    torch.testing.assert_close(got.cpu().to(want.dtype), want, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_a_sum_with_a_product_of_compressed_sparse_matrices_has_its_own_pattern(dtype: torch.dtype) -> None:
    left, right = torch.tensor([[1.0, 0, 2], [0, 3, 0]]), torch.tensor([[1.0, 2], [0, 3], [4, 0]])
    added = torch.tensor([[0.0, 0], [1, 0]])
    on_device = [t.to("cuda", dtype).to_sparse_csr() for t in (added, left, right)]
    result = torch.addmm(*on_device)
    assert result.dtype == dtype and result.is_cuda
    assert torch.equal(result.to_dense().float().cpu(), added + left @ right)


SUMS = ["sum", "mean", "prod", "nansum", "nanmean", "cumsum", "cumprod"]


@LOW
def test_elements_of_one_place_in_a_coordinate_list_are_summed_before_they_are_rounded(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    place = torch.randint(0, 3, (400,))
    values = torch.randn(400).to(dtype)
    want = torch.zeros(3, dtype=torch.double).index_add_(0, place, values.double())
    diagonal = torch.sparse_coo_tensor(torch.stack([place, place]), values, (3, 3)).cuda()
    sums = diagonal.coalesce()
    assert sums.is_coalesced() and sums.dtype == dtype
    torch.testing.assert_close(sums.values().cpu().double(), want, rtol=torch.finfo(dtype).eps, atol=1e-5)
    torch.testing.assert_close(
        torch.sum(diagonal, 0).to_dense().cpu().double(), want, rtol=torch.finfo(dtype).eps, atol=1e-5
    )
    product = torch.sparse.mm(diagonal, torch.ones(3, 2, dtype=dtype, device="cuda"))
    torch.testing.assert_close(product[:, 1].cpu().double(), want, rtol=torch.finfo(dtype).eps, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("given", [torch.float16, torch.complex32, torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("wanted", [torch.float32, torch.complex32, torch.complex64, torch.float16], ids=str)
def test_a_sum_has_the_dtype_that_is_asked_for(name: str, given: torch.dtype, wanted: torch.dtype) -> None:
    x = torch.tensor([1000.0, 1.0, 0.25]).to(given)
    arguments = (0,) if name.startswith("cum") else ()
    want = getattr(torch, name)(x.to(torch.float64), *arguments)
    for _ in range(2):
        got = getattr(torch, name)(x.cuda(), *arguments, dtype=wanted)
        assert got.dtype == wanted
        assert torch.equal(got.cpu().to(torch.complex128), want.to(wanted).to(torch.complex128))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("layer", [torch.nn.BatchNorm2d, torch.nn.InstanceNorm2d])
@pytest.mark.parametrize("cudnn", [True, False], ids=["cudnn", "native"])
def test_training_moves_the_running_statistics(layer: Type[torch.nn.Module], dtype: torch.dtype, cudnn: bool) -> None:
    """A model whose statistics are halves too, as .half() makes it: the schemas do not say that they are written."""
    torch.manual_seed(0)
    wanted = layer(3, affine=True, track_running_stats=True)
    model = layer(3, affine=True, track_running_stats=True).cuda().to(dtype)
    for _ in range(3):
        x = (torch.randn(4, 3, 5, 5) * 2 + 1).to(dtype)
        wanted(x.float())
        with torch.backends.cudnn.flags(enabled=cudnn):
            model(x.cuda())
    tolerance = 1e-5 if dtype in (torch.float32, torch.float64) else 3e-2
    for name in ("running_mean", "running_var"):
        found = getattr(model, name)
        assert found.dtype == dtype
        torch.testing.assert_close(found.cpu().float(), getattr(wanted, name), atol=tolerance, rtol=tolerance)


@release_facts.wants("lazy_copies")
@pytest.mark.parametrize("cudnn", [True, False], ids=["cudnn", "native"])
def test_statistics_that_are_a_lazy_copy_leave_the_original_alone(cudnn: bool) -> None:
    original = torch.zeros(3, device="cuda")
    mean, var = torch._lazy_clone(original), torch.ones(3, device="cuda")
    with torch.backends.cudnn.flags(enabled=cudnn):
        torch.nn.functional.batch_norm(torch.ones(2, 3, 4, 4, device="cuda"), mean, var, training=True)
    assert original.tolist() == [0, 0, 0] and not torch.equal(mean.cpu(), torch.zeros(3))


REFUSED = {
    "cholesky of halves": (lambda: torch.linalg.cholesky(torch.eye(3).half().cuda()), "cholesky_cusolver", "Half"),
    "svd of bfloat16": (lambda: torch.linalg.svdvals(torch.ones(3, 2).bfloat16().cuda()), "svd_cuda", "BFloat16"),
    "solve of halves": (
        lambda: torch.linalg.solve(torch.eye(2).half().cuda(), torch.ones(2).half().cuda()),
        "lu_factor_cusolver",
        "Half",
    ),
    "zeta of halves": (lambda: torch.special.zeta(torch.full((2,), 3.0).half().cuda(), 2), "zeta_cuda", "Half"),
    "bessel_j0(out=)": (
        lambda: torch.special.bessel_j0(torch.ones(2).half().cuda(), out=torch.ones(2).cuda()),
        "bessel_j0_cuda",
        "Half",
    ),
    "pooling of integers": (
        lambda: F.avg_pool2d(torch.ones(1, 1, 4, 4, dtype=torch.long, device="cuda"), 2),
        "avg_pool2d_out_cuda_frame",
        "Long",
    ),
    "convolution of integers": (
        lambda: F.conv2d(*(torch.ones(1, 1, 3, 3, dtype=torch.long, device="cuda") for _ in range(2))),
        "slow_conv2d_cuda",
        "Long",
    ),
    "transposed convolution of integers": (
        lambda: F.conv_transpose3d(*(torch.ones(1, 1, 3, 3, 3, dtype=torch.long, device="cuda") for _ in range(2))),
        "slow_conv_transpose3d_out_cuda",
        "Long",
    ),
    "interpolation of bytes": (
        lambda: F.interpolate(torch.ones(1, 1, 4, 4, dtype=torch.uint8, device="cuda"), scale_factor=2, mode="bicubic"),
        "upsample_bicubic2d_out_frame",
        "Byte",
    ),
    "distances of halves": (
        lambda: torch.cdist(torch.ones(30, 2).half().cuda(), torch.ones(2, 2).half().cuda(), p=1.0),
        "cdist_cuda",
        "Half",
    ),
    "gradient of distances of halves": (
        lambda: torch.ops.aten._cdist_backward(*[torch.ones(2, 2).bfloat16().cuda()] * 3, 1.0, torch.ones(2, 2).cuda()),
        "cdist_cuda_backward",
        "BFloat16",
    ),
    "scattered maximum of booleans": (
        lambda: torch.ones(2, dtype=torch.bool, device="cuda").scatter_reduce(
            0, torch.zeros(2, dtype=torch.long, device="cuda"), torch.ones(2, dtype=torch.bool, device="cuda"), "amax"
        ),
        "cuda_scatter_gather_base_kernel_func",
        "Bool",
    ),
    "scattered product with a boolean": (
        lambda: torch.ones(2, dtype=torch.bool, device="cuda").scatter_(
            0, torch.zeros(2, dtype=torch.long, device="cuda"), True, reduce="multiply"
        ),
        "cuda_scatter_fill_base_kernel_reduce_multiply",
        "Bool",
    ),
    "gradient of the largest of a bag": (
        lambda: (
            F.embedding_bag(
                torch.zeros(2, dtype=torch.long, device="cuda"),
                torch.ones(3, 2, dtype=torch.bfloat16, device="cuda", requires_grad=True),
                torch.zeros(1, dtype=torch.long, device="cuda"),
                mode="max",
            )
            .sum()
            .backward()
        ),
        "embedding_bag_backward_cuda_max",
        "BFloat16",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_dtypes_that_cuda_lacks_are_refused_in_its_words(case: str) -> None:
    call, kernel, dtype = REFUSED[case]
    with pytest.raises(RuntimeError, match=f"\"{kernel}\" not implemented for '{dtype}'"):
        call()


@pytest.mark.parametrize("name", ["slogdet", "inv"])
def test_what_is_refused_before_the_kernel_has_upstreams_words(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"^linalg.{name}: Low precision dtypes not supported. Got Half$"):
        getattr(torch.linalg, name)(torch.eye(3, device="cuda").half())


@pytest.mark.parametrize("wrong", [0, 1])
def test_distances_of_halves_that_are_no_matrix_have_upstreams_words(wrong: int) -> None:
    points = [torch.ones(3, 4, device="cuda").half(), torch.ones(3, 4, device="cuda").half()]
    points[wrong] = points[wrong][0]
    with pytest.raises(RuntimeError, match=f"^cdist only supports at least 2D tensors, X{wrong + 1} got: 1D$"):
        torch.ops.aten._cdist_forward(*points, 2.0, None)


def test_what_does_not_come_to_the_refusing_kernel_is_computed() -> None:
    points, others = torch.randn(30, 4).half(), torch.randn(5, 4).add(8).half()
    wanted = torch.cdist(points.float(), others.float())
    torch.testing.assert_close(torch.cdist(points.cuda(), others.cuda()).cpu().float(), wanted, atol=6e-2, rtol=1e-2)
    true = torch.ones(2, dtype=torch.bool, device="cuda")
    index = torch.zeros(2, dtype=torch.long, device="cuda")
    assert true.scatter_reduce(0, index[:0], true[:0], "amax").all(), "nothing is scattered"
    assert torch.zeros_like(true).scatter_reduce(0, index, true, "sum").tolist() == [True, False]


@pytest.mark.skipif(torch.__version__ >= "2.7", reason="newer kernels take complex numbers")
def test_logaddexp_of_complex_numbers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="\"logaddexp_cuda\" not implemented for 'ComplexFloat'"):
        torch.logaddexp(*(torch.ones(2, dtype=torch.complex64, device="cuda") for _ in range(2)))


def test_the_common_dtype_decides_what_is_refused() -> None:
    half, wide = torch.full((2,), 3.0).half(), torch.full((2,), 2.0)
    assert torch.equal(torch.special.zeta(half.cuda(), wide.cuda()).cpu(), torch.special.zeta(half.float(), wide))
    with pytest.raises(RuntimeError, match="\"zeta_cuda\" not implemented for 'Half'"):
        torch.special.zeta(half.cuda(), wide[0].cuda())
    assert torch.special.erfcx(torch.empty(0, device="cuda").half()).dtype == torch.float16


@pytest.mark.parametrize("dtype", [torch.complex64, torch.long, torch.bool], ids=str)
def test_dropout_takes_floating_dtypes_only(dtype: torch.dtype) -> None:
    x = torch.ones(4, 5, device="cuda").to(dtype)
    calls = [lambda: torch.native_dropout(x, 0.5, True)]
    if not (dtype.is_complex and RELEASE >= (2, 15)):  # which multiplies complex numbers by a mask
        calls.append(lambda: F.dropout(x, 0.5))
    for call in calls:
        with pytest.raises(RuntimeError, match='"fused_dropout" not implemented for'):
            call()
    assert torch.equal(F.dropout(x, 0.5, training=False), x)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("number", [1, 1.7, -0.3])
def test_filling_with_8_bit_floats_rounds_once(dtype: torch.dtype, number: float) -> None:
    want = torch.tensor(number, dtype=torch.float32).to(dtype)
    base = torch.zeros(3, 4, device="cuda").to(dtype)
    base[:, 1].fill_(number)
    made = torch.full((2, 3), number, dtype=dtype, device="cuda")
    assert made.dtype == dtype and torch.equal(made.cpu().view(torch.uint8), want.view(torch.uint8).expand(2, 3))
    bytes_of_base = base.cpu().view(torch.uint8)
    assert (bytes_of_base[:, 1] == want.view(torch.uint8)).all() and not bytes_of_base[:, [0, 2, 3]].any()
