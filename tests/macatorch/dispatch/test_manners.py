"""What upstream's CUDA operators refuse, how they lay out results, and when they wait: the same here."""

from __future__ import annotations

from typing import Callable, Dict, Iterator

import pytest
import release_facts
import torch
from torch.nn import functional as F


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def gradient(function: Callable[[torch.Tensor], torch.Tensor], *shape: int) -> Callable[[], None]:
    def run() -> None:
        x = torch.randn(shape, device="cuda", requires_grad=True)
        function(x).sum().backward()

    return run


RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
HISTC = "_histc_cuda with floating point input" if RELEASE >= (2, 7) else "_histc_cuda"
ALERTS: Dict[str, Callable[[], object]] = {
    "adaptive_avg_pool2d_backward_cuda": gradient(lambda x: F.adaptive_avg_pool2d(x, 3), 1, 2, 5, 5),
    "upsample_bilinear2d_backward_out_cuda": gradient(
        lambda x: torch.ops.aten.upsample_bilinear2d(x, [6, 6], False), 1, 2, 3, 3
    ),
    "embedding_bag_backward_cuda_max": lambda: (
        F.embedding_bag(
            torch.zeros(2, 2, dtype=torch.long, device="cuda"),
            torch.ones(3, 2, device="cuda", requires_grad=True),
            mode="max",
        )
        .sum()
        .backward()
    ),
    "grid_sampler_2d_backward_cuda": gradient(
        lambda x: F.grid_sample(x, torch.zeros(1, 3, 3, 2, device="cuda"), align_corners=False), 1, 2, 3, 3
    ),
    "_bincount_cuda": lambda: torch.bincount(torch.tensor([0, 1]).cuda(), torch.ones(2, device="cuda")),
    HISTC: lambda: torch.histc(torch.ones(4, device="cuda")),
    "median CUDA with indices output": lambda: torch.ones(4, device="cuda").median(0),
    "nll_loss2d_forward_out_cuda_template": lambda: F.nll_loss(
        torch.zeros(1, 2, 3, 3, device="cuda"), torch.zeros(1, 3, 3, dtype=torch.long, device="cuda")
    ),
    "put_": lambda: torch.zeros(4, device="cuda").put_(torch.tensor([1]).cuda(), torch.ones(1).cuda(), accumulate=True),
}

MADE_DETERMINISTIC = {
    "reflection_pad2d_backward_cuda": gradient(lambda x: F.pad(x, [1, 1, 1, 1], mode="reflect"), 1, 2, 3, 3),
    "kthvalue CUDA": lambda: torch.ones(4, device="cuda").kthvalue(2),
}


@pytest.mark.parametrize("name", MADE_DETERMINISTIC)
def test_deterministic_mode_takes_what_later_releases_have_made_so(name: str, deterministic: None) -> None:
    if release_facts.has("deterministic_mirrors_and_kthvalue"):
        MADE_DETERMINISTIC[name]()
    else:
        with pytest.raises(RuntimeError, match=f"^{name} does not have a deterministic implementation"):
            MADE_DETERMINISTIC[name]()


@pytest.mark.parametrize("name", ALERTS)
def test_deterministic_mode_refuses_what_cuda_adds_in_any_order(name: str, deterministic: None) -> None:
    with pytest.raises(RuntimeError, match=f"^{name} does not have a deterministic implementation"):
        ALERTS[name]()
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=f"^{name} does not have a deterministic implementation"):
        ALERTS[name]()


def test_deterministic_mode_leaves_the_rest_alone(deterministic: None) -> None:
    torch.bincount(torch.tensor([0, 1]).cuda())
    torch.ones(4, device="cuda").median()
    torch.ones(4, device="cuda") @ torch.ones(4, device="cuda")


@pytest.mark.parametrize("name", ["mul", "add", "sub", "div", "maximum"])
def test_a_scalar_on_the_cpu_is_no_place_for_a_result(name: str) -> None:
    scalar = torch.tensor(2.0, device="cuda")
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu!"):
        getattr(torch, name)(scalar, scalar, out=torch.empty(()))
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cuda:0, but got cpu instead"):
        torch.sum(torch.ones(3, device="cuda"), 0, out=torch.empty(()))


