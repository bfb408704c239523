"""CUDA graphs: captured work has not happened, and a launch computes to the bit what the same work without one does."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from typing import Callable, Dict, List, Tuple

import pytest
import torch
from torch import nn
from torch.nn import functional as F


def warm_up(function: Callable[[], object]) -> None:
    """Run it once on a stream of its own, as upstream's documentation asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.current_stream().wait_stream(stream)


def captured(function: Callable[[], object]) -> Tuple[torch.cuda.CUDAGraph, object]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph, result


def indices() -> torch.Tensor:
    return torch.arange(2, -1, -1, device="cuda")


def views(x: torch.Tensor) -> torch.Tensor:
    a, b = x.t().chunk(2)
    return torch.cat([b, a]).reshape(-1)[::3].unsqueeze(0).expand(2, -1) + 1


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 1].mul_(3)
    y.t_().add_(1).clamp_(min=0)
    torch._foreach_add_([y, y[0]], 2.0)
    return y


FUNCTIONS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "arithmetic": lambda x: (x * 2 + 1).sin() / (x.abs() + 1),
    "matrix product": lambda x: x @ x.t(),
    "reduction": lambda x: torch.cat([x.sum(0), x.var(0), x.amax(0), x.cumsum(0)[-1]]),
    "softmax": lambda x: F.log_softmax(x, -1),
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "convolution": lambda x: F.conv2d(x.view(1, 1, 4, 8), torch.ones(2, 1, 3, 3, device="cuda"), padding=1),
    "sort": lambda x: torch.stack([x.sort(-1)[0], x.topk(8).values]),
    "half": lambda x: (x.half() @ x.half().t()).float(),
    "linear algebra": lambda x: torch.linalg.solve(x @ x.t() + 4 * torch.eye(4, device="cuda"), x),
    "embedding": lambda x: F.embedding(indices(), x),
    "scatter": lambda x: (
        torch.zeros(6, 8, device="cuda").index_put_((indices(),), x[:3]).index_add(0, indices(), x[1:])
    ),
    "factories": lambda x: torch.full_like(x, 3) + torch.arange(8, device="cuda") + torch.zeros(4, 8, device="cuda"),
    "views": views,
    "in place": in_place,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_launch_computes_what_the_function_computes(name: str) -> None:
    function = FUNCTIONS[name]
    x = torch.randn(4, 8, device="cuda")
    function(x)
    graph, result = captured(lambda: function(x))
    for _ in range(2):
        x.copy_(torch.randn(4, 8))
        graph.replay()
        expected = function(x)
        assert isinstance(result, torch.Tensor) and result.stride() == expected.stride()
        assert torch.equal(result, expected)


def test_captured_work_has_not_happened() -> None:
    layer, norm = nn.Linear(4, 4).cuda(), nn.BatchNorm1d(4).cuda()
    x, count = torch.randn(8, 4, device="cuda"), torch.zeros(3, device="cuda")
    host = torch.zeros(3).pin_memory()
    optimizer = torch.optim.Adam(layer.parameters(), capturable=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        norm(layer(x)).square().sum().backward()
        optimizer.step()
        count.add_(1)
        host.copy_(count, non_blocking=True)

    warm_up(step)
    tensors: List[torch.Tensor] = [*layer.parameters(), *norm.buffers(), count, host]
    tensors += [value for state in optimizer.state.values() for value in state.values()]
    before = [tensor.detach().clone() for tensor in tensors]
    graph, _ = captured(step)
    assert all(torch.equal(now, then) for now, then in zip(tensors, before))
    graph.replay()
    changed = [not torch.equal(now, then) for now, then in zip(tensors, before)]
    assert all(changed), changed
    assert host.tolist() == [2.0] * 3


class Network(nn.Module):
    """A classifier; recurrent or not, with dropout and running statistics."""

    def __init__(self, recurrent: bool) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(16, 16, 2, dropout=0.3, batch_first=True) if recurrent else None
        self.body = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x[:, 0] if self.recurrent is None else self.recurrent(x)[0][:, -1])


@pytest.mark.parametrize("recurrent", [False, True], ids=["plain", "recurrent"])
def test_training_with_a_graph_is_training_without_one(recurrent: bool) -> None:
    def train(with_graph: bool) -> Tuple[List[float], List[torch.Tensor]]:
        torch.manual_seed(1)
        model = Network(recurrent).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, capturable=True)
        x, target = torch.randn(8, 5, 16, device="cuda"), torch.randint(0, 4, (8,), device="cuda")

        def step() -> torch.Tensor:
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            return loss

        warm_up(step)
        optimizer.zero_grad(set_to_none=True)
        losses = []
        graph, loss = captured(step) if with_graph else (None, None)
        for _ in range(4):
            x.copy_(torch.randn(8, 5, 16))
            if graph is None:
                optimizer.zero_grad(set_to_none=True)
                loss = step()
            else:
                graph.replay()
            assert isinstance(loss, torch.Tensor)
            losses.append(loss.item())
        return losses, [tensor.detach().clone() for tensor in (*model.parameters(), *model.buffers())]

    losses, tensors = train(False)
    graph_losses, graph_tensors = train(True)
    assert losses == graph_losses
    assert all(torch.equal(a, b) for a, b in zip(tensors, graph_tensors))


