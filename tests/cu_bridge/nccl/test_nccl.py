"""NCCL of the SDK: values of every collective, and what happens when ranks fail or disagree."""

import pathlib
from typing import Callable

import pytest


@pytest.mark.parametrize("ranks", ["1", "2", "3", "8"])
@pytest.mark.parametrize("mode", ["processes", "threads"])
def test_every_collective_has_the_right_values(run_ranks: Callable[..., object], mode: str, ranks: str) -> None:
    # One element, some that go within the shared block, some that are read from the ranks' memory.
    counts = ("1", "1000", "20001") if ranks != "8" else ("3", "9001")
    run_ranks("nccl_operations.cpp", mode, ranks, *counts, MACA_DEVICE_COUNT="8")


@pytest.mark.parametrize(
    "case",
    [
        "same-bits",
        "mismatches",
        "killed",
        "aborted",
        "aborted-receiver",
        "split",
        "non-blocking",
        "wrong-joins",
        "buffers",
        "asynchronous",
        "different-order",
        "several-streams",
        "messages",
        "forked",
        "many-ranks",
    ],
)
def test_communicators(run_ranks: Callable[..., object], case: str) -> None:
    run_ranks("nccl_cases.cpp", case, MACA_DEVICE_COUNT="32")


def test_a_killed_rank_is_an_error_for_the_others_and_leaves_nothing_behind(run_ranks: Callable[..., object]) -> None:
    folder = pathlib.Path("/dev/shm")
    before = set(folder.iterdir()) if folder.is_dir() else set()
    run_ranks("nccl_cases.cpp", "killed-often", "12", MACA_DEVICE_COUNT="3")
    after = set(folder.iterdir()) if folder.is_dir() else set()
    assert not {path for path in after - before if "nccl" in path.name}


def test_what_ranks_do_is_told_where_nccl_debug_asks_for_it(
    run_ranks: Callable[..., object], tmp_path: pathlib.Path
) -> None:
    variables = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(tmp_path / "log.%h.%p"), "NCCL_ALGO": "Ring"}
    run_ranks("nccl_cases.cpp", "mismatches", MACA_DEVICE_COUNT="3", **variables)
    logs = [log for log in (path.read_text() for path in tmp_path.glob("log.*")) if "of 3" in log]
    assert logs and len(logs) % 3 == 0  # a file for each process, three in most of the cases
    for log in logs:
        assert "NCCL INFO communicator" in log
        assert log.count("without an effect on the simulated device: NCCL_ALGO") == 1
        assert "NCCL WARN the ranks' collectives differ" in log
