"""Replayed allocations (csrc/fast/AllocationReplay.h) are seen in the time that operators take, and nowhere else."""

from __future__ import annotations

import collections
import ctypes
import json
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
from typing import Any, Callable, Deque, Dict, List

import pytest
import torch

FAST_PART = "ALLOCATOR"
SIZES = [1, 64, 512, 513, 4000, 40000, 1 << 20, (1 << 20) + 1, 3 << 20, 11 << 20]


def replays() -> int:
    """How many requests and frees the process has replayed."""
    library = ctypes.CDLL(str(pathlib.Path(torch.__file__).with_name("lib") / "libmacatorch.so"))
    library.macatorch_replayed_allocations.restype = ctypes.c_uint64
    return int(library.macatorch_replayed_allocations())


def look() -> Dict[str, Any]:
    """Everything that the allocator says of itself, without addresses."""
    segments = []
    for segment in torch.cuda.memory_snapshot():
        blocks = []
        for block in segment["blocks"]:
            inactive = block["state"] == "inactive"  # its requested size is that of any earlier use
            blocks.append([block["size"], block["state"], 0 if inactive else block["requested_size"]])
        keys = ("device", "total_size", "allocated_size", "active_size", "requested_size", "segment_type")
        segments.append([*(segment[key] for key in keys), segment["stream"] != 0, blocks])
    statistics = [torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count())]
    return {"statistics": statistics, "segments": sorted(segments)}