def test_a_launch_draws_the_next_numbers_of_the_generator() -> None:
    graph, numbers = captured(lambda: (torch.rand(4, device="cuda"), torch.randn(4, device="cuda")))
    assert isinstance(numbers, tuple)

    def replayed() -> torch.Tensor:
        graph.replay()
        return torch.cat(numbers).clone()

    torch.manual_seed(3)
    first, second = replayed(), replayed()
    torch.manual_seed(3)
    plain = [torch.cat([torch.rand(4, device="cuda"), torch.randn(4, device="cuda")]) for _ in range(2)]
    assert torch.equal(first, plain[0]) and torch.equal(second, plain[1])
    assert not torch.equal(first, second)


def test_attention_with_dropout_drops_the_same_in_both_directions() -> None:
    q = torch.randn(1, 2, 16, 8, device="cuda", requires_grad=True)

    def both() -> Tuple[torch.Tensor, torch.Tensor]:
        out = F.scaled_dot_product_attention(q.half(), q.half(), q.half(), dropout_p=0.5)
        return out, torch.autograd.grad(out.float().square().sum(), q)[0]

    warm_up(both)
    graph, result = captured(both)
    torch.manual_seed(7)
    graph.replay()
    torch.manual_seed(7)
    expected = both()
    assert isinstance(result, tuple) and all(torch.equal(a, b) for a, b in zip(result, expected))


def test_graphed_callables_train_under_autocast() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
    x = torch.randn(4, 8, device="cuda", requires_grad=True)
    with torch.autocast("cuda", cache_enabled=False):
        expected = model(x)
        expected.float().sum().backward()
    # While the old graph lives its gradients go to the default stream, which cannot wait for a capture.
    expected = expected.detach()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = None
    with torch.autocast("cuda", cache_enabled=False):
        graphed = torch.cuda.make_graphed_callables(model, (x,))
        result = graphed(x)
    result.float().sum().backward()
    assert result.dtype == torch.half and torch.equal(result, expected)
    assert all(torch.equal(parameter.grad, grad) for parameter, grad in zip(model.parameters(), gradients))


def test_a_pinned_copy_is_read_at_each_launch_and_a_number_is_taken_at_the_capture() -> None:
    host, x = torch.ones(4).pin_memory(), torch.zeros(4, device="cuda")
    scalar = torch.tensor(2.0)
    graph, y = captured(lambda: x.copy_(host, non_blocking=True) * scalar)
    host.fill_(5)
    scalar.fill_(100)
    graph.replay()
    assert isinstance(y, torch.Tensor) and y.tolist() == [10.0] * 4


# Releases that refuse copies of memory that is not pinned, as the memory may be another's when the graph is launched.
REFUSES_PAGEABLE = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 12)
PAGEABLE = "during CUDA graph capture unless the CPU tensor is pinned"


@pytest.mark.parametrize("direction", ["to the device", "new on the device", "to the host"])
def test_a_copy_of_memory_that_is_not_pinned_is_refused_by_later_releases(direction: str) -> None:
    host, x = torch.arange(8.0), torch.zeros(8, device="cuda")
    copies = {
        "to the device": lambda: x.copy_(host, non_blocking=True),
        "new on the device": lambda: x.add_(host.to("cuda", non_blocking=True)),
        "to the host": lambda: host.copy_(x, non_blocking=True),
    }
    if not REFUSES_PAGEABLE:
        graph, _ = captured(copies[direction])
        graph.replay()
        return
    with pytest.raises(RuntimeError, match=PAGEABLE):
        captured(copies[direction])
    # The device is as it was, and takes a capture.
    graph, _ = captured(lambda: x.copy_(host.pin_memory(), non_blocking=True))
    assert torch.equal(x.cpu(), torch.zeros(8))


def test_a_graph_gives_its_memory_back() -> None:
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    graph, y = captured(lambda: torch.ones(1 << 20, device="cuda") * 2)
    assert torch.cuda.memory_reserved() > before
    graph.replay()
    del y, graph
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before


def test_a_launch_that_fails_says_why_and_leaves_the_device_usable() -> None:
    table, index = torch.randn(4, 2, device="cuda"), torch.tensor([0, 1], device="cuda")
    graph, rows = captured(lambda: F.embedding(index, table))
    graph.replay()
    index.fill_(9)
    with pytest.raises(RuntimeError, match="index out of range"):
        graph.replay()
    index.fill_(2)
    graph.replay()
    assert isinstance(rows, torch.Tensor) and torch.equal(rows, table[2].expand(2, 2))


