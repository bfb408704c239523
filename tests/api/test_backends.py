"""Every answer that the compatibility promise gives for torch.backends, and every environment variable."""

import pytest
import torch
from torch.nn import functional as F

NEW_PRECISION_API = hasattr(torch.backends, "fp32_precision")


def test_cuda_is_built():
    assert torch.backends.cuda.is_built() is True


def test_mps_never_is():
    assert torch.backends.mps.is_available() is False
    assert torch.backends.mps.is_built() is False


def test_cpu_backends_are_upstreams():
    assert torch.backends.mkl.is_available()
    assert torch.backends.mkldnn.is_available()
    assert torch.backends.openmp.is_available()


def test_cudnn_is_there():
    assert torch.backends.cudnn.is_available()
    assert torch.backends.cudnn.enabled is True
    assert torch.backends.cudnn.version() >= (90000 if torch.version.cuda > "12.1" else 8900)
    assert torch.backends.cudnn.is_acceptable(torch.ones(1, device="cuda"))


def test_cudnn_flags_start_as_upstreams_and_can_be_set(script):
    code = """
        import torch
        cudnn = torch.backends.cudnn
        print(cudnn.deterministic, cudnn.benchmark, cudnn.benchmark_limit)
        with cudnn.flags(enabled=True, deterministic=True, benchmark=True, benchmark_limit=3):
            print(cudnn.deterministic, cudnn.benchmark, cudnn.benchmark_limit)
            print(torch.nn.functional.conv2d(*(torch.ones(1, 1, 2, 2).cuda() for _ in "ab")).item())
        cudnn.benchmark_limit = 4
        print(cudnn.deterministic, cudnn.benchmark, cudnn.benchmark_limit)
    """
    assert script(code).splitlines() == ["False False 10", "True True 3", "4.0", "False False 4"]


TF32 = "import torch; print(torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)"


