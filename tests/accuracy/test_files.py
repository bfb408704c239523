"""The files of a record: whole or not there, whatever happens to the process or the disk."""

import os
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from maca_tools import accuracy

from .conftest import load, whole_record


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
        load(tmp_path / f"{name}.output.pt")


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
        load(path)


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
        found = load(path)["values"]["result"]
        assert torch.equal(found, tensor.cpu()) and found.stride() == tensor.stride()
        assert torch.equal(torch.load(str(path), weights_only=True, mmap=True)["values"]["result"], found)


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
        assert len(whole_record(tmp_path)) == 2 * 5 * number
        # Nothing is recorded, or written late, while the record is paused.
        x = x - 1
        accuracy.record_switch(True)
    accuracy.record_switch(False)
    before = whole_record(tmp_path)
    accuracy.start_record(enabled=False)
    assert whole_record(tmp_path) == before


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
            found = torch.load(str(tmp_path / name), weights_only=True, mmap=mapped)
            assert found["text"] == "a" * 1000 and len(found["values"]) == len(wanted)
            for one, other in zip(found["values"], wanted):
                assert one.dtype == other.dtype and one.stride() == other.stride() and torch.equal(one, other)


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


def test_the_writer_says_how_far_it_is(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    from maca_tools.accuracy.recorder import writer

    monkeypatch.setattr(writer, "_PROGRESS_EVERY_S", 0.0)
    with accuracy.record(output_dir=str(tmp_path), record_stack=False):
        for _ in range(3):
            torch.ones(1000)
    lines = [line for line in capsys.readouterr().err.splitlines() if " files, " in line]
    assert lines[-1].startswith("accuracy: 6 files, 0.00 GB written, 0 queued"), lines


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
    content = load(tmp_path / "torch.optim.AdamW.0.fwd.input.pt")["values"]
    assert all(torch.equal(a, b) for a, b in zip(content["params"], before))
    content = load(tmp_path / "torch.optim.AdamW.0.fwd.output.pt")["values"]
    assert all(torch.equal(a, b.detach().cpu()) for a, b in zip(content["params"], weights))


def test_an_operator_that_fails_leaves_no_file(device: str, tmp_path: Path, operators: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("MACA_ACCURACY_QUEUE_MB", "1")
    x = torch.ones(700, 700, device=device)
    with accuracy.record(output_dir=str(tmp_path)):
        with pytest.raises(RuntimeError):
            torch.mm(x, x.narrow(0, 0, 3))
        torch.relu(x)
    # narrow is an operator of its own; the product that failed has no number.
    assert operators(tmp_path) == ["torch.Tensor.narrow.0.fwd", "torch.relu.1.fwd"]
    assert not list(tmp_path.glob("*.tmp"))
