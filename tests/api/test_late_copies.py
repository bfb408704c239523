"""MACA_ASYNC=late: programs that forget to wait for a copy. Each has the right value otherwise."""

import re
import subprocess
from typing import Callable, Dict, Tuple

import pytest

Script = Callable[..., str]
Process = Callable[..., "subprocess.CompletedProcess[str]"]
PROLOGUE = """
import torch
pinned = torch.zeros(256).pin_memory()
device = torch.arange(256, device="cuda", dtype=torch.float32)
side = torch.cuda.Stream()
main = torch.cuda.current_stream()
"""

# What each program does, and the sum that it expects.
SILENT_VALUES: Dict[str, Tuple[str, str]] = {
    "the host reads without waiting": (
        """
        pinned.copy_(device, non_blocking=True)
        print(pinned.sum().item())
        """,
        "32640.0",
    ),
    "the host waits for another stream": (
        """
        with torch.cuda.stream(side):
            side.wait_stream(main)
            pinned.copy_(device, non_blocking=True)
        main.synchronize()
        print(pinned.sum().item())
        """,
        "32640.0",
    ),
    "the event was recorded before the copy": (
        """
        event = main.record_event()
        pinned.copy_(device, non_blocking=True)
        event.synchronize()
        print(pinned.sum().item())
        """,
        "32640.0",
    ),
    "the event was recorded on another stream": (
        """
        with torch.cuda.stream(side):
            pinned.copy_(device, non_blocking=True)
        event = main.record_event()
        event.synchronize()
        print(pinned.sum().item())
        """,
        "32640.0",
    ),
    "a stream waits, the host does not": (
        """
        with torch.cuda.stream(side):
            pinned.copy_(device, non_blocking=True)
        main.wait_stream(side)
        print(pinned.sum().item())
        """,
        "32640.0",
    ),
    "another copy is waited for": (
        """
        other = torch.zeros(256).pin_memory()
        other.copy_(device, non_blocking=True)
        event = main.record_event()
        pinned.copy_(device, non_blocking=True)
        event.synchronize()
        assert other.sum().item() == 32640
        print(pinned.sum().item())
        """,
        "32640.0",
    ),
    "work behind the copy is taken for waiting": (
        """
        pinned.copy_(device, non_blocking=True)
        device.add_(1).mul_(2)
        print(pinned.sum().item())
        """,
        "32640.0",
    ),
    "an array over pinned memory": (
        """
        array = pinned.numpy()
        pinned.copy_(device, non_blocking=True)
        print(float(array.sum()))
        """,
        "32640.0",
    ),
    "to() makes pinned memory for a copy that does not wait": (
        """
        print(device.to("cpu", non_blocking=True).sum().item())
        """,
        "32640.0",
    ),
    "several results, one wait too early": (
        """
        parts = [torch.zeros(64).pin_memory() for _ in range(4)]
        for i, part in enumerate(parts):
            part.copy_(device[64 * i : 64 * i + 64], non_blocking=True)
            if i == 2:
                torch.cuda.synchronize()
        print(sum(part.sum().item() for part in parts))
        """,
        "32640.0",
    ),
    "the source is filled again before it is read": (
        """
        pinned.fill_(1)
        device.copy_(pinned, non_blocking=True)
        pinned.fill_(2)
        print(device.sum().item())
        """,
        "256.0",
    ),
    "one staging buffer for two batches": (
        """
        batches = []
        for value in (1, 2):
            pinned.fill_(value)
            batches.append(pinned.to("cuda", non_blocking=True))
        print((batches[0] * 10 + batches[1]).sum().item())
        """,
        str(256 * 12.0),
    ),
    "a prefetcher that fills its buffer too early": (
        """
        with torch.cuda.stream(side):
            pinned.fill_(3)
            batch = pinned.to("cuda", non_blocking=True)
            pinned.fill_(4)
        main.wait_stream(side)
        print(batch.sum().item())
        """,
        "768.0",
    ),
    "the source is an array that changes": (
        """
        array = pinned.numpy()
        array[:] = 5
        device.copy_(pinned, non_blocking=True)
        array[:] = 6
        print(device.sum().item())
        """,
        "1280.0",
    ),
}

# What each program does, and what is said about it. Its value may be right.
REPORTED: Dict[str, Tuple[str, str]] = {
    "the source changes while work uses the copy": (
        """
        pinned.fill_(1)
        device.copy_(pinned, non_blocking=True)
        device.add_(1)
        pinned.fill_(2)
        torch.cuda.synchronize()
        """,
        r"pinned memory was written while a copy from it on the default stream \(<string>:\d+\) was under way; "
        r"found at <string>:\d+",
    ),
    "the target is written while the copy is under way": (
        """
        pinned.copy_(device, non_blocking=True)
        pinned[3] = 1
        torch.cuda.synchronize()
        """,
        r"the host wrote to pinned memory while a copy to it on the default stream \(<string>:\d+\) was under way",
    ),
    "two streams copy to one buffer": (
        """
        side.wait_stream(main)
        pinned.copy_(device, non_blocking=True)
        with torch.cuda.stream(side):
            pinned.copy_(device, non_blocking=True)
        torch.cuda.synchronize()
        """,
        r"a copy on stream \d+ \(<string>:\d+\) uses pinned memory that a copy on the default stream "
        r"\(<string>:\d+\) writes, and does not come after that",
    ),
    "a result is sent on by a stream that has not waited": (
        """
        side.wait_stream(main)
        pinned.copy_(device, non_blocking=True)
        with torch.cuda.stream(side):
            pinned.to("cuda", non_blocking=True).add_(1)
        torch.cuda.synchronize()
        """,
        r"a copy on stream \d+ \(<string>:\d+\) uses pinned memory that a copy on the default stream",
    ),
}

