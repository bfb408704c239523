"""What the device's checks and the profiler cost: a training step in each beside the same step in neither. And what an
event and a stream that waits cost.

python tests/benchmarks/device_modes.py [--rounds N] [--json FILE]

The checks are chosen when a process starts, so each round runs a process for each, in turns. Times are the processor's,
of one thread, so that a busy machine does not change them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Callable, Dict, List

import torch
from torch import nn

MODES: Dict[str, Dict[str, str]] = {
    "neither": {},
    "profiled": {},
    "MACA_ASYNC=late": {"MACA_ASYNC": "late"},
    "MACA_CHECK=memory": {"MACA_CHECK": "memory"},
}
WARM, STEPS = 3, 12


def convolutions() -> Callable[[], object]:
    layers: List[nn.Module] = []
    for channels, following in ((3, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(channels, following, 3, padding=1), nn.BatchNorm2d(following), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10)).cuda()
    return training(model, torch.randn(32, 3, 32, 32).pin_memory())


def attention() -> Callable[[], object]:
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    return training(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda(), torch.randn(8, 64, 128))


WORKS = {"convolutions": convolutions, "attention": attention}


def training(model: nn.Module, batch: torch.Tensor) -> Callable[[], object]:
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = model(batch.to("cuda", non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def median_step(name: str, profiled: bool) -> float:
    """Seconds of the processor for a step of the work, in this process."""
    torch.manual_seed(0)
    step = WORKS[name]()
    for _ in range(WARM):
        step()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    profile = torch.profiler.profile(activities=activities) if profiled else None
    times = []
    if profile is not None:
        profile.start()
    for _ in range(STEPS):
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    if profile is not None:
        profile.stop()
    return statistics.median(times)


def runtime_library() -> ctypes.CDLL:
    torch.cuda.init()
    library = next((pathlib.Path(torch.__file__).parents[1] / "mxmaca" / "lib").glob("libmcruntime.so"))
    return ctypes.CDLL(str(library))


def waiting_work() -> float:
    """Microseconds that a fill of 64 bytes takes more on a stream that waits for another's event."""
    runtime, fills = runtime_library(), 20000
    target = torch.empty(64, dtype=torch.uint8, device="cuda")
    before, after = torch.cuda.Stream(), torch.cuda.Stream()
    fill = (ctypes.c_void_p(target.data_ptr()), 0, ctypes.c_size_t(64), ctypes.c_void_p(after.cuda_stream))

    def microseconds(waits: bool) -> float:
        torch.cuda.synchronize()
        if waits:
            with torch.cuda.stream(before):
                torch.cuda._sleep(200_000_000)
            after.wait_stream(before)
        start = time.process_time()
        for _ in range(fills):
            runtime.mcMemsetAsync(*fill)
        # Else the fills would not have waited.
        assert before.query() is not waits
        torch.cuda.synchronize()
        return (time.process_time() - start) / fills * 1e6

    return statistics.median(microseconds(True) - microseconds(False) for _ in range(7))


def event_record() -> float:
    """Nanoseconds of recording an event, less what the call of a function takes."""
    runtime = runtime_library()
    event, calls = ctypes.c_void_p(), 200000
    assert runtime.mcEventCreate(ctypes.byref(event), 0) == 0
    arguments = (event, ctypes.c_void_p(None))

    def nanoseconds(function: Callable[..., int]) -> float:
        start = time.process_time()
        for _ in range(calls):
            function(*arguments)
        return (time.process_time() - start) / calls * 1e9

    rounds = [nanoseconds(runtime.mcEventRecord) - nanoseconds(runtime.mcIsStarted) for _ in range(7)]
    return statistics.median(rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(median_step(arguments.one[0], arguments.one[1] == "profiled"))
        return
    results: Dict[str, float] = {"event record, ns": event_record()}
    print(f"event record: {results['event record, ns']:.0f} ns")
    results["a fill that waits, us"] = waiting_work()
    print(f"a fill on a stream that waits: {results['a fill that waits, us']:.1f} us more")
    for work in WORKS:
        times: Dict[str, List[float]] = {mode: [] for mode in MODES}
        for _ in range(arguments.rounds):
            for mode, variables in MODES.items():
                command = [sys.executable, __file__, "--one", work, mode]
                said = subprocess.check_output(
                    command, env={**os.environ, "OMP_NUM_THREADS": "1", **variables}, text=True
                )
                times[mode].append(float(said.split()[-1]))
        for mode in MODES:
            ratios = [there / here for there, here in zip(times[mode], times["neither"])]
            results[f"{work}, {mode}"] = statistics.median(ratios)
            spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"{work:14} {mode:18} {statistics.median(ratios):5.2f} {spread} {min(times[mode]) * 1e3:8.2f} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
