"""The CPU aliases behind device operators: aliasing, resizing, errors and memory come out as on a real device."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest
import release_facts
import torch


def test_result_of_inplace_operator_is_the_same_tensor() -> None:
    x = torch.ones(3, device="cuda")
    assert x.add_(1) is x
    out = torch.empty(3, device="cuda")
    assert torch.add(x, x, out=out) is out


def test_out_is_resized_like_upstream() -> None:
    out = torch.empty(0, device="cuda")
    torch.mm(torch.ones(3, 4, device="cuda"), torch.ones(4, 5, device="cuda"), out=out)
    assert out.shape == (3, 5) and out.is_cuda and out.untyped_storage().device.type == "cuda"
    assert torch.equal(out.cpu(), torch.full((3, 5), 4.0))


def test_an_out_that_a_kernel_leaves_conjugated_has_the_values_of_the_result() -> None:
    matrix, right = (torch.randn(3, n, dtype=torch.complex128, device="cuda") for n in (3, 3))
    factors, pivots = torch.linalg.lu_factor(matrix)
    want = torch.linalg.lu_solve(factors, pivots, right, left=False)
    out = torch.empty(0, dtype=torch.complex128, device="cuda")
    torch.linalg.lu_solve(factors, pivots, right, left=False, out=out)
    assert torch.equal(out.cpu(), want.cpu()) and torch.allclose(out @ matrix, right)


def test_partly_overlapping_write_is_refused() -> None:
    x = torch.arange(6.0, device="cuda")
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].add_(x[:-1])
    with pytest.raises(RuntimeError, match="single memory location|internal overlap"):
        torch.ones(1, device="cuda").expand(4).add_(1)


def test_views_made_by_operators_share_memory_with_their_base() -> None:
    x = torch.zeros(4, 4, device="cuda")
    for view in (x.t(), x[1], x.view(-1), x.unfold(0, 2, 1), x.diagonal(), torch.real(x)):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and view.is_cuda
    x[1].fill_(3)
    assert x.cpu()[1].tolist() == [3.0] * 4


def test_conjugate_and_negative_views_keep_their_memory() -> None:
    x = torch.tensor([1 + 2j, 3 - 4j])
    y = x.cuda().conj()
    gc.collect()
    torch.empty(2, dtype=torch.cfloat, device="cuda").fill_(0)
    assert y.is_conj()
    assert torch.equal((y * 2).cpu(), x.conj() * 2)
    assert torch.equal(y.imag.cpu(), x.conj().imag)


def test_memory_of_results_is_the_devices() -> None:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    x = torch.ones(1024, 1024, device="cuda")
    y = x @ x
    assert torch.cuda.memory_allocated() - before == 2 * 4 * 1024 * 1024
    del x, y
    assert torch.cuda.memory_allocated() == before


def test_error_inside_an_operator_leaves_nothing_behind() -> None:
    before = torch.cuda.memory_allocated()
    for _ in range(5):
        with pytest.raises(RuntimeError):
            torch.linalg.cholesky(-torch.eye(64, device="cuda"))
        with pytest.raises(RuntimeError):
            torch.mm(torch.ones(2, 3, device="cuda"), torch.ones(2, 3, device="cuda"))
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    host = torch.ones(1024, 1024)
    assert torch.cuda.memory_allocated() == before and not host.is_cuda


def test_out_of_memory_inside_an_operator_is_recoverable() -> None:
    x = torch.ones(1 << 20, 1, device="cuda")
    with pytest.raises(torch.cuda.OutOfMemoryError):
        x + torch.ones(1, 1 << 20, device="cuda")
    assert (x + 1).sum().item() == 2 * (1 << 20)


def test_host_operators_of_other_threads_stay_on_the_host() -> None:
    stop = threading.Event()

    def host_work() -> None:
        while not stop.is_set():
            torch.ones(256, 256).sum()

    thread = threading.Thread(target=host_work)
    thread.start()
    try:
        before = torch.cuda.memory_allocated()
        x = torch.ones(256, 256, device="cuda")
        for _ in range(200):
            y = x @ x
        del x, y
        assert torch.cuda.memory_allocated() == before
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_low_precision_is_computed_wider_and_rounded_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(32, 64).to(dtype), torch.randn(64, 32).to(dtype)
    got = torch.mm(a.cuda(), b.cuda()).cpu()
    assert torch.equal(got, torch.mm(a.float(), b.float()).to(dtype))


def test_sync_debug_mode_speaks_up_for_synchronising_operators() -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        for synchronising in (
            lambda: x.nonzero(),
            lambda: x.cpu(),
            lambda: x.item() if x.numel() == 1 else x[0].item(),
        ):
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                synchronising()
        x.add_(1)
    finally:
        torch.cuda.set_sync_debug_mode("default")


# In a process of its own: what listens cannot be switched off again.
LISTENERS = """
import torch
from torch.cuda import _gpu_trace
x = torch.ones(4, device="cuda")
heard = []
torch._C._activate_gpu_trace()
_gpu_trace.register_callback_for_stream_synchronization(heard.append)
for wait in (lambda: x.nonzero(), lambda: x.cpu(), lambda: x[0].item()):
    heard.clear()
    wait()
    print(heard)
heard.clear()
x.add_(1)
print(heard)
"""


@release_facts.wants("listeners_by_name")
def test_listeners_hear_of_operators_that_wait() -> None:
    done = subprocess.run([sys.executable, "-c", LISTENERS], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["[0]", "[0]", "[0]", "[]"], done.stdout + done.stderr


def test_fourier_transform_takes_an_expanded_gradient() -> None:
    x = torch.randn(6, dtype=torch.cfloat, device="cuda", requires_grad=True)
    torch.fft.irfft(x).sum().backward()
    weights = torch.ones(10, device="cuda", requires_grad=False)
    y = x.detach().clone().requires_grad_()
    (torch.fft.irfft(y) * weights).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_temporary_arguments_live_as_long_as_the_operator() -> None:
    # The conjugate fallback hands the operator a temporary that nobody else holds.
    torch.manual_seed(0)
    x = torch.randn(5, 6, 7, dtype=torch.cfloat)
    assert torch.equal(torch.fft.hfft(x.cuda()).cpu(), torch.fft.hfft(x))
