"""Record what operators read and wrote on one device, and compare two such records. See docs/accuracy.md."""

import contextlib
import multiprocessing
import os
from typing import Any, Iterator, Optional, Sequence

from maca_tools.accuracy import options as _options
from maca_tools.accuracy.data.summary import TensorSummary
from maca_tools.accuracy.errors import AccuracyError
from maca_tools.accuracy.recorder import session as _sessions

__all__ = ["AccuracyError", "TensorSummary", "gen_report", "record", "record_switch", "start_record"]


def start_record(
    enabled: bool = True,
    output_dir: str = "./record_dir",
    record_level: int = 2,
    record_stack: bool = True,
    record_input: bool = True,
    record_output: bool = True,
    op_range: Sequence[Optional[str]] = (),
    op_list: Sequence[str] = (),
    skip: int = 0,
    process_group: Any = None,
    ranks: Sequence[int] = (),
) -> None:
    """Record this thread's and later threads' operators into output_dir until record_switch(False) or the end.

    record_level: 2 whole tensors, 1 a TensorSummary of each, 0 nothing but a log of the operators that are further from
    a double precision run on the CPU than thresholds.json allows (check.jsonl).
    op_range: [] or [first, end], full names such as "torch.nn.Conv1d.6.fwd" or None for an open end; end is excluded.
    op_list: full names or classes ("relu" takes torch.nn.ReLU, torch.relu_, ...); [] is everything.
    skip: how many operators to pass over after each one that is recorded.
    process_group, ranks: which processes record, each into output_dir/rank<N>; N and ranks count in that group.
    Raises AccuracyError for a wrong option and for a folder that cannot be used.
    """
    chosen = _options.check(
        os.fspath(output_dir), record_level, record_stack, record_input, record_output, op_range, op_list, skip, ranks
    )
    if not enabled:
        _sessions.finish()
        return
    folder = _folder(chosen, process_group)
    if folder is None:
        _sessions.finish()
        return
    _sessions.begin(chosen, folder)


@contextlib.contextmanager
def record(
    enabled: bool = True,
    output_dir: str = "./record_dir",
    record_level: int = 2,
    record_stack: bool = True,
    record_input: bool = True,
    record_output: bool = True,
    op_range: Sequence[Optional[str]] = (),
    op_list: Sequence[str] = (),
    skip: int = 0,
    process_group: Any = None,
    ranks: Sequence[int] = (),
) -> Iterator[None]:
    """start_record for the body of a with statement; at its end the record is complete on the disk."""
    if not enabled:
        yield
        return
    start_record(
        True,
        output_dir,
        record_level,
        record_stack,
        record_input,
        record_output,
        op_range,
        op_list,
        skip,
        process_group,
        ranks,
    )
    try:
        yield
    finally:
        _sessions.finish()


def record_switch(enabled: bool) -> None:
    """Pause and resume the record that start_record began; numbers go on where they were.

    When it returns with enabled=False, nothing of the recorder is left in torch, and the files of every operator that
    had ended before are complete; an operator of another thread that is still running is not recorded. Raises
    AccuracyError where no record was started, and where a file could not be written.
    """
    session = _sessions.present()
    if session is None:
        if enabled:
            raise AccuracyError("record_switch(True) without start_record before it")
        return
    if enabled:
        session.start()
    else:
        session.pause()


def gen_report(dir0: str, dir1: str, output_dir: str = "./") -> None:
    """Compare two records, leave accuracy_report.xlsx, .csv and .html in output_dir, print the first culprit."""
    from maca_tools.accuracy.compare import report

    session = _sessions.present()
    if session is not None and os.path.abspath(session.folder).startswith(
        (os.path.abspath(os.fspath(dir0)), os.path.abspath(os.fspath(dir1)))
    ):
        # The record that is compared may still be open in this process.
        _sessions.finish()
    print(report.generate(os.fspath(dir0), os.fspath(dir1), os.fspath(output_dir)).text())


def _folder(chosen: "_options.Options", process_group: Any) -> Optional[str]:
    """Where this process records, None if it does not."""
    folder = chosen.output_dir
    import torch

    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank = distributed.get_rank(process_group) if process_group is not None else distributed.get_rank()
        if rank < 0 or (chosen.ranks and rank not in chosen.ranks):
            return None
        return os.path.join(folder, f"rank{rank}")
    if process_group is not None or chosen.ranks:
        raise AccuracyError(
            "process_group and ranks need torch.distributed: call start_record after init_process_group"
        )
    identity = multiprocessing.current_process()._identity
    if identity:
        # A child that records into its parent's folder gets one of its own inside.
        return os.path.join(folder, "process" + "_".join(str(number) for number in identity))
    return folder
