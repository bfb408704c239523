"""Captures that fail or are given up leave the process as it was: streams, allocator, generator; and many at once."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import List

import pytest
import release_facts
import torch

PROGRAM = """
import gc, sys, threading, time, torch

x = torch.ones(4, device="cuda")
generator = torch.Generator("cuda").manual_seed(3)
torch.manual_seed(1)
torch.rand(2, device="cuda")

def work():
    y = (x * 2).add_(torch.rand(4, device="cuda"))
    x.mul_(3)
    return y

def fails():
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            work().sum().item()
    except RuntimeError as error:
        assert "CUDA error" in str(error)

def fails_with_a_pool_and_a_generator():
    graph = torch.cuda.CUDAGraph()
    if sys.argv[3] == "registers":
        graph.register_generator_state(generator)
    try:
        with torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle()):
            torch.rand(4, device="cuda", generator=generator)
            work()[0].item()
    except RuntimeError as error:
        assert "CUDA error" in str(error)

def raises():
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            work()
            raise KeyError("the program's own")
    except KeyError:
        pass

def raises_behind_a_failure():
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            try:
                work().nonzero()
            finally:
                raise KeyError("the program's own")
    except RuntimeError as error:
        assert isinstance(error.__context__, KeyError)

def open_capture(graph, stream):
    with torch.cuda.stream(stream):
        graph.capture_begin()
        work()

def thread_ends():
    thread = threading.Thread(target=lambda: open_capture(torch.cuda.CUDAGraph(), torch.cuda.Stream()))
    thread.start()
    thread.join()

graphs = []
def thread_ends_before_its_graph():
    def begin():
        graphs.append(torch.cuda.CUDAGraph())
        open_capture(graphs[0], torch.cuda.Stream())
    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    for _ in range(1000):  # Python has joined the thread a moment before it ends
        try:
            torch.cuda.synchronize()
            break
        except RuntimeError:
            time.sleep(0.01)
    graphs.clear()

def graph_goes():
    open_capture(torch.cuda.CUDAGraph(), torch.cuda.Stream())

def graph_goes_within_its_stream():
    with torch.cuda.stream(torch.cuda.Stream()):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        work()
        del graph
        torch.cuda.current_stream().synchronize()

def stays_open_to_the_end():
    graphs.append(torch.cuda.CUDAGraph())
    open_capture(graphs[0], torch.cuda.Stream())
    sys.exit(0)

def nothing():
    pass

def state():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    memory = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    generator = torch.cuda.get_rng_state().tolist()
    return memory, generator, torch.cuda.current_stream(), torch.cuda.is_current_stream_capturing()

before = state()
for _ in range(int(sys.argv[2])):
    globals()[sys.argv[1]]()
    assert state() == before, (before, state())
assert x.tolist() == [1] * 4
print(torch.rand(3, device="cuda").tolist(), torch.rand(3, device="cuda", generator=generator).tolist())
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = work()
for _ in range(2):
    graph.replay()
    print(x.tolist(), y.tolist(), torch.rand(2, device="cuda").tolist())
copied = torch.ones(1 << 20, device="cuda").cpu()
print(copied.sum().item(), torch.manual_seed(5).initial_seed(), torch.rand(2, device="cuda").tolist())
"""


def run(case: str, times: int = 1) -> str:
    generators = "finds" if release_facts.has("captures_that_find_generators") else "registers"
    command = [sys.executable, "-c", PROGRAM, case, str(times), generators]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def undisturbed() -> str:
    return run("nothing")


@pytest.mark.parametrize(
    "case",
    [
        "fails",
        pytest.param("fails_with_a_pool_and_a_generator", marks=release_facts.wants("generators_of_graphs")),
        "raises",
        "raises_behind_a_failure",
        "thread_ends",
        "thread_ends_before_its_graph",
        "graph_goes",
        "graph_goes_within_its_stream",
    ],
)
def test_a_process_goes_on_behind_a_capture_that_gives_no_graph(undisturbed: str, case: str) -> None:
    assert run(case, times=3) == undisturbed


def test_a_process_ends_within_a_capture(undisturbed: str) -> None:
    assert undisturbed and run("stays_open_to_the_end") == ""


def test_threads_capture_at_the_same_time() -> None:
    threads, rounds = 8, 5
    together = threading.Barrier(threads)
    problems: List[str] = []

    def work(number: int) -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                x = torch.full((64, 64), float(number), device="cuda")
                (x @ x).sum()
                stream.synchronize()
                for turn in range(rounds):
                    graph = torch.cuda.CUDAGraph()
                    together.wait(60)
                    graph.capture_begin(capture_error_mode="thread_local")
                    together.wait(60)
                    y = (x @ x + turn).relu().sum(1)
                    z = y[::2] * 2
                    together.wait(60)
                    graph.capture_end()
                    together.wait(60)
                    for value in (1.0, 2.0):
                        x.fill_(value + number)
                        graph.replay()
                        expected = 2 * 64 * (64 * (value + number) ** 2 + turn)
                        if z.tolist() != [expected] * 32:
                            problems.append(f"thread {number}, turn {turn}: {z.tolist()[:2]}, not {expected}")
                    together.wait(60)
        except Exception as error:  # the test's own thread says it
            problems.append(f"thread {number}: {error}")
            together.abort()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert problems == []
