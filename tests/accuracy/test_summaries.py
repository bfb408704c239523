"""Level 1: what a summary says, however it was computed."""

import ctypes
import threading
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from maca_tools import accuracy

from .conftest import load


def test_a_summary_says_what_the_tensor_held(device: str, tmp_path: Path) -> None:
    x = torch.tensor([1.0, float("nan"), float("inf"), -3.0], device=device)
    with accuracy.record(output_dir=str(tmp_path), record_level=1):
        x.clone()
    found = load(tmp_path / "torch.Tensor.clone.0.fwd.output.pt")["values"]["result"]
    assert (found["nan"], found["inf"], found["min"], found["max"], found["mean"]) == (1, 1, -3.0, 1.0, -1.0)


def test_level_1_sees_a_change_that_no_version_counts(device: str, tmp_path: Path) -> None:
    x = torch.ones(5000, device=device)
    with accuracy.record(output_dir=str(tmp_path), record_level=1):
        torch.neg(x)
        x.data[7] = 5.0
        torch.neg(x)
        torch.neg(x)
    found = [
        load(tmp_path / f"{name}.fwd.input.pt")["values"]["args"][0]
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