REFUSED = """
import os, sys, threading, torch

def other_thread():
    def work():
        with torch.cuda.stream(stream):
            try:
                x + 1
            except RuntimeError as error:
                print("thread:", error)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

cases = {
    "item": lambda: x.sum().item(),
    "nonzero": lambda: x.nonzero(),
    "mask": lambda: x[x > 0],
    "to host": lambda: x.cpu(),
    "from host": lambda: torch.ones(3).cuda(),
    "synchronize": lambda: torch.cuda.synchronize(),
    "sparse": lambda: torch.eye(3, device="cuda").to_sparse(),
    "thread": other_thread,
}
for name, work in cases.items():
    sys.stdout.flush()
    if os.fork() != 0:  # a failed capture leaves upstream's allocator in it
        os.wait()
        continue
    x, y, stream = torch.ones(3, device="cuda"), torch.zeros(3, device="cuda"), torch.cuda.Stream()
    print("== " + name)
    with torch.cuda.stream(stream):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        y.add_(1)
        try:
            work()
        except RuntimeError as problem:
            print("work:", problem)
        try:
            graph.capture_end()
        except RuntimeError as problem:
            print("end:", problem)
    print("after:", (x + 1).tolist(), y.tolist(), flush=True)
    os._exit(0)
"""
CANNOT = "operation not permitted when stream is capturing"
INVALID = "operation failed due to a previous error during capture"


@pytest.fixture(scope="module")
def refusals() -> Dict[str, str]:
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {part.split("\n")[0]: part + done.stderr for part in done.stdout.split("== ")[1:]}


@pytest.mark.parametrize("case", ["item", "nonzero", "mask", "to host", "from host", "synchronize", "sparse"])
def test_what_waits_for_the_device_ends_the_capture_in_upstreams_words(refusals: Dict[str, str], case: str) -> None:
    said = refusals[case]
    if REFUSES_PAGEABLE and case in ("to host", "from host"):
        # Refused before CUDA hears of it, so that the capture goes on.
        assert PAGEABLE in said and "end:" not in said, said
    else:
        assert f"work: CUDA error: {CANNOT}" in said and f"end: CUDA error: {INVALID}" in said, said
    assert "after: [2.0, 2.0, 2.0] [0.0, 0.0, 0.0]" in said, said


def test_an_operator_of_a_thread_that_takes_no_part_is_refused_by_name(refusals: Dict[str, str]) -> None:
    said = refusals["thread"]
    assert "thread: an operator came to a stream that is captured" in said and f"end: CUDA error: {INVALID}" in said
    assert "after: [2.0, 2.0, 2.0] [0.0, 0.0, 0.0]" in said, said


def test_another_thread_works_on_its_own_stream_meanwhile() -> None:
    x, results = torch.ones(1000, device="cuda"), []
    # One behind the other: PyTorch has 32 in turns, and the one that graphs are captured on by default is one of them.
    captured, own = torch.cuda.Stream(), torch.cuda.Stream()
    stop = threading.Event()

    def work() -> None:
        with torch.cuda.stream(own):
            while not stop.is_set():
                results.append((x * 2).sum())

    graph = torch.cuda.CUDAGraph()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        with torch.cuda.graph(graph, stream=captured, capture_error_mode="thread_local"):
            y = x + 1
            time.sleep(0.05)
    finally:
        stop.set()
        thread.join()
    graph.replay()
    assert torch.equal(y, x + 1) and results and all(result.item() == 2000 for result in results)


def test_sleep_keeps_the_stream_busy_for_that_many_cycles() -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.cuda._sleep(100_000_000)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 20


def test_an_input_that_is_given_up_during_the_capture_is_there_at_the_first_launch() -> None:
    """Captured operators run here, and must not write their results into the memory that it had."""
    wanted = torch.rand(64, 64)
    first, graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        given = torch.zeros(64, 64, device="cuda")  # of the pool, as torch.compile's static inputs are
    given.copy_(wanted)
    with torch.cuda.graph(graph, pool=first.pool()):
        result = given * 2
        del given
        for _ in range(4):
            result = result + 1
    graph.replay()
    torch.testing.assert_close(result.cpu(), wanted * 2 + 4)


def test_memory_that_a_checkpoint_of_a_graph_gives_back_is_the_allocators() -> None:
    """As torch.compile's graph trees do it: the memory of a graph's result gets an owner again, and is freed by it."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = torch.ones(1000, device="cuda")
    state = torch._C._cuda_getCheckpointState(0, graph.pool())
    place, before = result.data_ptr(), torch.cuda.memory_allocated()
    del result
    assert torch.cuda.memory_allocated() < before
    storage = torch._C._construct_storage_from_data_pointer(place, torch.device("cuda", 0), 4000)
    torch._C._cuda_setCheckpointPoolState(0, state, [], [storage._cdata])
    assert torch._C._has_Standard_Deleter(storage._cdata)
    assert torch.cuda.memory_allocated() == before
    del storage
    assert torch.cuda.memory_allocated() < before


@pytest.mark.filterwarnings("ignore")
def test_compiled_training_with_graphs_is_eager_training() -> None:
    # Torch 2.1 asks for this between two backends, and fails without it.
    torch._dynamo.reset()
    losses = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        forward = torch.compile(model, backend="cudagraphs") if compiled else model
        x = torch.rand(4, 8).cuda()
        losses.append([])
        for _ in range(5):
            optimizer.zero_grad()
            loss = forward(x).square().mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
