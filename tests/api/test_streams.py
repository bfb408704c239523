"""Streams with pending work: what a program sees while `torch.cuda._sleep` or a host function holds one back."""

import time
from typing import Callable

import pytest
import torch

CYCLES = 150_000_000  # a tenth of a second of the device's clock


@pytest.fixture()
def side():
    """Return a stream, and leave nothing pending on any."""
    yield torch.cuda.Stream()
    torch.cuda.synchronize()


def held(stream: torch.cuda.Stream) -> None:
    """Hold a stream back for a while."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(CYCLES)
    assert not stream.query()


def test_sleep_holds_back_its_stream_and_not_the_program(side: torch.cuda.Stream) -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(side):
        start.record()
        held(side)
        end.record()
    assert start.query() and not end.query()
    with pytest.raises(RuntimeError, match="not ready|must be completed"):
        start.elapsed_time(end)
    assert torch.cuda.current_stream().query()
    end.synchronize()
    assert end.query() and side.query()
    assert start.elapsed_time(end) >= 90


def test_other_streams_compute_meanwhile(side: torch.cuda.Stream) -> None:
    held(side)
    x = torch.arange(1000, device="cuda")
    assert x.sum().item() == 499500
    assert not side.query()


def test_operators_and_waiting_streams_come_after(side: torch.cuda.Stream) -> None:
    pinned = torch.full((1000,), 3.0).pin_memory()
    x = torch.zeros(1000, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    held(side)
    with torch.cuda.stream(side):
        x.copy_(pinned, non_blocking=True)
        assert not side.query()  # the copy has not waited
    torch.cuda.current_stream().wait_stream(side)
    assert not torch.cuda.current_stream().query()
    assert (x + 1).sum().item() == 4000
    assert side.query()


@pytest.mark.parametrize("direction", ["to the host", "on the device"])
def test_a_copy_is_queued_and_an_event_says_when_it_is_done(side: torch.cuda.Stream, direction: str) -> None:
    source = torch.arange(64, device="cuda")
    target = torch.zeros(64, dtype=torch.int64)
    target = target.pin_memory() if direction == "to the host" else target.cuda()
    held(side)
    with torch.cuda.stream(side):
        target.copy_(source, non_blocking=True)
        done = side.record_event()
    assert not done.query()
    if direction == "to the host":
        assert target.sum() == 0
    done.synchronize()
    assert torch.equal(target.cpu(), source.cpu())


def test_pinned_memory_is_not_used_again_before_its_copy_is_done() -> None:
    pinned = torch.ones(1).pin_memory()
    address = pinned.data_ptr()
    target = torch.zeros(1, device="cuda")
    held(torch.cuda.current_stream())
    target.copy_(pinned, non_blocking=True)
    del pinned
    assert torch.ones(1).pin_memory().data_ptr() != address
    assert target.item() == 1
    assert torch.ones(1).pin_memory().data_ptr() == address


def test_recorded_memory_is_not_used_again_before_the_stream_is_done(side: torch.cuda.Stream) -> None:
    with torch.cuda.stream(side):
        x = torch.ones(4, device="cuda")
    address = x.data_ptr()
    current = torch.cuda.current_stream()
    current.wait_stream(side)
    x.record_stream(current)
    result = torch.zeros(4, device="cuda")
    held(current)
    result.copy_(x)
    del x
    with torch.cuda.stream(side):
        assert torch.empty(4, device="cuda").data_ptr() != address
    assert result.tolist() == [1, 1, 1, 1]
    current.synchronize()
    with torch.cuda.stream(side):
        assert torch.empty(4, device="cuda").data_ptr() == address


def test_a_graph_is_launched_behind_what_is_pending(side: torch.cuda.Stream) -> None:
    x = torch.zeros(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 1
    first = torch.full((8,), 5.0).pin_memory()
    held(side)
    with torch.cuda.stream(side):
        x.copy_(first, non_blocking=True)
        graph.replay()
        graph.replay()
    side.synchronize()
    assert x.tolist() == [7] * 8


def test_a_graph_with_a_sleep_does_not_wait(side: torch.cuda.Stream) -> None:
    x = torch.zeros(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.cuda._sleep(CYCLES)
        x += 1
    graph.replay()
    assert not torch.cuda.current_stream().query()
    assert x.tolist() == [1] * 8


def test_backward_runs_on_the_streams_of_forward(side: torch.cuda.Stream) -> None:
    x = torch.ones(100, device="cuda", requires_grad=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        held(side)
        y = (x * 3).sum()
    torch.cuda.current_stream().wait_stream(side)
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [3] * 100


def test_synchronize_waits_for_every_stream() -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    for stream in streams:
        held(stream)
    begin = time.monotonic()
    torch.cuda.synchronize()
    assert all(stream.query() for stream in streams)
    assert time.monotonic() - begin < 30


def test_a_process_ends_while_its_streams_are_held(script: Callable[..., str]) -> None:
    code = """
        import torch
        torch.cuda._sleep(600_000_000_000)
        print(torch.cuda.current_stream().query())
    """
    assert script(code) == "False"