class Program:
    """Random work of the kinds that programs have: loops over the same requests, and now and then something else."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.live: Dict[int, torch.Tensor] = {}
        self.seen: List[Dict[str, Any]] = []
        self.names = 0

    def request(self, size: int) -> int:
        self.names += 1
        self.live[self.names] = torch.empty(size, dtype=torch.uint8, device="cuda")
        return self.names

    def body(self) -> List[Any]:
        """Steps that leave as many blocks as there were: sizes to request, and which of the newest to free."""
        steps: List[Any] = []
        depth = 0
        for _ in range(self.random.randrange(1, 12)):
            if depth and self.random.random() < 0.5:
                steps.append(("free", self.random.randrange(depth)))
                depth -= 1
            else:
                steps.append(("request", self.random.choice(SIZES)))
                depth += 1
        return [*steps, *[("free", self.random.randrange(left)) for left in range(depth, 0, -1)]]

    def loop(self) -> None:
        steps = self.body()
        newest: List[int] = []
        for _ in range(self.random.randrange(2, 9)):
            for kind, value in steps:
                if kind == "request":
                    newest.append(self.request(value))
                else:
                    del self.live[newest.pop(value)]

    def keep(self) -> None:
        self.request(self.random.choice(SIZES))

    def drop(self) -> None:
        if self.live:
            del self.live[self.random.choice(list(self.live))]

    def drop_elsewhere(self) -> None:
        thread = threading.Thread(target=self.drop)
        thread.start()
        thread.join()

    def pingpong(self) -> None:
        x = torch.ones(self.random.choice(SIZES[:4]), device="cuda")
        for _ in range(self.random.randrange(2, 20)):
            x = x + 1

    def other_stream(self) -> None:
        with torch.cuda.stream(STREAM()):
            self.loop()

    def other_device(self) -> None:
        with torch.cuda.device(1):
            self.loop()

    def operators(self) -> None:
        a = torch.ones(4, 4, device="cuda")
        for _ in range(self.random.randrange(2, 6)):
            torch.where(a > 0, a, a * 2).sort(-1)
            assert (a + a).sum().item() == 32

    def out_of_memory(self) -> None:
        with pytest.raises(torch.cuda.OutOfMemoryError):
            torch.empty(1 << 45, dtype=torch.uint8, device="cuda")

    def run(self, steps: int) -> List[Dict[str, Any]]:
        work: List[Callable[[], None]] = [self.loop] * 8 + [self.pingpong, self.keep, self.operators] * 3
        work += [self.drop] * 4 + [self.drop_elsewhere, self.other_stream, self.other_device, self.out_of_memory]
        work += [
            torch.cuda.empty_cache,
            torch.cuda.reset_peak_memory_stats,
            torch.cuda.reset_accumulated_memory_stats,
            torch.cuda.memory_allocated,
            lambda: torch.cuda.set_per_process_memory_fraction(0.9),
            lambda: self.seen.append(look()),
            lambda: self.seen.append(look()),
        ]
        for _ in range(steps):
            self.random.choice(work)()
        self.seen.append(look())
        return self.seen


def STREAM() -> torch.cuda.Stream:
    return STREAMS[torch.cuda.current_device()]


STREAMS: Dict[int, torch.cuda.Stream] = collections.defaultdict(torch.cuda.Stream)


def random_programs() -> List[Any]:
    return [Program(seed).run(60) for seed in range(int(os.environ.get("MACA_TEST_SEEDS", "16")))]


def plain_work(seed: int) -> Dict[str, Any]:
    program = Program(seed)
    for _ in range(5):
        program.loop()
        program.pingpong()
        program.keep()
    return look()


def watched_programs() -> List[Any]:
    """What upstream decides by other rules, each followed by more of the plain work."""
    seen: List[Any] = [plain_work(0)]
    torch.cuda.memory._record_memory_history()
    seen.append(plain_work(1))
    traces = torch.cuda.memory._snapshot()["device_traces"]
    seen.append([[[entry["action"], entry["size"]] for entry in trace] for trace in traces])
    torch.cuda.memory._record_memory_history(enabled=None)
    seen.append(plain_work(2))
    torch.cuda.reset_peak_memory_stats()
    x = torch.ones(1000, device="cuda")
    x.record_stream(STREAM())
    del x
    seen += [look(), plain_work(3)]
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.ones(1000, device="cuda")
        seen.append(plain_work(4))
    del x
    return [*seen, plain_work(5)]


def recorded_stream() -> List[Any]:
    seen = [plain_work(0)]
    x = torch.ones(1000, device="cuda")
    x.record_stream(STREAM())
    del x
    return [*seen, look(), plain_work(1)]


def pools() -> List[Any]:
    seen = [plain_work(0)]
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        seen.append(plain_work(1))
    return [*seen, plain_work(2)]


def unrepeated() -> List[Any]:
    """More new steps than it pays to learn, and plain work while and after learning has stopped."""
    seen: List[Any] = [plain_work(0)]
    kept = [torch.empty(size, device="cuda") for size in range(1, 4000)]
    seen.append(look())
    kept.clear()
    seen.append(plain_work(1))
    for _ in range(9000):
        torch.empty(5, device="cuda")
    return [*seen, look(), plain_work(2)]


def profiled() -> List[Any]:
    a = torch.ones(4, device="cuda")
    for _ in range(5):
        a.exp() + a.sin()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        for _ in range(5):
            a.exp() + a.sin()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    return [event.nbytes() for event in events]


def changed_settings() -> List[Any]:
    seen = []
    for settings in ("roundup_power2_divisions:4", "garbage_collection_threshold:0.5", "max_split_size_mb:30"):
        seen.append(plain_work(0))
        torch.cuda.memory._set_allocator_settings(settings)
        seen.append(plain_work(0))
    return seen


def threads() -> List[Any]:
    """Threads that request and free at once, blocks that another thread frees: where contents mix.

    How often a known state comes back depends on how the threads meet, so they work until some replays were among it.
    """
    problems: List[str] = []
    handed: Deque[torch.Tensor] = collections.deque(maxlen=64)

    def work(number: int) -> None:
        for turn in range(300):
            tensors = [torch.full((16,), float(number * 1000 + i), device="cuda") for i in range(turn % 7)]
            for i, tensor in enumerate(tensors):
                if not bool((tensor == number * 1000 + i).all()):
                    problems.append(f"thread {number}, turn {turn}")
            handed.extend(tensors[::2])

    before = replays()
    for _ in range(20):
        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if replays() - before > 1000 or os.environ.get("MACA_ALLOCATOR_CACHE") == "0":
            break
    return problems


PROGRAMS: Dict[str, Callable[[], List[Any]]] = {
    program.__name__: program
    for program in (
        random_programs,
        watched_programs,
        recorded_stream,
        pools,
        unrepeated,
        profiled,
        changed_settings,
        threads,
    )
}


def outcome(name: str) -> Dict[str, Any]:
    return {"seen": PROGRAMS[name](), "replays": replays()}


def outcomes(**variables: str) -> Dict[str, Any]:
    """What each program sees, in a process of its own. They are forked from one that has imported torch."""
    environment = {**os.environ, "MACA_DEVICE_COUNT": "2", "OMP_NUM_THREADS": "1", **variables}
    with tempfile.NamedTemporaryFile("r") as file:
        subprocess.run([sys.executable, "-W", "ignore", __file__, file.name], env=environment, check=True)
        found: Dict[str, Any] = json.load(file)
    return found


@pytest.fixture(scope="module")
def alone() -> Dict[str, Any]:
    return outcomes(MACA_ALLOCATOR_CACHE="0")


@pytest.fixture(scope="module")
def replayed() -> Dict[str, Any]:
    return outcomes()


@pytest.mark.parametrize("program", PROGRAMS)
def test_statistics_and_placement_are_those_of_upstreams_allocator_alone(
    program: str, alone: Dict[str, Any], replayed: Dict[str, Any]
) -> None:
    expected, found = alone[program], replayed[program]
    assert expected["replays"] == 0
    assert found["replays"] > (1000 if program == "random_programs" else 10)
    assert len(expected["seen"]) == len(found["seen"])
    for one, other in zip(expected["seen"], found["seen"]):
        assert one == other


@pytest.mark.parametrize(
    "settings",
    [{"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}]
    + [{"PYTORCH_CUDA_ALLOC_CONF": value} for value in ("backend:cudaMallocAsync", "garbage_collection_threshold:0.6")],
    ids=lambda settings: next(iter(settings.values())),
)
def test_nothing_is_replayed_with_other_settings(settings: Dict[str, str]) -> None:
    code = "import test_allocator_cache as t, torch; [torch.ones(3).cuda() for _ in range(9)]; print(t.replays())"
    environment = {**os.environ, **settings, "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE)
    assert int(done.stdout) == 0


UNCACHED = """
import torch
memory = torch.cuda.memory
before = torch.arange(4.0, device="cuda")
memory.caching_allocator_enable(False)
doubled, empty, block = before * 2, torch.empty(1 << 20, device="cuda"), memory.caching_allocator_alloc(1000)
kept = doubled + 1
memory.caching_allocator_delete(block)  # as with upstream, before the cache is there again
memory.caching_allocator_enable(True)
del doubled, empty, before
after = kept + 1
del kept
print(after.tolist(), torch.ones(3, device="cuda").sum().item())
"""


def test_what_was_taken_without_the_cache_is_freed_with_it() -> None:
    done = subprocess.run([sys.executable, "-c", UNCACHED], stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[2.0, 4.0, 6.0, 8.0] 3.0")


def test_a_block_is_given_to_one_tensor_at_a_time(replayed: Dict[str, Any]) -> None:
    assert replayed["threads"]["replays"] > 10
    assert replayed["threads"]["seen"] == []


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        found = dict(zip(PROGRAMS, pool.map(outcome, PROGRAMS, chunksize=1)))
    pathlib.Path(sys.argv[1]).write_text(json.dumps(found))