# Programs that wait as they should.
RIGHT: Dict[str, Tuple[str, str]] = {
    "synchronize": (
        "pinned.copy_(device, non_blocking=True); torch.cuda.synchronize(); print(pinned.sum().item())",
        "32640.0",
    ),
    "stream": ("pinned.copy_(device, non_blocking=True); main.synchronize(); print(pinned.sum().item())", "32640.0"),
    "event": (
        "pinned.copy_(device, non_blocking=True); main.record_event().synchronize(); print(pinned.sum().item())",
        "32640.0",
    ),
    "query": (
        "pinned.copy_(device, non_blocking=True); e = main.record_event()\nwhile not e.query(): pass\n"
        "print(pinned.sum().item())",
        "32640.0",
    ),
    "through another stream": (
        "pinned.copy_(device, non_blocking=True); side.wait_stream(main); side.synchronize()\n"
        "print(pinned.sum().item())",
        "32640.0",
    ),
    "a number of the device": (
        "pinned.copy_(device, non_blocking=True); device.sum().item(); print(pinned.sum().item())",
        "32640.0",
    ),
    "a copy that waits": ("print(pinned.copy_(device).sum().item())", "32640.0"),
    "memory that is not pinned": ("print(torch.zeros(256).copy_(device, non_blocking=True).sum().item())", "32640.0"),
    "out and in again in order": (
        "pinned.copy_(device, non_blocking=True); again = pinned.to('cuda', non_blocking=True)\n"
        "print(again.sum().item())",
        "32640.0",
    ),
    "a buffer that is waited for": (
        "total = 0\nfor value in (1, 2):\n    pinned.fill_(value)\n"
        "    batch = pinned.to('cuda', non_blocking=True)\n    main.synchronize()\n    total += batch.sum().item()\n"
        "print(total)",
        "768.0",
    ),
    "pinned tensors of the allocator": (
        "total = 0\nfor value in range(20):\n    x = torch.full((256,), float(value)).pin_memory()\n"
        "    total += x.to('cuda', non_blocking=True).sum().item()\n    del x\nprint(total)",
        "48640.0",
    ),
}


def dedented(body: str) -> str:
    lines = body.strip("\n").split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines)


Outcome = Tuple[str, str]  # what a program has printed, and what was said on stderr
Outcomes = Dict[str, Outcome]


def run_all(process: Process, **variables: str) -> Outcomes:
    """Run all programs, one after the other in one process, each in a module of its own with its name as the file's."""
    programs = {**SILENT_VALUES, **REPORTED, **RIGHT}
    bodies = {name: dedented(body) for name, (body, _) in programs.items()}
    code = f"""
import os, sys
PROLOGUE, bodies = {PROLOGUE!r}, {bodies!r}
import torch
for name, body in bodies.items():
    for stream in (sys.stdout, sys.stderr):
        print("=====" + name, file=stream, flush=True)
    names = {{}}
    exec(PROLOGUE, names)
    exec(compile(body, name, "exec"), names)
    torch.cuda.synchronize()
"""
    done = process(code, env=variables)
    printed, said = (
        {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in text.split("=====")[1:]}
        for text in (done.stdout, done.stderr)
    )
    return {name: (printed[name], said[name]) for name in programs}


@pytest.fixture(scope="module")
def plain(process: Process) -> Outcomes:
    """Return what the programs do without the mode."""
    return run_all(process)


@pytest.fixture(scope="module")
def late(process: Process) -> Outcomes:
    """Return what they do in late mode."""
    return run_all(process, MACA_ASYNC="late")


@pytest.mark.parametrize("bug", SILENT_VALUES)
def test_a_missing_wait_is_silent_and_becomes_a_wrong_value(plain: Outcomes, late: Outcomes, bug: str) -> None:
    expected = SILENT_VALUES[bug][1]
    assert plain[bug] == (expected, "")
    assert late[bug][0] != expected


@pytest.mark.parametrize("bug", REPORTED)
def test_a_missing_wait_is_silent_and_becomes_a_report(plain: Outcomes, late: Outcomes, bug: str) -> None:
    assert plain[bug] == ("", "")
    assert re.search(REPORTED[bug][1].replace("<string>", bug), late[bug][1]), late[bug][1]


@pytest.mark.parametrize("way", RIGHT)
def test_programs_that_wait_are_right_and_nothing_is_said(late: Outcomes, way: str) -> None:
    assert late[way] == (RIGHT[way][1], "")


def test_the_value_repeats_and_follows_the_seed(script: Script) -> None:
    body = PROLOGUE + "pinned.copy_(device, non_blocking=True)\nprint(pinned.view(torch.int32).sum().item())"
    values = [script(body, env={"MACA_ASYNC": "late", "MACA_SEED": seed}) for seed in ("1", "1", "2")]
    assert values[0] == values[1] != values[2]


def test_a_value_that_is_none_is_named(script: Script) -> None:
    said = script("import os; os.dup2(1, 2); import torch; torch.ones(1).cuda()", env={"MACA_ASYNC": "early"})
    assert "MACA_ASYNC is 'early'" in said
