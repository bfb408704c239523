"""What is recorded, under which name, and that the run does not notice."""

import csv
import ctypes
import json
import multiprocessing
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any, List

import pytest
import torch
from torch import nn, relu

from maca_tools import accuracy


def _load(path: Path) -> Any:
    return torch.load(path, weights_only=True)


class _Manual(nn.Module):  # type: ignore[misc]
    """The network of the product's manual: Conv1d on a (256, 1, 3600) half input."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 7, stride=4)
        self.act = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool1d(8)

    def forward(self, x: Any) -> Any:
        return self.pool(self.act(self.conv(x)))


@pytest.mark.parametrize(
    "options",
    [{}, {"skip": 10}, {"op_range": ["torch.nn.Conv1d.0.fwd", "torch.nn.AdaptiveAvgPool1d.2.fwd"]}],
    ids=["all", "skip", "range"],
)
def test_the_example_of_the_manual(options: Any, device: str, tmp_path: Path, operators: Any) -> None:
    model = _Manual().to(device).half()
    x = torch.randn(256, 1, 3600).to(device).half()
    accuracy.start_record(output_dir=str(tmp_path), **options)
    model(x).float().sum().backward()
    accuracy.record_switch(False)
    accuracy.start_record(enabled=False)
    forward = [name for name in operators(tmp_path) if name.endswith("fwd")]
    whole = [
        "torch.nn.Conv1d.0.fwd",
        "torch.nn.ReLU.1.fwd",
        "torch.nn.AdaptiveAvgPool1d.2.fwd",
        "torch.Tensor.float.3.fwd",
        "torch.Tensor.sum.4.fwd",
    ]
    expected = {"skip": whole[:1], "op_range": whole[:2]}
    assert forward == (expected[next(iter(options))] if options else whole)
    assert (tmp_path / "torch.nn.Conv1d.0.fwd.input.pt").exists() and (
        tmp_path / "torch.nn.Conv1d.0.fwd.output.pt"
    ).exists()
    if not options:
        grads = _load(tmp_path / "torch.nn.Conv1d.0.bwd.output.pt")["values"]["grad_in"]
        assert torch.equal(grads["params.weight"], model.conv.weight.grad.cpu())


def test_nothing_that_python_can_call_is_missed(device: str, tmp_path: Path, operators: Any) -> None:
    x = torch.ones(4, 4, device=device)
    with accuracy.record(output_dir=str(tmp_path)):
        relu(x)
        y = x + x
        _ = y[0]
        y[0] = 7.0
        y += 1
        torch.zeros(2, device=device)
        y.sum()
        torch._foreach_add_([y, y.clone()], 1.0)
        nn.functional.gelu(y)
        _ = x.T
        y.sum().item()
        torch.chunk(y, 2)
    found = [".".join(name.split(".")[:-2]) for name in operators(tmp_path)]
    wanted = ["torch.relu", "torch.Tensor.__getitem__", "torch.Tensor.__setitem__", "torch.zeros",
              "torch.Tensor.sum", "torch.Tensor.clone", "torch._foreach_add_", "torch.nn.functional.gelu",
              "torch.Tensor.T", "torch.Tensor.item", "torch.chunk"]  # fmt: skip
    assert [name for name in wanted if name not in found] == []
    assert len(found) == 14


def test_an_in_place_operator_has_its_value_before_and_after(device: str, tmp_path: Path) -> None:
    x = torch.ones(3, device=device)
    with accuracy.record(output_dir=str(tmp_path)):
        x.add_(1)
        x[0] = 9
    assert _load(tmp_path / "torch.Tensor.add_.0.fwd.input.pt")["values"]["args"][0].tolist() == [1, 1, 1]
    assert _load(tmp_path / "torch.Tensor.add_.0.fwd.output.pt")["values"]["result"].tolist() == [2, 2, 2]
    after = _load(tmp_path / "torch.Tensor.__setitem__.1.fwd.output.pt")["values"]["after"]
    assert after["args[0]"].tolist() == [9, 2, 2]


def test_backward_has_the_operators_own_gradients(device: str, tmp_path: Path) -> None:
    x = torch.ones(3, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path)):
        a = x * 2
        b = x * 5
        (a + b).sum().backward()
    # x.grad is the sum of both; each operator is recorded with its own share.
    assert _load(tmp_path / "torch.Tensor.mul.0.bwd.output.pt")["values"]["grad_in"]["args[0]"].tolist() == [2, 2, 2]
    assert _load(tmp_path / "torch.Tensor.mul.1.bwd.output.pt")["values"]["grad_in"]["args[0]"].tolist() == [5, 5, 5]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_recording_does_not_change_the_run(level: int, device: str, tmp_path: Path) -> None:
    def run() -> Any:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 2)).to(
            device
        )
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.rand(6, 5, device=device)).pow(2).sum().backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()] + [torch.rand(3), torch.rand(3, device=device).cpu()]

    plain = run()
    with accuracy.record(output_dir=str(tmp_path), record_level=level):
        recorded = run()
    assert all(torch.equal(a, b) for a, b in zip(plain, recorded))


def test_op_list_takes_a_class_or_full_names(device: str, tmp_path: Path, operators: Any) -> None:
    x = torch.ones(3, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path), op_list=["relu", "torch.Tensor.sum.4.fwd"]):
        y = torch.relu(nn.functional.relu(nn.ReLU()(x * 1)))
        y.sum().backward()
    assert operators(tmp_path) == [
        "torch.nn.ReLU.1.fwd", "torch.nn.functional.relu.2.fwd", "torch.relu.3.fwd", "torch.Tensor.sum.4.fwd",
        "torch.relu.3.bwd", "torch.nn.functional.relu.2.bwd", "torch.nn.ReLU.1.bwd",
    ]  # fmt: skip


def test_a_summary_says_what_the_tensor_held(device: str, tmp_path: Path) -> None:
    x = torch.tensor([1.0, float("nan"), float("inf"), -3.0], device=device)
    with accuracy.record(output_dir=str(tmp_path), record_level=1):
        x.clone()
    found = _load(tmp_path / "torch.Tensor.clone.0.fwd.output.pt")["values"]["result"]
    assert (found["nan"], found["inf"], found["min"], found["max"], found["mean"]) == (1, 1, -3.0, 1.0, -1.0)


def test_level_0_logs_a_wrong_operator_forward_and_backward(
    planted: Any, device: str, tmp_path: Path, capfd: Any
) -> None:
    for where in ("", "fwd:7", "bwd:7"):
        model = planted.build(device, torch.float32, where, layers=2)
        with accuracy.record(output_dir=str(tmp_path), record_level=0):
            planted.train(model)
        text = capfd.readouterr().err
        assert ("is off by" in text) == bool(where), (where, text)


def test_level_0_passes_over_what_has_no_double_precision_form(device: str, tmp_path: Path, capfd: Any) -> None:
    dense = torch.eye(3, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path), record_level=0):
        nested = torch.nested.nested_tensor([torch.ones(2, 3, device=device), torch.ones(1, 3, device=device)])
        (nested * 2).to_padded_tensor(0.0)
        (dense.to_sparse() * 2).to_dense().sum().backward()
        torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.qint8).dequantize()
    assert "is off by" not in capfd.readouterr().err


def test_level_0_checks_each_backward_over_a_graph_that_is_kept(device: str, tmp_path: Path, capfd: Any) -> None:
    if device == "cpu":
        pytest.skip("needs a device beside the CPU")

    class Wrong(torch.autograd.Function):
        factor = 1.0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            # A kernel of the device that is wrong; what level 0 compares with is right.
            return grad * Wrong.factor if grad.device.type == device else grad

    class Module(nn.Softplus):
        def forward(self, x: Any) -> Any:
            return Wrong.apply(super().forward(x))

    Module.__module__, Module.__name__ = "torch.nn.modules.activation", "Softplus"
    x = torch.rand(100, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path), record_level=0):
        y = Module()(x).sum()
        y.backward(retain_graph=True)
        assert "is off by" not in capfd.readouterr().err
        Wrong.factor = 1.01
        y.backward()
    assert "Softplus.0#2.bwd" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("kind", "options"),
    [("SGD", {"momentum": 0.9}), ("AdamW", {}), ("Rprop", {}), ("Adadelta", {"lr": 1.0}), ("Adafactor", {})],
)
def test_level_0_checks_an_optimizers_step(kind: str, options: Any, device: str, tmp_path: Path, capfd: Any) -> None:
    make = getattr(torch.optim, kind, None)
    if make is None:
        pytest.skip(f"this torch has no {kind}")
    # More elements than one piece, and fewer.
    params = [nn.Parameter(torch.randn(size, device=device)) for size in ((400, 500), (7,))]
    optimizer = make(params, **{"lr": 0.01, **options})
    for number in range(4):
        for param in params:
            param.grad = torch.randn_like(param)
        before = params[0].detach().clone()

        def spoil(*_: Any, number: int = number, before: Any = before) -> None:
            # One percent of the change of a parameter is missing, or something in the state is one percent too large.
            if number == 2:
                params[0].data.lerp_(before, 0.01)
            if number == 3:
                state = optimizer.state[params[1]]
                next(value for value in state.values() if torch.is_tensor(value) and value.dim()).mul_(1.01)

        handle = optimizer.register_step_post_hook(spoil)
        with accuracy.record(output_dir=str(tmp_path / str(number)), record_level=0):
            optimizer.step()
        handle.remove()
        text = capfd.readouterr().err
        wanted = {0: "", 1: "", 2: f"torch.optim.{kind}.0.fwd params[0] is off by 1.0", 3: "state[1]."}[number]
        assert wanted in text and ("is off by" in text) == bool(wanted), (number, text)


def test_level_1_sees_a_change_that_no_version_counts(device: str, tmp_path: Path) -> None:
    x = torch.ones(5000, device=device)
    with accuracy.record(output_dir=str(tmp_path), record_level=1):
        torch.neg(x)
        x.data[7] = 5.0
        torch.neg(x)
        torch.neg(x)
    found = [
        _load(tmp_path / f"{name}.fwd.input.pt")["values"]["args"][0]
        for name in ("torch.neg.0", "torch.neg.2", "torch.neg.3")
    ]
    assert [summary["max"] for summary in found] == [1.0, 5.0, 5.0]
    assert found[0]["crc"] != found[1]["crc"] == found[2]["crc"]


@pytest.mark.parametrize("elements", [1, 1 << 17, 700_001, 3_000_001])
def test_a_summary_in_parts_and_pieces_is_that_of_the_whole(elements: int, device: str) -> None:
    from maca_tools.accuracy.data import summary

    values = torch.randn(elements)
    sketch = summary.summarize(values, "float32", [1], "cpu").as_dict()["sketch"]
    found = summary.Seen()
    for side in {"cpu", device}:
        stored = found.summary(values.to(side), "float32", [1], side, None)
        again = [found.summary(values.to(side), "float32", [1], side, (1, 2)) for _ in range(2)]
        whole = values.double()
        for known in [stored, *again]:
            assert known["crc"] == zlib.crc32((ctypes.c_char * (4 * elements)).from_address(values.data_ptr()))
            assert (known["min"], known["max"]) == (float(values.min()), float(values.max()))
            assert known["norm"] == pytest.approx(float(whole.norm()), rel=1e-5)
            assert known["mean"] == pytest.approx(float(whole.mean()), abs=1e-6)
            parts, one = (summary.from_dict({**known, "sketch": part}).sketch for part in (known["sketch"], sketch))
            assert parts == pytest.approx(one, rel=1e-5, abs=1e-3)
    found.close()


def test_checksums_of_parts_are_joined(device: str) -> None:
    from maca_tools.accuracy.data import checksum

    whole = bytes(range(256)) * 33
    for at in (0, 1, 4000, len(whole)):
        first, second = whole[:at], whole[at:]
        assert checksum.joined(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(whole)
        assert checksum.crc32(second, checksum.crc32(first)) == zlib.crc32(whole)


def test_device_memory_is_read_where_it_lies_and_not_changed(device: str, tmp_path: Path) -> None:
    from maca_tools.accuracy.data import capture, host_memory

    if device == "cpu":
        pytest.skip("needs a device")
    dtypes = (torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.int64, torch.complex64, torch.uint8)
    for dtype in (*dtypes, getattr(torch, "float8_e4m3fn", torch.int8)):
        base = (torch.rand(7, 5, device=device) * 9).to(dtype)
        for tensor in (base, base.t(), base[1:, ::2], base[3, 3], base[:0], base[:1].expand(4, 5)):
            seen = host_memory.seen_from_host(tensor)
            assert seen.device.type == "cpu" and seen.stride() == tensor.stride() and seen.dtype == dtype
            assert seen.tolist() == tensor.tolist()
            assert tensor.numel() == 0 or seen.data_ptr() == tensor.data_ptr()
    complex_numbers = torch.tensor([1 + 2j], device=device).conj()
    assert capture.copy_values(complex_numbers).tensor.tolist() == [1 - 2j]
    assert host_memory.seen_from_host(complex_numbers) is complex_numbers


def test_sums_run_beside_one_another_and_leave_the_number_of_threads_alone() -> None:
    from maca_tools.accuracy.data.workers import PIECE, Workers

    workers = Workers()
    values = torch.ones(2 * workers.count * PIECE + 5)
    before = torch.get_num_threads()
    met = threading.Barrier(workers.count, timeout=60)

    def part(first: int, end: int) -> Any:
        # Each part waits for the others: one after another they would never meet.
        met.wait()
        return first, end, torch.get_num_threads(), float(values[first:end].sum())

    parts = workers.over_parts(values, part)
    workers.close()
    assert [first for first, _, _, _ in parts] == [0, *(end for _, end, _, _ in parts[:-1])]
    assert sum(total for _, _, _, total in parts) == values.numel()
    assert {threads for _, _, threads, _ in parts} == {1} and torch.get_num_threads() == before


def _steps(optimizer: Any, params: Any, scaler: Any, values: Any) -> None:
    for value in values:
        for param in params:
            param.grad = torch.full_like(param, value)
        scaler.scale(torch.ones(1, device=params[0].device))
        scaler.step(optimizer)
        scaler.update()


@pytest.mark.parametrize("options", [{}, {"fused": True}], ids=["plain", "fused"])
def test_level_0_checks_a_step_with_a_scaler_inside(options: Any, device: str, tmp_path: Path, capfd: Any) -> None:
    if device == "cpu":
        pytest.skip("needs a device")
    params = [nn.Parameter(torch.randn(size, device=device)) for size in (200_000, 7)]
    optimizer = torch.optim.AdamW(params, lr=0.1, **options)
    scaler = torch.amp.GradScaler(device)
    with accuracy.record(output_dir=str(tmp_path / "right"), record_level=0):
        # The second one is passed over, since the gradients are not finite.
        _steps(optimizer, params, scaler, (3.0, float("inf"), 5.0))
    assert "accuracy" not in capfd.readouterr().err
    for value, in_state in ((3.0, False), (3.0, True), (float("inf"), False)):
        before = params[0].detach().clone()

        def spoil(*_: Any, before: Any = before, in_state: bool = in_state, value: float = value) -> None:
            if in_state:
                optimizer.state[params[1]]["exp_avg_sq"].mul_(1.01)
            elif value == 3.0:
                params[0].data.lerp_(before, 0.01)
            else:
                params[0].data.mul_(1.01)

        handle = optimizer.register_step_post_hook(spoil)
        with accuracy.record(output_dir=str(tmp_path / f"wrong{value}{in_state}"), record_level=0):
            _steps(optimizer, params, scaler, (value,))
        handle.remove()
        text = capfd.readouterr().err
        if value == 3.0 or options:
            # A plain optimizer's step is not even called where gradients are not finite.
            path = "state[1].exp_avg_sq" if in_state else "params[0]"
            assert f".fwd {path} is off by" in text and "torch.optim.AdamW." in text, text


def test_level_0_says_which_steps_it_does_not_check(device: str, tmp_path: Path, capfd: Any, monkeypatch: Any) -> None:
    import json

    from maca_tools.accuracy.recorder import step_check

    class Own(torch.optim.SGD):
        pass

    params = [nn.Parameter(torch.ones(size, device=device)) for size in (3, 5)]
    for param in params:
        param.grad = torch.ones_like(param)
    closure, own, plain = torch.optim.LBFGS(params), Own(params, lr=0.1), torch.optim.SGD(params, lr=0.1)
    compared = step_check._compared

    def fails(optimizer: Any, found: Any, entry: Any, *others: Any) -> Any:
        if entry.original is params[1]:
            raise NotImplementedError("no such form\non the CPU")
        return compared(optimizer, found, entry, *others)

    monkeypatch.setattr(step_check, "_compared", fails)
    with accuracy.record(output_dir=str(tmp_path), record_level=0):
        closure.step(lambda: sum((param * param).sum() for param in params))
        own.step()
        for _ in range(3):
            plain.step()
    text = capfd.readouterr().err
    said = [
        "torch.optim.LBFGS: up to 2 of 2 parameters, such as params[0] (its closure computes new gradients",
        "torch.optim.Own: up to 2 of 2 parameters, such as params[0] (it is no optimizer of torch.optim",
        "torch.optim.SGD: up to 1 of 2 parameters, such as params[1] (NotImplementedError: no such form)",
    ]
    assert [line for line in said if line not in text] == [], text
    assert "in 3 steps of torch.optim.SGD" in text
    # Once at the first step, once at the end.
    assert text.count("NotImplementedError") == 2
    with open(tmp_path / "check.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert [(line["not_checked"], line["of"], line["first"]) for line in lines][-3:] == [(1, 2, "params[1]")] * 3


@pytest.mark.skipif(not hasattr(os, "sysconf") or platform.libc_ver()[0] != "glibc", reason="glibc's settings")
def test_level_0_keeps_memory_only_while_it_records(tmp_path: Path) -> None:
    # A piece of 64 MB is mapped by itself before and after; meanwhile it comes from the heap, and stays there.
    code = f"""
        import ctypes, torch
        from maca_tools import accuracy
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]
        def mapped():
            address = libc.malloc(64 << 20)
            with open("/proc/self/maps") as file:
                heap = next(line for line in file if line.rstrip().endswith("[heap]")).split()[0]
            libc.free(address)
            low, high = (int(end, 16) for end in heap.split("-"))
            return not low <= address < high
        found = [mapped()]
        with accuracy.record(output_dir={str(tmp_path)!r}, record_level=0):
            found.append(mapped())
            torch.ones(3)
        found.append(mapped())
        print(found)
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    for extra, expected in (({}, [True, False, True]), ({"MALLOC_TOP_PAD_": "1"}, [True, True, True])):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], env={**clean, **extra}, stdout=subprocess.PIPE, text=True
        )
        assert done.stdout.strip() == str(expected), extra


