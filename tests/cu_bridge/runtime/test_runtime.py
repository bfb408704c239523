"""Streams, events, threads, kernels that are not there, functions that do nothing."""

import pathlib
import re
from typing import Callable

import pytest


def test_streams_are_in_order_and_events_monotonic(run_program: Callable[..., object]) -> None:
    run_program("streams.cpp", MACA_DEVICE_COUNT="2")


def test_what_is_held_back_holds_back_its_stream_alone(run_program: Callable[..., object]) -> None:
    run_program("pending.cpp")


def test_nothing_is_lost_between_many_threads_streams_and_devices(run_program: Callable[..., object]) -> None:
    run_program("stress.cpp", arguments=("1",), MACA_DEVICE_COUNT="8")


def test_a_graph_repeats_what_was_captured_and_a_capture_forbids_waiting(
    run_program: Callable[..., object], tmp_path: pathlib.Path
) -> None:
    dot = tmp_path / "graph.dot"
    run_program("graphs.cpp", arguments=(str(dot),))
    edges = re.findall(r"n(\d) -> n(\d);", dot.read_text(encoding="utf-8"))
    assert sorted(edges) == [("0", "1"), ("0", "2"), ("1", "2")]


def test_many_threads_at_once(run_program: Callable[..., object]) -> None:
    run_program("threads.cpp", MACA_DEVICE_COUNT="2")


@pytest.mark.parametrize("way", ["launch", "extended", "cooperative", "driver", "handle"])
def test_launching_device_code_that_is_not_there_fails_stickily_and_by_name(
    run_program: Callable[..., object], way: str
) -> None:
    done = run_program("missing_kernel.cpp", "libcudart", "libcuda", arguments=(way,))
    text = done.stdout  # type: ignore[attr-defined]
    assert "no kernel image is available for execution on the device" in text
    assert "void demo::scale<float>(float*, int)" in text


def test_a_refused_function_names_itself_once(run_program: Callable[..., object]) -> None:
    done = run_program("refused.cpp", "libcublas", "libcudnn", "libcudart")
    lines = done.stderr.splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 1
    assert "cudnnRNNForward" in lines[0] and "CUDNN_STATUS_NOT_SUPPORTED" in lines[0]


def test_collectives_between_the_devices_of_a_process(run_program: Callable[..., object]) -> None:
    run_program("collectives.cpp", "libnccl", "libcudart", MACA_DEVICE_COUNT="3")


def test_a_kernel_with_an_implementation_runs(run_python: Callable[..., str]) -> None:
    code = """
seen = []
@ffi.callback("void(mcDim3, mcDim3, void **, size_t, mcStream_t)")
def kernel(grid, block, arguments, shared, stream):
    seen.append((grid.x, block.x, ffi.cast("int *", arguments[0])[0]))
host = ffi.new("int *")
value = ffi.new("int *", 7)
arguments = ffi.new("void *[]", [value])
runtime.check(lib.mcKernelImplement(host, kernel))
runtime.check(lib.mcLaunchKernel(host, [3, 1, 1], [64, 1, 1], arguments, 0, ffi.NULL))
assert seen == [(3, 64, 7)]
assert lib.mcLaunchKernel(host, [1, 1, 1], [2000, 1, 1], arguments, 0, ffi.NULL) == lib.mcErrorInvalidConfiguration
assert lib.mcStickyError() == 0
"""
    run_python(code)


def test_a_late_copy_comes_before_a_fill_of_the_legacy_stream(run_python: Callable[..., str]) -> None:
    code = """
room = ffi.new("void **")
runtime.check(lib.mcMalloc(room, 4))
block = room[0]
pinned, stream, byte = ffi.new("void **"), ffi.new("mcStream_t *"), ffi.new("unsigned char *")
runtime.check(lib.mcHostAlloc(pinned, 4, 0))
ffi.memmove(pinned[0], b"copy", 4)
runtime.check(lib.mcStreamCreateWithPriority(stream, 0, 0))
runtime.check(lib.mcMemcpyAsync(block, pinned[0], 4, lib.mcMemcpyHostToDevice, stream[0]))
runtime.check(lib.mcMemset(block, 7, 4))
runtime.check(lib.mcDeviceSynchronize())
runtime.check(lib.mcMemcpy(byte, block, 1, lib.mcMemcpyDeviceToHost))
assert byte[0] == 7, byte[0]
"""
    run_python(code, MACA_ASYNC="late")


def test_an_external_wait_outside_of_a_capture_is_for_the_record_that_there_is(run_python: Callable[..., str]) -> None:
    code = """
import threading
gate = threading.Event()
held = ffi.callback("void(void *)", lambda _: gate.wait())
streams, event = [ffi.new("mcStream_t *") for _ in range(2)], ffi.new("mcEvent_t *")
for stream in streams:
    runtime.check(lib.mcStreamCreateWithPriority(stream, 1, 0))
runtime.check(lib.mcEventCreate(event, 2))
captured, other = (stream[0] for stream in streams)
runtime.check(lib.mcStreamBeginCapture(captured, lib.mcCaptureModeRelaxed))
runtime.check(lib.mcLaunchHostFunction(other, held, ffi.NULL))
runtime.check(lib.mcStreamWaitEventExternal(other, event[0]))
runtime.check(lib.mcEventRecord(event[0], other))  # behind the wait, which must not be for this
gate.set()
runtime.check(lib.mcStreamSynchronize(other))
"""
    run_python(code)
