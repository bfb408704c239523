"""torch.profiler with ProfilerActivity.CUDA: the device's rows, and what they say."""

import json
import pathlib
import threading
from typing import Any, Callable, Dict, List

import pytest
import release_facts
import torch
from torch.profiler import DeviceType, ProfilerActivity, profile, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
Event = Dict[str, Any]


def trace(body: Callable[[], None], folder: pathlib.Path, **options: Any) -> List[Event]:
    """Return the events of the Chrome trace of `body`."""
    with profile(activities=BOTH, **options) as recorded:
        body()
        torch.cuda.synchronize()
    recorded.export_chrome_trace(str(folder / "trace.json"))
    return json.loads((folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]


def device_time(event: Any) -> float:
    """Microseconds; up to torch 2.2 the attribute is named after CUDA."""
    return event.device_time_total if hasattr(event, "device_time_total") else event.cuda_time_total


def of(events: List[Event], category: str) -> List[Event]:
    return [event for event in events if event.get("cat") == category]


@release_facts.wants("profiles_of_later_kineto")
def test_an_operator_is_one_kernel_inside_of_it(tmp_path: pathlib.Path) -> None:
    x = torch.randn(128, 128, device="cuda")
    events = trace(lambda: x.mm(x).relu().sum(), tmp_path)
    kernels = of(events, "kernel")
    assert [kernel["name"] for kernel in kernels] == ["maca::mm_gemm_kernel", "maca::relu_kernel", "maca::sum_kernel"]
    operators = {event["args"]["External id"]: event for event in of(events, "cpu_op")}
    for kernel in kernels:
        operator = operators[kernel["args"]["External id"]]
        assert kernel["name"].startswith(operator["name"].replace("aten", "maca") + "_")
        begin, end = operator["ts"], operator["ts"] + operator["dur"]
        assert begin - 5 <= kernel["ts"] and kernel["ts"] + kernel["dur"] <= end + 5  # the clocks' steps
        assert kernel["args"]["device"] == 0


def test_arrows_lead_from_calls_to_the_work(tmp_path: pathlib.Path) -> None:
    x = torch.randn(8, device="cuda")
    events = trace(lambda: x.add_(1), tmp_path)
    (kernel,) = of(events, "kernel")
    number = kernel["args"]["correlation"]
    calls = [call for call in of(events, "cuda_runtime") if call["args"].get("correlation") == number]
    assert [call["name"] for call in calls] == ["cudaLaunchKernel"]
    ends = {event["ph"] for event in of(events, "ac2g") if event["id"] == number}
    assert ends == {"s", "f"}


def test_copies_say_from_where_to_where_and_how_much(tmp_path: pathlib.Path) -> None:
    pinned = torch.zeros(1000).pin_memory()
    device = torch.zeros(1000, device="cuda")

    def copy() -> None:
        device.copy_(pinned, non_blocking=True)
        device.clone()
        pinned.copy_(device)
        torch.ones(10).cuda()

    copies = of(trace(copy, tmp_path), "gpu_memcpy")
    found = [(event["name"], event["args"]["bytes"]) for event in copies]
    assert found == [
        ("Memcpy HtoD (Pinned -> Device)", 4000),
        ("Memcpy DtoD (Device -> Device)", 4000),
        ("Memcpy DtoH (Device -> Pinned)", 4000),
        ("Memcpy HtoD (Pageable -> Device)", 40),
    ]


def test_work_has_the_stream_that_it_ran_on(tmp_path: pathlib.Path) -> None:
    x = torch.randn(8, device="cuda")
    side = torch.cuda.Stream()

    def work() -> None:
        x + 1
        with torch.cuda.stream(side):
            x + 2

    first, second = of(trace(work, tmp_path), "kernel")
    assert first["args"]["stream"] != second["args"]["stream"]


def test_work_has_the_device_that_it_ran_on(script) -> None:
    code = """
        import torch
        from torch.profiler import DeviceType, profile
        x, y = (torch.ones(8, 8, device=f"cuda:{index}") for index in range(2))
        with profile() as recorded:
            y.mm(y), x.mm(x), y + 1
        print(*(event.device_index for event in recorded.events() if event.device_type == DeviceType.CUDA))
    """
    assert script(code, {"MACA_DEVICE_COUNT": "2"}) == "1 0 1"


def test_pending_work_is_timed_when_it_runs(tmp_path: pathlib.Path) -> None:
    pinned = torch.zeros(1000).pin_memory()
    device = torch.zeros(1000, device="cuda")

    def work() -> None:
        torch.cuda._sleep(30_000_000)
        device.copy_(pinned, non_blocking=True)

    events = trace(work, tmp_path)
    (kernel,), (copy,) = of(events, "kernel"), of(events, "gpu_memcpy")
    assert "spin_kernel" in kernel["name"] and kernel["dur"] > 10_000
    assert copy["ts"] >= kernel["ts"] + kernel["dur"] - 5
    call = next(event for event in of(events, "cuda_runtime") if event["name"] == "cudaMemcpyAsync")
    assert call["ts"] < copy["ts"]


@release_facts.wants("profiles_of_later_kineto")
def test_waits_are_calls(tmp_path: pathlib.Path) -> None:
    event = torch.cuda.Event()

    def work() -> None:
        event.record()
        event.synchronize()
        torch.cuda.current_stream().synchronize()

    names = {call["name"] for call in of(trace(work, tmp_path), "cuda_runtime")}
    assert {"cudaEventRecord", "cudaEventSynchronize", "cudaStreamSynchronize", "cudaDeviceSynchronize"} <= names


def test_a_graph_shows_its_nodes(tmp_path: pathlib.Path) -> None:
    x = torch.zeros(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 1
        x *= 2
    events = trace(graph.replay, tmp_path)
    names = [kernel["name"] for kernel in of(events, "kernel")]
    assert [name for name in names if "fill" not in name] == ["aten::add_.Tensor", "aten::mul_.Tensor"]
    assert "cudaGraphLaunch" in {call["name"] for call in of(events, "cuda_runtime")}


def test_device_time_is_an_operators_and_its_kernels(tmp_path: pathlib.Path) -> None:
    model = torch.nn.Linear(64, 64).cuda()
    x = torch.randn(64, 64, device="cuda")
    with profile(activities=BOTH) as recorded:
        model(x).sum().backward()
    rows = {event.key: event for event in recorded.key_averages()}
    assert device_time(rows["aten::addmm"]) > 0
    assert rows["maca::addmm_gemm_kernel"].device_type == DeviceType.CUDA
    assert device_time(rows["aten::linear"]) == pytest.approx(device_time(rows["aten::addmm"]))
    assert device_time(rows["AddmmBackward0"]) > 0


def test_a_profile_may_begin_again_and_repeats_nothing(tmp_path: pathlib.Path) -> None:
    x = torch.ones(8, device="cuda")
    for name in ("add", "mul"):
        events = trace(lambda: getattr(x, name)(2), tmp_path)  # noqa: B023
        assert [kernel["name"] for kernel in of(events, "kernel")] == [f"maca::{name}_kernel"]
    assert (x + 1).sum().item() == 16


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int32], ids=str)
def test_lists_that_are_alike_are_one_kernel_of_cudas_name(tmp_path: pathlib.Path, dtype: torch.dtype) -> None:
    alike = [torch.ones(3, 4, dtype=dtype, device="cuda") for _ in range(3)]
    turned = [torch.ones(4, 3, dtype=dtype, device="cuda").t() for _ in range(3)]

    def names(step: Callable[[], object]) -> List[str]:
        return [kernel["name"] for kernel in of(trace(step, tmp_path), "kernel")]

    def is_one(step: Callable[[], object]) -> bool:
        found = names(step)
        assert found
        return any("multi_tensor_apply_kernel" in name for name in found)

    assert names(lambda: torch._foreach_add(alike, alike)) == ["maca::_foreach_add_multi_tensor_apply_kernel"]
    assert not is_one(lambda: torch._foreach_add(alike, turned))
    assert not is_one(lambda: torch._foreach_add([alike[0], alike[1].double()], 1))
    # CUDA has no kernel of lists that makes floats of integers.
    assert is_one(lambda: torch._foreach_exp(alike)) == (dtype != torch.int32)
    assert is_one(lambda: torch._foreach_div(alike, alike)) == (dtype != torch.int32)
    assert is_one(lambda: torch._foreach_zero_(alike))
    # Of these it has none of integers at all, and none of complex numbers, which have no order.
    if not dtype.is_complex:
        assert is_one(lambda: torch._foreach_clamp_max(alike, alike)) == (dtype != torch.int32)
        assert is_one(lambda: torch._foreach_sign(alike)) == (dtype != torch.int32)