def test_threads_have_folders_and_numbers_of_their_own(device: str, tmp_path: Path, operators: Any) -> None:
    with accuracy.record(output_dir=str(tmp_path)):
        thread = threading.Thread(target=lambda: torch.ones(2, device=device) + 1)
        thread.start()
        thread.join()
        torch.zeros(2, device=device)
    assert operators(tmp_path, "thread1") == ["torch.ones.0.fwd", "torch.Tensor.add.1.fwd"]
    assert operators(tmp_path) == ["torch.zeros.0.fwd"]


def test_record_switch_works_inside_anothers_mode(device: str, tmp_path: Path, operators: Any) -> None:
    accuracy.start_record(output_dir=str(tmp_path))
    accuracy.record_switch(False)
    with torch.device(device):
        accuracy.record_switch(True)
        torch.zeros(1)
    assert torch.ones(1).device.type == "cpu"
    accuracy.record_switch(False)
    torch.ones(1)
    accuracy.start_record(enabled=False)
    assert [name for name in operators(tmp_path) if "zeros" in name or "ones" in name] == [
        "torch.zeros.0.fwd",
        "torch.ones.1.fwd",
    ]


def test_unusual_tensors_are_recorded_as_plain_data_with_their_values(tmp_path: Path, operators: Any) -> None:
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    with accuracy.record(output_dir=str(tmp_path)):
        dense.to_sparse() * 2
        dense.to_sparse_csr()
        torch.quantize_per_tensor(dense, 0.5, 1, torch.qint8)
        torch.nested.nested_tensor([dense, dense[:1]]) - 1
    found = {".".join(name.split(".")[:-2]): name for name in operators(tmp_path)}

    def result(api: str) -> Any:
        return _load(tmp_path / f"{found[api]}.output.pt")["values"]["result"]

    sparse = result("torch.Tensor.mul")
    assert sparse["indices"].tolist() == [[0, 1], [1, 0]] and sparse["values"].tolist() == [4, 6]
    assert result("torch.Tensor.to_sparse_csr")["crow"].tolist() == [0, 1, 2]
    quantised = result("torch.quantize_per_tensor")
    assert quantised["int"].tolist() == [[1, 5], [7, 1]] and (quantised["scale"], quantised["zero_point"]) == (0.5, 1)
    assert [part.tolist() for part in result("torch.Tensor.sub")["parts"]] == [[[-1, 1], [2, -1]], [[-1, 1]]]
    made = result("torch.nested.nested_tensor")["parts"]
    assert [part.tolist() for part in made] == [[[0, 2], [3, 0]], [[0, 2]]]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_what_only_stands_for_a_tensor_does_not_end_the_record(
    level: int, device: str, tmp_path: Path, operators: Any
) -> None:
    if not hasattr(torch, "func"):
        pytest.skip("this torch has no torch.func")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(5000)
    x = torch.ones(3, 2000, device=device)
    with accuracy.record(output_dir=str(tmp_path), record_level=level):
        mapped = torch.vmap(lambda row: torch.sin(row) * 2)(x)
        grad = torch.func.grad(lambda row: torch.sin(row).sum())(x[0])
        torch.sin(fake)
        torch.cos(x)
    assert torch.equal(mapped, torch.sin(x) * 2) and torch.equal(grad, torch.cos(x[0]))
    if level:
        forward = [name.rsplit(".", 2)[0] for name in operators(tmp_path) if name.endswith(".fwd")]
        assert forward.count("torch.sin") == 3 and forward[-1] == "torch.cos"


