"""An operator that fails or is interrupted leaves its inputs, the allocator and the device as they were."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import subprocess
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
import torch
from torch.nn import functional as F

Case = Callable[[Dict[str, torch.Tensor]], Any]
MIB = 1 << 20


@pytest.fixture
def all_memory_after() -> Iterator[None]:
    gc.collect()
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


def fill_memory() -> List[torch.Tensor]:
    """Tensors that take what there is: from now on only small ones find a place."""
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 4 * MIB) / total)
    fillers = []
    with contextlib.suppress(torch.cuda.OutOfMemoryError):
        while True:
            fillers.append(torch.empty(3 * MIB // 2, dtype=torch.uint8, device="cuda"))
    return fillers


def inputs() -> Dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(800, 800, generator=generator).cuda()  # 2.4 MiB
    return {"x": x, "half": x.half(), "image": x.reshape(1, 4, 400, 400), "index": x.argsort(1)}


# The result does not fit, something that the kernel needs on the way does not fit, or the wider copy of a dtype.
OUT_OF_MEMORY: Dict[str, Case] = {
    "result": lambda t: t["x"] + 1,
    "boxed result": lambda t: torch.addr(t["x"], t["x"][0], t["x"][1]),
    "product": lambda t: t["x"] @ t["x"],
    "wider product in place": lambda t: t["half"].addmm_(t["half"], t["half"]),
    "sort": lambda t: t["x"].sort(1),
    "convolution": lambda t: F.conv2d(t["image"], torch.ones(8, 4, 3, 3, device="cuda")),
    "several results": lambda t: torch.native_dropout(t["x"], 0.5, True),
    "list": lambda t: torch._foreach_add([t["half"], t["x"]], 1),
    "random": lambda t: torch.randn(800, 800, device="cuda"),
    "new size of out": lambda t: torch.add(t["x"], 1, out=torch.empty(0, device="cuda")),
    "dense of sparse": lambda t: torch.sparse_coo_tensor([[1], [2]], [1.0], (800, 800)).cuda().to_dense(),
}


def alive(allocated: int) -> None:
    """Operators run, on both sides, and each side allocates its own memory."""
    assert torch.cuda.memory_allocated() == allocated
    host = torch.ones(300, 300)
    assert torch.cuda.memory_allocated() == allocated and not host.is_cuda
    device = torch.ones(30, device="cuda")
    assert (device * 2 + device).sum().item() == 90
    assert torch.cuda.memory_allocated() > allocated


@pytest.mark.parametrize("name", OUT_OF_MEMORY)
def test_out_of_memory_inside_an_operator_changes_nothing(name: str, all_memory_after: None) -> None:
    tensors = inputs()
    before = {key: tensor.cpu() for key, tensor in tensors.items()}
    fillers = fill_memory()
    allocated = torch.cuda.memory_allocated()
    for _ in range(2):
        with pytest.raises(torch.cuda.OutOfMemoryError, match="Tried to allocate"):
            OUT_OF_MEMORY[name](tensors)
        gc.collect()
        alive(allocated)
    for key, tensor in tensors.items():
        assert tensor.is_cuda and torch.equal(tensor.cpu(), before[key]), key
    del fillers
    torch.cuda.set_per_process_memory_fraction(1.0)
    OUT_OF_MEMORY[name](tensors)


def test_out_of_memory_in_a_backward_leaves_the_forward_usable(all_memory_after: None) -> None:
    x = torch.randn(800, 800, device="cuda", requires_grad=True)
    loss = (x.exp() * x.sin()).sum()
    fillers = fill_memory()
    with pytest.raises(torch.cuda.OutOfMemoryError):
        loss.backward(retain_graph=True)
    gc.collect()
    del fillers
    torch.cuda.set_per_process_memory_fraction(1.0)
    x.grad = None
    loss.backward()
    y = x.detach().cpu().requires_grad_()
    (y.exp() * y.sin()).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), y.grad)


# Kernels of the CPU that raise in the middle: with aliases bound, memory allocated, some of the work done.
EXCEPTIONS: Dict[str, Tuple[Case, type, str]] = {
    "index": (lambda t: t["x"][torch.tensor([1, 5000], device="cuda")], IndexError, "out of bounds"),
    "gather": (lambda t: t["x"].gather(1, t["index"] + 900), RuntimeError, "out of bounds"),
    "embedding": (lambda t: F.embedding(t["index"] + 900, t["x"]), IndexError, "out of range"),
    "in place": (
        lambda t: t["x"].index_add_(0, t["index"][0, :300] + 900, t["x"].clone()),
        (IndexError, RuntimeError),
        "out of|range",
    ),
    "take": (lambda t: torch.take(t["x"], t["index"] + 10**9), (IndexError, RuntimeError), "out of range"),
    "singular": (lambda t: torch.linalg.inv(torch.zeros(300, 300, device="cuda")), RuntimeError, "singular"),
    "not positive": (lambda t: torch.linalg.cholesky(-t["x"] @ t["x"].T), RuntimeError, "not positive-definite"),
    "loss": (lambda t: F.nll_loss(t["x"], t["index"][0, :300] + 900), (IndexError, RuntimeError), "out of bounds"),
    "sampling": (lambda t: torch.multinomial(-t["x"].abs(), 3), RuntimeError, "probability tensor"),
    "list": (lambda t: torch._foreach_add([t["x"]], [t["x"], t["x"]]), RuntimeError, "same number of tensors|length"),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_inside_a_kernel_leaves_nothing_behind(name: str) -> None:
    run, kind, words = EXCEPTIONS[name]
    gc.collect()
    baseline = torch.cuda.memory_allocated()
    tensors = {key: tensor[:300].contiguous() for key, tensor in inputs().items() if key != "image"}
    gc.collect()
    allocated = torch.cuda.memory_allocated()
    storages = {key: tensor.untyped_storage().data_ptr() for key, tensor in tensors.items()}
    count = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for _ in range(2):
            with pytest.raises(kind, match=words):
                run(tensors)
            gc.collect()
            alive(allocated)
    finally:
        torch.set_num_threads(count)
    for key, tensor in tensors.items():
        assert tensor.untyped_storage().data_ptr() == storages[key] and tensor.is_cuda
    # A header that had kept the memory would show here.
    del tensors, tensor
    gc.collect()
    assert torch.cuda.memory_allocated() == baseline


INTERRUPTED = """
import os, signal, threading, time
import torch

