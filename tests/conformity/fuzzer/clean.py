"""Processes without a history: each is forked from one that has imported torch and never used the device.

A crash of such a process is an answer like any other.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, List, Optional, Sequence, Tuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

TIMEOUT = 120.0
Signature = Tuple[str, str, str]


class Clean:
    """The process from which the others are forked; started at the first question."""

    def __init__(self) -> None:
        self.process: Optional[subprocess.Popen[bytes]] = None

    def ask(self, before: Sequence[Sequence[Any]], steps: Sequence[Any]) -> Any:
        """The difference that ``steps`` show in a process that ran the programs ``before``; the word of a crash; None."""
        if self.process is None:
            variables = {**os.environ, "PYTORCH_DEFAULT_NCHW": "1"}
            command = [sys.executable, str(Path(__file__).resolve())]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables)
        assert self.process.stdin is not None and self.process.stdout is not None
        pickle.dump((list(map(list, before)), list(steps)), self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(30)
            self.process = None

    def __enter__(self) -> Clean:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def import_without_device() -> None:
    """Import upstream's OpInfo, which asks what the device can do, without using the device."""
    import torch

    kept = {name: getattr(torch.cuda, name) for name in ("is_available", "device_count", "get_device_capability")}
    torch.cuda.is_available, torch.cuda.device_count = lambda: True, lambda: 1
    torch.cuda.get_device_capability = lambda device=None: (8, 0)
    try:
        import torch.testing._internal.common_methods_invocations
    finally:
        for name, value in kept.items():
            setattr(torch.cuda, name, value)


def answer(before: List[List[Any]], steps: List[Any]) -> Any:
    """In a forked process."""
    from fuzzer import expectations, session

    expected = expectations.load()
    for program in before:
        session.run_steps(program, expected)
    outcome = session.run_steps(steps, expected)
    return outcome.difference, outcome.raised, len(outcome.steps)


def forked(before: List[List[Any]], steps: List[Any]) -> Any:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as file:
                pickle.dump(answer(before, steps), file)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    content, end = b"", time.monotonic() + TIMEOUT * (1 + len(before) / 100)
    with os.fdopen(reading, "rb", buffering=0) as file:
        while True:
            ready = select.select([file], [], [], max(0.0, end - time.monotonic()))[0]
            part = file.read(1 << 16) if ready else b""
            if not ready:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "timeout"
            if not part:
                break
            content += part
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"crash: signal {os.WTERMSIG(status)}"
    if not content:
        return "crash: no answer"
    return pickle.loads(content)


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    while True:
        try:
            before, steps = pickle.load(questions)
        except EOFError:
            return
        pickle.dump(forked(before, steps), answers)
        answers.flush()


if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import_without_device()
    import torch

    torch.set_num_threads(1)
    import fuzzer.session  # noqa: F401

    with contextlib.suppress(KeyboardInterrupt):
        serve(sys.stdin.buffer, replies)
