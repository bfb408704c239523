"""Threads and child processes, each with a record of its own."""

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import torch
from torch import nn

from maca_tools import accuracy

from .conftest import whole_record


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
        names = whole_record(tmp_path, "thread1")
    finally:
        ended.set()
        thread.join()
    assert len(names) == 2 * 200
    accuracy.start_record(enabled=False)
    # The module had not ended when the record was paused.
    assert whole_record(tmp_path, "thread1") == names


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