def test_foreach_has_its_tensors_before_and_after(device: str, tmp_path: Path) -> None:
    pair = [torch.ones(2, device=device), torch.zeros(2, device=device)]
    with accuracy.record(output_dir=str(tmp_path)):
        torch._foreach_add_(pair, 1.5)
    before = _load(tmp_path / "torch._foreach_add_.0.fwd.input.pt")["values"]["args"][0]
    after = _load(tmp_path / "torch._foreach_add_.0.fwd.output.pt")["values"]
    assert [part.tolist() for part in before] == [[1, 1], [0, 0]]
    written = list(after["after"].values()) if "after" in after else after["result"]
    assert [part.tolist() for part in written] == [[2.5, 2.5], [1.5, 1.5]]


def test_an_optimizers_step_is_one_operator_with_gradients_and_state(
    device: str, tmp_path: Path, operators: Any
) -> None:
    weight = nn.Parameter(torch.ones(2, device=device))
    optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
    weight.grad = torch.tensor([1.0, 2.0], device=device)
    with accuracy.record(output_dir=str(tmp_path)):
        optimizer.step()
    assert operators(tmp_path) == ["torch.optim.SGD.0.fwd"]
    before, after = (_load(tmp_path / f"torch.optim.SGD.0.fwd.{part}.pt")["values"] for part in ("input", "output"))
    assert (before["params"][0].tolist(), before["grads"][0].tolist()) == ([1, 1], [1, 2])
    assert after["params"][0].tolist() == [0.5, 0.0] and after["state"][0]["momentum_buffer"].tolist() == [1, 2]