def test_a_schedule_records_its_active_steps(tmp_path: pathlib.Path) -> None:
    x = torch.ones(8, device="cuda")
    seen: List[int] = []

    def ready(recorded: Any) -> None:
        seen.append(sum(event.count for event in recorded.key_averages() if event.key == "maca::add_kernel"))

    with profile(activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as recorded:
        for _ in range(4):
            x + 1
            recorded.step()
    assert seen == [2]


def test_only_the_device_may_be_recorded() -> None:
    x = torch.ones(8, device="cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        x + 1
    assert "maca::add_kernel" in {event.key for event in recorded.key_averages()}


@release_facts.wants("profiles_of_later_kineto")
def test_nvtx_ranges_are_annotations_with_the_span_of_their_kernels(tmp_path: pathlib.Path) -> None:
    x = torch.ones(64, 64, device="cuda")

    def work() -> None:
        with torch.cuda.nvtx.range("outer"):
            torch.cuda.nvtx.range_push("inner")
            x.mm(x)
            torch.cuda.nvtx.range_pop()
            torch.cuda.nvtx.mark("moment")

    events = trace(work, tmp_path)
    ranges = {event["name"]: event for event in of(events, "user_annotation")}
    assert {"outer", "inner", "moment"} <= set(ranges)
    (kernel,) = of(events, "kernel")
    for name in ("outer", "inner"):
        begin, end = ranges[name]["ts"], ranges[name]["ts"] + ranges[name]["dur"]
        assert begin <= kernel["ts"] + 5 and kernel["ts"] + kernel["dur"] <= end + 5
    on_device = {event["name"]: event for event in of(events, "gpu_user_annotation")}
    assert on_device["inner"]["ts"] == pytest.approx(kernel["ts"], abs=5)
    assert "moment" not in on_device


def test_nvtx_ranges_may_end_in_another_thread_and_in_any_order(tmp_path: pathlib.Path) -> None:
    def work() -> None:
        first = torch.cuda.nvtx.range_start("first")
        second = torch.cuda.nvtx.range_start("second")
        torch.cuda.nvtx.range_end(first)
        thread = threading.Thread(target=torch.cuda.nvtx.range_end, args=(second,))
        thread.start()
        thread.join()

    names = [event["name"] for event in of(trace(work, tmp_path), "user_annotation")]
    assert sorted(name for name in names if name in ("first", "second")) == ["first", "second"]


def test_nvtx_ranges_that_outlive_a_profile_harm_nobody(tmp_path: pathlib.Path) -> None:
    torch.cuda.nvtx.range_push("begun before")
    events = trace(lambda: torch.cuda.nvtx.range_push("ends after"), tmp_path)
    assert [torch.cuda.nvtx.range_pop(), torch.cuda.nvtx.range_pop()] == [1, 0]
    assert "begun before" not in {event["name"] for event in of(events, "user_annotation")}
    assert trace(lambda: torch.cuda.nvtx.range_pop(), tmp_path)


def test_operators_become_nvtx_ranges_once() -> None:
    """emit_nvtx makes a range of each operator; those ranges begin no further ones."""
    x = torch.ones(8, device="cuda")
    with torch.autograd.profiler.emit_nvtx(record_shapes=True):
        (x + 1).sum()
        assert torch.cuda.nvtx.range_push("within") == 0
        torch.cuda.nvtx.range_pop()
    assert torch.cuda.nvtx.range_pop() == -1


@release_facts.wants("profiles_of_later_kineto")
def test_a_profile_with_everything_has_stacks_shapes_modules_and_memory(tmp_path: pathlib.Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda()
    x = torch.ones(8, 64, device="cuda")
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    options = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}
    with profile(activities=BOTH, experimental_config=verbose, **options) as recorded:
        model(x).sum().backward()
    by_shape = {(event.key, str(event.input_shapes)) for event in recorded.key_averages(group_by_input_shape=True)}
    assert ("aten::addmm", "[[64], [8, 64], [64, 64], [], []]") in by_shape
    assert any(event.self_device_memory_usage > 0 for event in recorded.key_averages())
    recorded.export_stacks(str(tmp_path / "stacks.txt"), "self_cuda_time_total")
    lines = (tmp_path / "stacks.txt").read_text(encoding="utf-8").splitlines()
    assert any("test_profiler.py" in line and "nn.Module:_Linear_0" in line for line in lines)
    assert all(int(line.rsplit(" ", 1)[1]) > 0 for line in lines)
    recorded.export_memory_timeline(str(tmp_path / "memory.json"), device="cuda:0")
    times, sizes = json.loads((tmp_path / "memory.json").read_text(encoding="utf-8"))
    assert len(times) == len(sizes) and max(sum(row) for row in sizes) >= 64 * 64 * 4
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert any("nn.Module: Linear_0" in event["name"] for event in of(events, "python_function"))
    assert any(event["name"] == "[memory]" and event["args"]["Device Type"] == 1 for event in events if "args" in event)


def test_a_function_has_its_record_with_its_first_kernel(script: Callable[..., str]) -> None:
    """CUPTI_ACTIVITY_KIND_FUNCTION, which Triton 3.0's profiler asks for."""
    printed = script(
        """
        import ctypes, struct, torch
        x = torch.ones(8, device="cuda")
        cupti = ctypes.CDLL("libcupti.so")
        room, seen, sizes = ctypes.create_string_buffer(1 << 16), [], ctypes.POINTER(ctypes.c_size_t)

        @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), sizes, sizes)
        def request(buffer, size, most):
            buffer[0], size[0], most[0] = ctypes.addressof(room), len(room), 0

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
        def complete(context, stream, buffer, size, used):
            record = ctypes.c_void_p()
            arguments = ctypes.c_void_p(buffer), ctypes.c_size_t(used), ctypes.byref(record)
            while cupti.cuptiActivityGetNextRecord(*arguments) == 0:
                data = ctypes.string_at(record.value, 32)
                kind, number, context, module, index, _, name = struct.unpack("<IIIIIIQ", data)
                seen.append((kind, number, index, ctypes.string_at(name).decode()))

        assert cupti.cuptiActivityRegisterCallbacks(request, complete) == 0
        assert cupti.cuptiActivityEnable(26) == 0
        for _ in range(2):
            (x + 1).relu()
        torch.cuda.synchronize()
        x.exp()
        torch.cuda.synchronize()
        assert cupti.cuptiActivityDisable(26) == 0
        x.log()
        torch.cuda.synchronize()
        assert cupti.cuptiActivityFlushAll(0) == 0
        print(*seen, sep=";")
        """
    )
    names = ["maca::add_kernel", "maca::relu_kernel", "maca::exp_kernel"]
    assert printed.strip() == ";".join(str((26, i, i, name)) for i, name in enumerate(names, 1))