x = torch.ones(1000, 1000, device="cuda", dtype=torch.float64)
x @ x
allocated = torch.cuda.memory_allocated()
sent = []

def interrupt():
    time.sleep(0.05)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

started = time.monotonic()
threading.Thread(target=interrupt).start()
try:
    for _ in range(2000):
        y = x @ x
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    ended = time.monotonic()
y = None
assert started < sent[0] < ended
assert torch.cuda.memory_allocated() == allocated, "memory was lost"
host = torch.ones(400, 400)
assert torch.cuda.memory_allocated() == allocated, "the host allocates on the device"
z = x @ x
assert z.is_cuda and bool((z == 1000).all())
torch.cuda.synchronize()
print("alive", torch.rand(1, device="cuda").is_cuda)
"""


def test_an_interrupt_in_a_long_operator_is_a_keyboard_interrupt() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert result.returncode == 0 and result.stdout.strip() == "alive True", result.stdout


SETTINGS = {
    "garbage:1": "Unrecognized",
    "max_split_size_mb:abc": "stoi|stoull",
    "max_split_size_mb:1": "max_split_size",
    "expandable_segments:maybe": "True|False",
    "roundup_power2_divisions:3": "power of 2|power-of-2",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_bad_allocator_settings_are_an_error_of_the_first_use(setting: str) -> None:
    program = (
        "import torch\n"
        "print('imported', torch.ones(2).sum().item())\n"
        "try:\n"
        "    torch.ones(2).cuda()\n"
        "    print('no error')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, ' '.join(str(error).split())[:300])\n"
    )
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": setting}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    first, error = done.stdout.splitlines()
    assert first == "imported 2.0"
    assert re.search(f"Error.*({SETTINGS[setting]})", error), done.stdout