def test_backward_of_an_operator_with_several_outputs_has_each_gradient(device: str, tmp_path: Path) -> None:
    x = torch.arange(6.0, device=device).requires_grad_()
    with accuracy.record(output_dir=str(tmp_path)):
        a, b, c = torch.split(x, 2)
        (a * 2 + c * 5).sum().backward()
        values, places = torch.sort(x * 1, descending=True)
        values[:2].sum().backward()
    grads = _load(tmp_path / "torch.split.0.bwd.input.pt")["values"]["grad_out"]
    assert {path: grad.tolist() for path, grad in grads.items() if grad.any()} == {
        "result[0]": [2, 2],
        "result[2]": [5, 5],
    }
    out = _load(tmp_path / "torch.split.0.bwd.output.pt")["values"]["grad_in"]
    assert out["args[0]"].tolist() == [2, 2, 0, 0, 5, 5]
    sort = next(tmp_path.glob("torch.sort.*.bwd.output.pt"))
    assert _load(sort)["values"]["grad_in"]["args[0]"].tolist() == [0, 0, 0, 0, 1, 1]


def test_a_scripted_module_is_one_operator(tmp_path: Path, operators: Any) -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    with accuracy.record(output_dir=str(tmp_path)):
        scripted(torch.ones(1, 2))
    assert operators(tmp_path) == ["torch.ones.0.fwd", "torch.jit.ScriptModule.1.fwd"]
    found = _load(tmp_path / "torch.jit.ScriptModule.1.fwd.output.pt")["values"]["result"]
    assert torch.equal(found, scripted(torch.ones(1, 2)).detach())


def test_checkpointed_forwards_are_seen_when_they_run_again(device: str, tmp_path: Path, operators: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to(device)
    x = torch.ones(1, 2, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path)):
        checkpoint(layers, x, use_reentrant=False).sum().backward()
    # torch stops the second forward inside the last layer, as soon as all that backward needs is there.
    assert len([name for name in operators(tmp_path) if "torch.nn.Linear" in name and name.endswith("fwd")]) == 3


def test_what_was_written_before_a_kill_is_readable(tmp_path: Path, operators: Any) -> None:
    code = f"""
        import os, signal, time, torch
        from maca_tools import accuracy
        accuracy.start_record(output_dir={str(tmp_path)!r})
        x = torch.ones(100)
        while True:
            x = x + 1
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    order = tmp_path / "order.jsonl"
    while child.poll() is None and not (order.exists() and order.stat().st_size > 5000):
        pass
    child.send_signal(signal.SIGKILL)
    child.wait()
    found = operators(tmp_path)
    assert len(found) > 5
    for name in found[:-1]:
        _load(tmp_path / f"{name}.output.pt")


@pytest.mark.parametrize("end", ["start_record(enabled=False)", "record_switch(False)"])
@pytest.mark.parametrize("elements", [100_000, 4_000_000])
def test_a_full_disk_is_one_clear_error_and_no_half_file(elements: int, end: str, tmp_path: Path) -> None:
    code = f"""
        import resource, signal, torch
        from maca_tools import accuracy
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        accuracy.start_record(output_dir={str(tmp_path)!r}, record_stack=False)
        torch.ones(10)
        torch.ones({elements})
        accuracy.{end}
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode != 0 and "the record cannot be written" in done.stdout, done.stdout
    assert sorted(path.name for path in tmp_path.glob("*.pt"))[0].startswith("torch.ones.0")
    assert not list(tmp_path.glob("*.tmp"))
    for path in tmp_path.glob("*.pt"):
        _load(path)