def test_repeat_interleave_waits_only_where_it_must() -> None:
    x, times = torch.ones(3, device="cuda"), torch.tensor([1, 2, 3], device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchronizing"):
            torch.repeat_interleave(x, times)
        torch.repeat_interleave(times, output_size=6)
    finally:
        torch.cuda.set_sync_debug_mode("default")


CONVERSIONS = {
    "csr to csc": lambda d: d.to_sparse_csr().to_sparse_csc(),
    "csc to csr": lambda d: d.to_sparse_csc().to_sparse_csr(),
    "bsr to bsc": lambda d: d.to_sparse_bsr((2, 2)).to_sparse_bsc((2, 2)),
    "csr to bsc": lambda d: d.to_sparse_csr().to_sparse_bsc((2, 2)),
    "csr to coo": lambda d: d.to_sparse_csr().to_sparse(),
    "coo to csr": lambda d: d.to_sparse().to_sparse_csr(),
    "mask of a sparse tensor": lambda d: d.to_sparse().sparse_mask((d > 0).float().to_sparse().coalesce()),
    "mask of a dense tensor": lambda d: d.sparse_mask((d > 0).float().to_sparse().coalesce()),
    "product": lambda d: d.to_sparse() * (d > 0).float().to_sparse(),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_sparse_layouts_change_into_one_another(name: str) -> None:
    torch.manual_seed(0)
    d = torch.randn(6, 6).relu() - torch.randn(6, 6).relu()
    want, got = CONVERSIONS[name](d), CONVERSIONS[name](d.cuda())
    assert got.is_cuda and got.layout == want.layout
    assert torch.equal(got.to_dense().cpu(), want.to_dense())


def test_gradient_of_a_sparse_tensors_values() -> None:
    grads = []
    for device in ("cpu", "cuda"):
        values = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
        sparse = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [0, 1, 2]], device=device), values, (3, 3))
        (sparse.to_dense() ** 2).sum().backward()
        grads.append(values.grad.cpu())
    assert torch.equal(grads[0], grads[1])


def test_sparse_sums_promote_a_dtype_that_the_cpu_lacks() -> None:
    index = [[0, 1, 1]]
    a = torch.sparse_coo_tensor(index, torch.tensor([1, 2, 3]), (4,)).cuda()
    b = torch.sparse_coo_tensor([[2, 1, 1]], torch.tensor([1.0, 2, 3]).half(), (4,)).cuda()
    got = a + b
    assert got.dtype == torch.float16 and got.to_dense().tolist() == [1.0, 10.0, 1.0, 0.0]


def test_convolution_of_one_image_keeps_its_layout() -> None:
    x = torch.randn(1, 4, 8, 8, 8, device="cuda").to(memory_format=torch.channels_last_3d)
    layer = torch.nn.Conv3d(4, 4, 3).cuda().to(memory_format=torch.channels_last_3d)
    assert layer(x).is_contiguous(memory_format=torch.channels_last_3d)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_attention_has_the_strides_that_fake_tensors_promise(dtype: torch.dtype) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    aten = torch.ops.aten
    forms = {
        "flash": lambda q, k, v: aten._scaled_dot_product_flash_attention(q, k, v)[0],
        "efficient": lambda q, k, v: aten._scaled_dot_product_efficient_attention(q, k, v, None, True)[0],
    }
    plain = [torch.randn(2, 4, 3, 8, device="cuda").contiguous().to(dtype) for _ in range(3)]
    turned = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in plain]
    for given in (plain, turned):
        for name, form in forms.items():
            if name == "flash" and dtype == torch.float32:
                continue  # which it does not take
            mode = FakeTensorMode()
            fake = [mode.from_tensor(t) for t in given]
            with mode:
                want = form(*fake).stride()
            assert form(*given).stride() == want, name


def test_the_gradient_of_an_attention_bias_has_aligned_rows() -> None:
    q, k, v = (torch.randn(2, 4, length, 8, device="cuda", requires_grad=True) for length in (3, 6, 6))
    bias = torch.randn(2, 4, 3, 6, device="cuda", requires_grad=True)
    out, logsumexp, seed, offset = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, bias, True)
    grad = torch.randn_like(out)
    with torch.no_grad():
        got = torch.ops.aten._scaled_dot_product_efficient_attention_backward(
            grad, q, k, v, bias, out, logsumexp, seed, offset, 0.0, [True] * 4
        )[3]
    scores = (q @ k.transpose(2, 3)) * 8**-0.5 + bias
    (want,) = torch.autograd.grad(scores.softmax(3) @ v, bias, grad)
    assert got.stride() == (4 * 3 * 16, 3 * 16, 16, 1)  # rows of 6 at multiples of 16
    torch.testing.assert_close(got, want)