@pytest.mark.parametrize(
    ("env", "cudnn", "matmul"),
    [
        ({}, False, False),
        ({"PYTORCH_ALLOW_CUDA_CUDNN_TF32": "1"}, True, False),
        ({"PYTORCH_ALLOW_CUDA_CUDNN_TF32": "0"}, False, False),
        ({"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}, False, True),
        ({"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1", "PYTORCH_ALLOW_CUDA_CUDNN_TF32": "1"}, True, True),
    ],
)
def test_tf32_is_off_unless_asked_for(script, env, cudnn, matmul):
    assert script(TF32, env) == f"{cudnn} {matmul}"


def test_tf32_can_be_turned_on(script):
    code = """
        import torch
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cuda.matmul.allow_tf32 = True
        print(torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            print(torch.backends.cudnn.allow_tf32)
    """
    assert script(code).split() == ["True", "True", "False"]


@pytest.mark.skipif(not NEW_PRECISION_API, reason="newer than this release")
@pytest.mark.parametrize(("env", "conv"), [({}, "none"), ({"PYTORCH_ALLOW_CUDA_CUDNN_TF32": "1"}, "tf32")])
def test_both_precision_interfaces_agree(script, env, conv):
    code = """
        import torch
        cudnn = torch.backends.cudnn
        print(cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, torch.backends.cuda.matmul.fp32_precision)
        cudnn.conv.fp32_precision = cudnn.rnn.fp32_precision = "ieee"
        print(cudnn.conv.fp32_precision)
    """
    assert script(code, env).split() == [conv, conv, "none", "ieee"]


def test_reduced_precision_reductions_start_as_upstreams_and_can_be_set(script):
    code = """
        import torch
        matmul = torch.backends.cuda.matmul
        print(matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction)
        matmul.allow_fp16_reduced_precision_reduction = matmul.allow_bf16_reduced_precision_reduction = False
        print(matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction)
    """
    assert script(code).split() == ["True", "True", "False", "False"]


def test_cufft_plan_cache():
    cache = torch.backends.cuda.cufft_plan_cache
    assert cache.size >= 0
    before = cache.max_size
    cache.max_size = 10
    assert cache.max_size == cache[0].max_size == 10
    cache.max_size = before
    cache.clear()
    assert cache.size == 0
    x = torch.randn(8, device="cuda")
    torch.testing.assert_close(torch.fft.irfft(torch.fft.rfft(x), 8), x)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_every_attention_kernel_is_enabled_and_can_be_switched():
    cuda = torch.backends.cuda
    assert cuda.math_sdp_enabled() and cuda.flash_sdp_enabled() and cuda.mem_efficient_sdp_enabled()
    cuda.enable_math_sdp(False)
    assert not cuda.math_sdp_enabled()
    cuda.enable_math_sdp(True)
    assert cuda.math_sdp_enabled()
    with cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
        assert not cuda.flash_sdp_enabled()
        q = torch.randn(1, 2, 4, 8)
        torch.testing.assert_close(
            F.scaled_dot_product_attention(*[q.cuda()] * 3).cpu(), F.scaled_dot_product_attention(q, q, q)
        )


# Layout


STRIDES = "import torch; print(tuple(torch.rand({0}).cuda().stride()))"


@pytest.mark.parametrize(
    ("env", "shape", "strides"),
    [
        ({}, (2, 3, 4, 5), (60, 1, 15, 3)),
        ({"PYTORCH_DEFAULT_NCHW": "1"}, (2, 3, 4, 5), (60, 20, 5, 1)),
        ({"PYTORCH_DEFAULT_NCHW": ""}, (2, 3, 4, 5), (60, 20, 5, 1)),
        ({"PYTORCH_DEFAULT_NCHW": "0"}, (2, 3, 4, 5), (60, 20, 5, 1)),
        ({}, (2, 3, 4, 5, 6), (360, 120, 30, 6, 1)),
        ({"PYTORCH_DEFAULT_NDHWC": "1"}, (2, 3, 4, 5, 6), (360, 1, 90, 18, 3)),
        ({}, (2, 3, 4), (12, 4, 1)),
        ({"PYTORCH_DEFAULT_NLC": "1"}, (2, 3, 4), (12, 1, 3)),
        ({"PYTORCH_DEFAULT_NDHWC": "1", "PYTORCH_DEFAULT_NLC": "1", "PYTORCH_DEFAULT_NCHW": "1"}, (2, 3), (3, 1)),
    ],
)
def test_layout_on_the_way_to_the_device(script, env, shape, strides):
    assert script(STRIDES.format(shape), env) == str(strides)


SEQUENCES = """
import torch

torch.manual_seed(0)
inputs = [torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(2, 3, 4, 5, 6)]
want, got = ([x.to(device).requires_grad_() for x in inputs] for device in ("cpu", "cuda"))
results = []
for x, y, volume in (want, got):
    product = torch.baddbmm(x.transpose(1, 2) @ x, x.transpose(1, 2), x)
    image = x.flatten(1) @ x.view(2, -1).t()
    rows = x.as_strided((2, 3, 2), x.stride()) + x.permute(0, 1, 2)[..., :2] + x.unfold(2, 2, 1)[..., :2, 0]
    parts = volume.mean((2, 3, 4)).sum() + volume[:, :, 1].flatten(2).std() + volume.movedim(1, -1).flatten(1).norm()
    loss = product.square().sum() + image.sum() + rows.sum() + parts + (x @ y).exp().mean()
    results.append([loss, *torch.autograd.grad(loss, [x, y, volume])])
for one, other in zip(*results):
    torch.testing.assert_close(other.cpu(), one)
print(got[0].stride(), got[2].stride())
"""


def test_sequences_and_volumes_of_the_layout_rule_compute_what_the_cpus_do(script):
    result = script(SEQUENCES, {"PYTORCH_DEFAULT_NLC": "1", "PYTORCH_DEFAULT_NDHWC": "1"})
    assert result == "(12, 1, 3) (360, 1, 90, 18, 3)"


def test_every_way_to_the_device_has_the_same_layout():
    x = torch.rand(2, 3, 4, 5)
    ways = [
        x.cuda(),
        x.cuda(non_blocking=True),
        x.to("cuda"),
        x.to("cuda", non_blocking=True),
        x.to(torch.device("cuda", 0), torch.float64),
        x.to(torch.empty(0, device="cuda")),
        x.pin_memory().to("cuda", non_blocking=True),
    ]
    for y in ways:
        assert y.stride() == (60, 1, 15, 3)
        assert torch.equal(y.cpu().float(), x)
    module = torch.nn.Conv2d(3, 8, 3).cuda()
    assert module.weight.stride() == (27, 1, 9, 3)


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        (torch.rand(2, 1, 4, 5), {}),  # one channel
        (torch.rand(2, 3, 5, 4).transpose(2, 3), {}),  # not contiguous
        (torch.rand(2, 3, 4, 5), {"memory_format": torch.contiguous_format}),  # the caller chose
    ],
)
def test_other_tensors_keep_upstreams_layout(source, arguments):
    y = source.to("cuda", **arguments)
    assert y.stride() == source.stride()
    assert torch.equal(y.cpu(), source)


def test_no_layout_change_within_the_device_or_back():
    x = torch.rand(2, 3, 4, 5, device="cuda")
    assert x.stride() == (60, 20, 5, 1)
    assert x.clone().stride() == x.to(torch.float64).stride() == x.cpu().stride() == (60, 20, 5, 1)


def test_gradients_flow_through_the_copy():
    x = torch.rand(2, 3, 4, 5, requires_grad=True)
    (x.cuda() * torch.arange(5.0, device="cuda")).sum().backward()
    assert torch.equal(x.grad, torch.arange(5.0).expand(2, 3, 4, 5))


def test_other_views_keep_upstreams_error():
    with pytest.raises(RuntimeError) as caught:
        torch.rand(3, 4, device="cuda").t().view(-1)
    assert "PYTORCH_DEFAULT_NCHW" not in str(caught.value)