@pytest.mark.parametrize("usual", [False, True], ids=["past the cache", "through the cache"])
def test_large_files_are_whole_whatever_the_file_system_can_do(
    usual: bool, device: str, tmp_path: Path, monkeypatch: Any
) -> None:
    from maca_tools.accuracy.data import direct_file

    if usual:
        monkeypatch.setattr(direct_file, "_DIRECT", 0)
    monkeypatch.setenv("MACA_ACCURACY_QUEUE_MB", "24")
    # Sizes around the stages and blocks; strides that are not row-major; one that goes without a copy.
    shapes = [(1 << 20, 1), (1 << 20, 2), ((1 << 20) + 7, 3), (1031, 1033), (1700, 1301)]
    tensors = [torch.randn(shape, device=device).t() for shape in shapes]
    with accuracy.record(output_dir=str(tmp_path)):
        for tensor in tensors:
            tensor.neg_()
    for number, tensor in enumerate(tensors):
        path = tmp_path / f"torch.Tensor.neg_.{number}.fwd.output.pt"
        assert zipfile.ZipFile(path).testzip() is None
        found = _load(path)["values"]["result"]
        assert torch.equal(found, tensor.cpu()) and found.stride() == tensor.stride()
        assert torch.equal(torch.load(path, weights_only=True, mmap=True)["values"]["result"], found)


def _whole_record(folder: Path, key: str = "") -> List[str]:
    """The names of all files of one stream: each must load, and be in the order file with its size."""
    place = folder / key
    with open(place / "order.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    promised = {f"{line['name']}.{line['part']}.pt": line["bytes"] for line in lines}
    assert len(promised) == len(lines)
    present = {entry.name: entry.stat().st_size for entry in os.scandir(place) if entry.is_file()}
    del present["record.json"], present["order.jsonl"]
    assert present == promised
    for name in present:
        _load(place / name)
    return sorted(present)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("elements, rounds", [(10, 40), (2_000_000, 6)], ids=["small", "big"])
def test_every_file_is_complete_when_record_switch_returns(
    level: int, elements: int, rounds: int, device: str, tmp_path: Path
) -> None:
    x = torch.ones(elements, device=device)
    accuracy.start_record(output_dir=str(tmp_path), record_level=level)
    for number in range(1, rounds + 1):
        for _ in range(5):
            x = x + 1
        accuracy.record_switch(False)
        assert len(_whole_record(tmp_path)) == 2 * 5 * number
        # Nothing is recorded, or written late, while the record is paused.
        x = x - 1
        accuracy.record_switch(True)
    accuracy.record_switch(False)
    before = _whole_record(tmp_path)
    accuracy.start_record(enabled=False)
    assert _whole_record(tmp_path) == before


def test_what_other_threads_recorded_is_complete_and_nothing_comes_later(device: str, tmp_path: Path) -> None:
    begun, ended = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        begun.set()
        assert ended.wait(60)

    layer = nn.Linear(4, 4).to(device)
    x = torch.ones(2, 4, device=device)

    def work() -> None:
        for _ in range(200):
            torch.relu(x)
        layer.register_forward_hook(wait)
        layer(x)

    accuracy.start_record(output_dir=str(tmp_path))
    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(60)
        accuracy.record_switch(False)
        names = _whole_record(tmp_path, "thread1")
    finally:
        ended.set()
        thread.join()
    assert len(names) == 2 * 200
    accuracy.start_record(enabled=False)
    # The module had not ended when the record was paused.
    assert _whole_record(tmp_path, "thread1") == names


@pytest.mark.parametrize("compiled", [True, False])
def test_every_way_to_a_summary_gives_the_same_numbers(compiled: bool, device: str, monkeypatch: Any) -> None:
    from maca_tools.accuracy.data import capture, summary

    if not compiled:
        monkeypatch.setattr(summary, "_sums", lambda: summary._sums_of_pieces)
    values = torch.randn(300_001)
    broken = values.clone()
    broken[[3, 150_000, 300_000]] = torch.tensor([float("inf"), float("nan"), float("-inf")])
    tensors = [values[:1], values[:255], values[:256], values, broken, broken[3], values[:0], torch.zeros(3)]
    # Of the last two float32 cannot hold the squares.
    tensors += [values[:300_000].view(3, -1).t(), values[:1000] * 1e25, values[:1000] * 1e-25]
    tensors += [values[:999].to(kind) for kind in (torch.float16, torch.bfloat16, torch.float64, torch.complex64)]
    tensors += [torch.arange(-5, 700), torch.tensor(7), torch.tensor(True), values > 0, nn.Parameter(values)]
    seen = summary.Seen()
    for plain in tensors:
        tensor = plain.detach().to(device)
        found = capture.summaries({"first": tensor, "again": [tensor]}, seen)
        assert found.signature == [[str(plain.dtype).replace("torch.", ""), list(plain.shape)]] * 2
        assert found.values["first"] == found.values["again"][0] or plain.numel() == 0
        # By a tensor that no shortcut takes, and by plain arithmetic.
        other = seen.summary(plain.detach(), found.values["first"]["dtype"], list(tensor.stride()), device, None)
        for one in (found.values["first"], other):
            assert one[capture.KIND] == "summary" and one["shape"] == list(plain.shape)
            assert one["stride"] == list(tensor.stride())
            whole = torch.view_as_real(plain) if plain.is_complex() else plain.detach()
            whole = whole.reshape(-1).double()
            data = plain.detach().contiguous()
            size = data.numel() * data.element_size()
            assert one["crc"] == zlib.crc32((ctypes.c_char * size).from_address(data.data_ptr()) if size else b"")
            finite = whole[torch.isfinite(whole)]
            assert (one["nan"], one["nan"] + one["inf"]) == (int(whole.isnan().sum()), whole.numel() - finite.numel())
            if not finite.numel():
                continue
            assert (one["min"], one["max"]) == (float(finite.min()), float(finite.max()))
            assert one["norm"] == pytest.approx(float(finite.norm()), rel=1e-5)
            assert one["mean"] == pytest.approx(float(finite.mean()), rel=1e-3, abs=1e-6)
            kept = torch.where(torch.isfinite(whole), whole, torch.zeros_like(whole))
            signs = summary._fixed_signs()[: len(kept)].double()
            sketch = torch.zeros(summary.SKETCH, dtype=torch.float64)
            sketch.index_add_(0, torch.arange(len(kept)) % summary.SKETCH, kept * signs)
            allowed = 1e-5 * one["norm"] + 1e-30
            assert summary.from_dict(one).sketch == pytest.approx(sketch.tolist(), rel=1e-4, abs=allowed)
    seen.close()


def test_small_files_are_archives_that_others_read(tmp_path: Path) -> None:
    from maca_tools.accuracy.data import tensor_file

    values = [torch.randn(5), torch.ones(2, 3, dtype=torch.bfloat16).t(), torch.zeros(0), torch.tensor(True)]
    content = {"values": [tensor_file.Tensor(value) for value in values], "text": "a" * 1000}
    sizes = [
        tensor_file.save(content, str(tmp_path / "tensors.pt"))[0],
        tensor_file.save_plain({"values": [], "text": "a" * 1000}, str(tmp_path / "plain.pt")),
    ]
    for name, size, wanted in (("tensors.pt", sizes[0], values), ("plain.pt", sizes[1], [])):
        assert (tmp_path / name).stat().st_size == size
        with zipfile.ZipFile(tmp_path / name) as archive:
            assert archive.testzip() is None
            assert [entry.filename for entry in archive.infolist()] == [
                "archive/data.pkl", "archive/byteorder", *[f"archive/data/{key}" for key in range(len(wanted))],
                "archive/version",
            ]  # fmt: skip
        for mapped in (False, True):
            found = torch.load(tmp_path / name, weights_only=True, mmap=mapped)
            assert found["text"] == "a" * 1000 and len(found["values"]) == len(wanted)
            for one, other in zip(found["values"], wanted):
                assert one.dtype == other.dtype and one.stride() == other.stride() and torch.equal(one, other)


def test_a_wrong_option_is_named(tmp_path: Path) -> None:
    for wrong in (
        {"record_level": 3},
        {"skip": -1},
        {"op_range": ["a"]},
        {"op_range": ["nonsense", None]},
        {"op_list": "relu"},
        {"ranks": [0]},
    ):
        with pytest.raises(accuracy.AccuracyError, match=next(iter(wrong))):
            accuracy.start_record(output_dir=str(tmp_path / "r"), **wrong)


def test_a_record_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(accuracy.AccuracyError, match="cannot be written"):
        accuracy.start_record(output_dir=str(tmp_path / "file" / "record"))
    assert (tmp_path / "file").read_text() == "mine"
    torch.ones(1)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(accuracy.AccuracyError, match="no record"):
        accuracy.start_record(output_dir=str(tmp_path))
    assert os.listdir(tmp_path) == ["letter.txt"]


def _run_ranks(code: str, count: int, folder: Path) -> None:
    """Run code in a process for each rank, over the loopback interface; one that hangs tells where.

    Where gloo's own connections fail while the ranks meet, at files of that name in `folder`, as now and then happens
    on a loaded machine, they meet once more.
    """
    watch = "import faulthandler; faulthandler.dump_traceback_later(120, exit=True)\n"
    command = [sys.executable, "-c", watch + textwrap.dedent(code)]
    variables = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    for attempts_left in (2, 1, 0):
        for meeting in folder.glob("meet*"):
            meeting.unlink()
        with tempfile.TemporaryFile("w+") as said:
            ranks = [subprocess.Popen([*command, str(rank)], env=variables, stderr=said) for rank in range(count)]
            while all(child.poll() in (None, 0) for child in ranks) and any(child.poll() is None for child in ranks):
                time.sleep(0.1)
            if any(child.poll() for child in ranks):
                time.sleep(1.0)  # for the others' own words
                for child in ranks:
                    child.kill()
            codes = [child.wait() for child in ranks]
            said.seek(0)
            words = said.read()
        if attempts_left and any(codes) and "connectFullMesh failed" in words:
            continue
        assert codes == [0] * count, words
        return


def test_gloo_ranks_record_into_their_folders(tmp_path: Path, operators: Any) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    code = f"""
        import sys, torch, torch.distributed as dist
        from torch.distributed import all_reduce
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
        accuracy.start_record(output_dir="{tmp_path}/rec")
        x = torch.ones(3) * (rank + 1)
        all_reduce(x)
        accuracy.start_record(enabled=False)
        dist.destroy_process_group()
    """
    _run_ranks(code, 2, tmp_path)
    for rank in range(2):
        assert "torch.distributed.all_reduce.2.fwd" in operators(tmp_path / "rec", f"rank{rank}")
        content = _load(tmp_path / "rec" / f"rank{rank}" / "torch.distributed.all_reduce.2.fwd.output.pt")
        assert content["values"]["after"]["args[0]"].tolist() == [3, 3, 3]
    from maca_tools.accuracy.compare import report

    result = report.generate(str(tmp_path / "rec"), str(tmp_path / "rec"), str(tmp_path))
    assert result.culprit is None and result.counts["same"] == 6


def test_a_group_can_be_destroyed_at_once_after_a_record_and_in_it(tmp_path: Path) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    # gloo's threads get a core only while this one waits: what they hold when work is done, they hold for long.
    # Upstream's destructor of the group waits for them with Python's lock, which they need to let the recorder go.
    code = f"""
        import os, sys, torch, torch.distributed as dist
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, [cores[rank % len(cores)]])
        model = torch.nn.Linear(3, 2)
        for number in range(6):
            before = set(os.listdir("/proc/self/task"))
            dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meet{{number}}", rank=rank, world_size=2)
            for thread in set(os.listdir("/proc/self/task")) - before:
                os.setpriority(os.PRIO_PROCESS, int(thread), 19)
            accuracy.start_record(output_dir="{tmp_path}/rec", record_level=1)
            if number % 3 == 0:
                torch.nn.parallel.DistributedDataParallel(model)(torch.ones(4, 3)).sum().backward()
            else:
                # Held: a tensor that only gloo's thread holds waits for the same lock, with a recorder or without.
                x = torch.ones(3)
                dist.all_reduce(x)
            if number % 2:
                accuracy.start_record(enabled=False)
            dist.destroy_process_group()
        accuracy.start_record(enabled=False)
    """
    _run_ranks(code, 2, tmp_path)


def test_a_merged_report_names_the_rank_that_parts(device: str, tmp_path: Path) -> None:
    if device == "cpu" or not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("needs a device and gloo")
    # Twice the same step on two ranks, tensors on the device, gradients exchanged by gloo; the second time one kernel
    # of rank 1 is wrong, whose error reaches rank 0 with the next exchange.
    code = f"""
        import sys, torch, torch.distributed as dist
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
        for folder, level, factor in (("a", 2, 1.0), ("b", 2, 1.01), ("a", 1, 1.0), ("b", 1, 1.01)):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).cuda()
            if rank == 1:
                forward = model[1].forward
                model[1].forward = lambda x, forward=forward, factor=factor: forward(x) * factor
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            x = torch.randn(4, 8).cuda() + rank
            with accuracy.record(output_dir="{tmp_path}/" + folder + str(level), record_level=level):
                for _ in range(2):
                    optimizer.zero_grad()
                    model(x).pow(2).sum().backward()
                    for param in model.parameters():
                        dist.all_reduce(param.grad)
                    optimizer.step()
        dist.destroy_process_group()
    """
    _run_ranks(code, 2, tmp_path)
    from maca_tools.accuracy.compare import report

    for level in (2, 1):
        result = report.generate(str(tmp_path / f"a{level}"), str(tmp_path / f"b{level}"), str(tmp_path))
        assert result.culprit is not None and result.text().startswith("First culprit: rank1/torch.nn.Tanh.1.fwd")
        assert result.counts["not compared"] == 0
        # Each exchange passes the error on, to rank 0 as well, whose own gradients agreed before it.
        with open(tmp_path / "accuracy_report.csv", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["part"] == "output"]
        exchanges = [row for row in rows if row["operator0"].startswith("torch.distributed.all_reduce")]
        assert {row["stream"] for row in exchanges} == {"rank0", "rank1"}
        assert {row["verdict"] for row in exchanges} == {"passed on"}
        assert any("inputs of rank1 differ" in row["reason"] for row in exchanges if row["stream"] == "rank0")
        assert {row["stream"] for row in rows if row["verdict"] == "wrong"} == {"rank1"}


def test_process_group_and_ranks_choose_who_records(tmp_path: Path, operators: Any) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    # Of the group of processes 1 and 2, only its second member, and once more with a wrong value there.
    code = f"""
        import sys, torch, torch.distributed as dist
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=3)
        group = dist.new_group([1, 2])
        for folder, factor in (("a", 2.0), ("b", 2.0 if rank < 2 else 3.0)):
            with accuracy.record(output_dir="{tmp_path}/" + folder, process_group=group, ranks=[1]):
                torch.ones(3) * 1
            with accuracy.record(output_dir="{tmp_path}/" + folder + "all", process_group=group):
                torch.ones(3) * rank
                torch.sigmoid(torch.ones(3)) if factor == 2.0 else torch.sigmoid(torch.ones(3)).mul_(2)
        dist.destroy_process_group()
    """
    _run_ranks(code, 3, tmp_path)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["rank1"]
    assert operators(tmp_path / "a", "rank1") == ["torch.ones.0.fwd", "torch.Tensor.mul.1.fwd"]
    assert sorted(path.name for path in (tmp_path / "aall").iterdir()) == ["rank0", "rank1"]
    # Numbers within the group: its member 0 is the process 1.
    factor = _load(tmp_path / "aall" / "rank0" / "torch.Tensor.mul.1.fwd.input.pt")["values"]["args"][1]
    assert factor == 1
    from maca_tools.accuracy.compare import report

    result = report.generate(str(tmp_path / "aall"), str(tmp_path / "ball"), str(tmp_path))
    # One report of both: rank0 agrees, rank1 has an operator more on one side.
    assert result.counts["same"] == 8 and result.counts["not compared"] == 1
    assert any(note.startswith("rank1: 1 operators are on one side only") for note in result.notes), result.notes
    text = (tmp_path / "accuracy_report.csv").read_text()
    assert ",rank0," in text and ",rank1," in text


def test_collectives_of_the_device_are_recorded(device: str, tmp_path: Path, operators: Any) -> None:
    if device == "cpu" or not torch.distributed.is_nccl_available():
        pytest.skip("needs a device with collectives of its own")
    # The simulated device has them within a process; between processes gloo carries its tensors.
    code = f"""
        import torch, torch.distributed as dist
        from maca_tools import accuracy
        dist.init_process_group("nccl", init_method="file://{tmp_path}/meet", rank=0, world_size=1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).cuda())
        for level in (2, 1, 0):
            with accuracy.record(output_dir="{tmp_path}/rec" + str(level), record_level=level, ranks=[0]):
                x = torch.full((4,), 2.0, device="cuda")
                dist.all_reduce(x)
                work = dist.all_reduce(x, async_op=True)
                work.wait()
                dist.broadcast(x, 0)
                dist.all_gather_into_tensor(torch.empty_like(x), x)
                dist.reduce_scatter_tensor(torch.empty_like(x), x)
                dist.all_to_all_single(torch.empty_like(x), x)
                model(torch.ones(4, 3, device="cuda")).sum().backward()
        dist.destroy_process_group()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)
    for level in (2, 1):
        found = [name.rsplit(".", 2)[0].rpartition(".")[2] for name in operators(tmp_path / f"rec{level}", "rank0")]
        collectives = [name for name in found if name.startswith(("all_", "broadcast", "reduce_"))]
        assert collectives == [
            "all_reduce", "all_reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor",
            "all_to_all_single", "all_reduce",
        ]  # fmt: skip
    content = _load(tmp_path / "rec2" / "rank0" / "torch.distributed.all_reduce.2.fwd.output.pt")
    assert content["values"]["after"]["args[0]"].tolist() == [2, 2, 2, 2]
    from maca_tools.accuracy.compare import report

    result = report.generate(str(tmp_path / "rec2"), str(tmp_path / "rec2"), str(tmp_path))
    assert result.culprit is None and result.counts["same"] == len(operators(tmp_path / "rec2", "rank0"))


def test_the_writer_says_how_far_it_is(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    from maca_tools.accuracy.recorder import writer

    monkeypatch.setattr(writer, "_PROGRESS_EVERY_S", 0.0)
    with accuracy.record(output_dir=str(tmp_path), record_stack=False):
        for _ in range(3):
            torch.ones(1000)
    lines = [line for line in capsys.readouterr().err.splitlines() if " files, " in line]
    assert lines[-1].startswith("accuracy: 6 files, 0.00 GB written, 0 queued"), lines


def test_the_gradient_exchange_of_ddp_is_an_operator(tmp_path: Path, operators: Any) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    code = f"""
        import sys, torch, torch.distributed as dist
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
        x = torch.ones(4, 3) * (rank + 1)
        def run():
            model.zero_grad()
            with model.no_sync():
                model(x).sum().backward()
            model(x).sum().backward()
            return [p.grad.clone() for p in model.parameters()]
        plain = run()
        with accuracy.record(output_dir="{tmp_path}/rec"):
            recorded = run()
        assert all(torch.equal(a, b) for a, b in zip(plain, recorded))
        dist.destroy_process_group()
    """
    _run_ranks(code, 2, tmp_path)
    for rank in range(2):
        folder = tmp_path / "rec" / f"rank{rank}"
        found = [name for name in operators(tmp_path / "rec", f"rank{rank}") if "DistributedDataParallel" in name]
        assert len(found) == 1, "under no_sync there is no exchange"
        before, after = (_load(folder / f"{found[0]}.{part}.pt")["values"]["grads"] for part in ("input", "output"))
        # Both backward passes of this rank, and the mean over the ranks.
        assert before["weight"].tolist() == [[8.0 * (rank + 1)] * 3] * 2
        assert after["weight"].tolist() == [[12.0] * 3] * 2 and after["bias"].tolist() == [8.0, 8.0]


def test_a_thread_that_ran_before_is_seen_from_its_first_module_on_and_not_after_the_end(
    device: str, tmp_path: Path, operators: Any
) -> None:
    steps = [threading.Event() for _ in range(6)]

    def work() -> None:
        layer = nn.ReLU()
        x = torch.ones(2, device=device)
        for number in (0, 2, 4):
            steps[number].wait(60)
            (layer(x) + 1).sum()
            steps[number + 1].set()

    thread = threading.Thread(target=work)
    thread.start()
    with accuracy.record(output_dir=str(tmp_path / "a")):
        steps[0].set()
        assert steps[1].wait(60)
    steps[2].set()
    assert steps[3].wait(60)
    with accuracy.record(output_dir=str(tmp_path / "b"), record_level=1):
        torch.zeros(1)
        steps[4].set()
        assert steps[5].wait(60)
    thread.join()
    for folder in ("a", "b"):
        assert operators(tmp_path / folder, "thread1") == [
            "torch.nn.ReLU.0.fwd", "torch.Tensor.add.1.fwd", "torch.Tensor.sum.2.fwd",
        ]  # fmt: skip


def test_a_large_operator_is_recorded_without_holding_copies_of_it(
    device: str, tmp_path: Path, operators: Any, monkeypatch: Any
) -> None:
    from maca_tools.accuracy.recorder import session

    monkeypatch.setenv("MACA_ACCURACY_QUEUE_MB", "4")
    weights = [torch.nn.Parameter(torch.randn(500_000, device=device)) for _ in range(5)]
    optimizer = torch.optim.AdamW(weights)
    for weight in weights:
        weight.grad = weight.detach() * 0.1
    before = [weight.detach().to("cpu", copy=True) for weight in weights]
    accuracy.start_record(output_dir=str(tmp_path))
    optimizer.step()
    running = session.present()
    accuracy.start_record(enabled=False)
    assert running is not None and running.writer.most_queued < 4 << 20
    content = _load(tmp_path / "torch.optim.AdamW.0.fwd.input.pt")["values"]
    assert all(torch.equal(a, b) for a, b in zip(content["params"], before))
    content = _load(tmp_path / "torch.optim.AdamW.0.fwd.output.pt")["values"]
    assert all(torch.equal(a, b.detach().cpu()) for a, b in zip(content["params"], weights))


def test_an_operator_that_fails_leaves_no_file(device: str, tmp_path: Path, operators: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("MACA_ACCURACY_QUEUE_MB", "1")
    x = torch.ones(700, 700, device=device)
    with accuracy.record(output_dir=str(tmp_path)):
        with pytest.raises(RuntimeError):
            torch.mm(x, x[:3])
        torch.relu(x)
    # x[:3] is an operator of its own; the product that failed has no number.
    assert operators(tmp_path) == ["torch.Tensor.__getitem__.0.fwd", "torch.relu.1.fwd"]
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("simulated", [True, False])
def test_level_1_waits_once_for_each_tensor_where_memory_is_not_the_hosts(
    simulated: bool, device: str, tmp_path: Path, monkeypatch: Any
) -> None:
    if device == "cpu":
        pytest.skip("the CPU has nothing to wait for")
    from maca_tools.accuracy.data import host_memory

    monkeypatch.setattr(host_memory, "_SIMULATED", simulated)
    x = torch.ones(8, device=device)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        for run, wanted in ((False, 0), (True, 0 if simulated else 3)):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                with accuracy.record(enabled=run, output_dir=str(tmp_path), record_level=1):
                    torch.add(x, x)
            waits = [warning for warning in seen if "synchroniz" in str(warning.message)]
            assert len(waits) == wanted, [str(warning.message) for warning in seen]
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_forked_child_records_only_if_it_asks(tmp_path: Path, operators: Any) -> None:
    def child(asks: bool) -> None:
        if asks:
            accuracy.start_record(output_dir=str(tmp_path))
        torch.ones(2) + 1
        accuracy.start_record(enabled=False)

    context = multiprocessing.get_context("fork")
    with accuracy.record(output_dir=str(tmp_path)):
        torch.zeros(1)
        for asks in (False, True):
            process = context.Process(target=child, args=(asks,))
            process.start()
            process.join(120)
            assert process.exitcode == 0
    assert operators(tmp_path) == ["torch.zeros.0.fwd"]
    folders = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert len(folders) == 1 and operators(tmp_path, folders[0])[:1] == ["torch.ones.0.fwd"]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_trace_holds_nothing_of_the_recorder(level: int, device: str, tmp_path: Path, operators: Any) -> None:
    def double(x: Any) -> Any:
        return torch.relu(x + 1) * 2

    model = nn.Sequential(nn.Linear(10, 3), nn.ReLU()).to(device)
    x = torch.randn(400, 10, device=device)
    plain = [str(torch.jit.trace(what, x).graph) for what in (double, model)]
    with accuracy.record(output_dir=str(tmp_path), record_level=level):
        traced = [torch.jit.trace(what, x) for what in (double, model)]
        torch.zeros(1)
    strip = re.compile(r"#.*|%[\w.]+|___torch_mangle_\d+\.").sub
    assert [strip("", str(found.graph)) for found in traced] == [strip("", graph) for graph in plain]
    assert torch.equal(traced[0](x * 3), double(x * 3)) and torch.equal(traced[1](x * 3), model(x * 3))
    # After the traces it records again.
    if level:
        assert operators(tmp_path)[-1].startswith("torch.zeros.")


def test_torch_compile_works_while_a_record_runs(tmp_path: Path, operators: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.ones(2, 4)
    expected = model(x)
    compiled = torch.compile(model, backend="eager")
    with accuracy.record(output_dir=str(tmp_path)):
        found = compiled(x)
        found.sum().backward()
    assert torch.equal(found, expected)
    names = operators(tmp_path)
    assert names[0] == "torch.compile.OptimizedModule.0.fwd" and names[-1].endswith(".bwd")
