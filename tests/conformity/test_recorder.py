"""What the recorder spares upstream's test tools has the results of what it replaces."""

from __future__ import annotations

import inspect
import sys
import unittest
from typing import Any

import pytest
import torch
from recorder import frames_alone, quicken_test_tools

found: list[Any] = []


class TestOfUpstream(unittest.TestCase):
    __test__ = False
    # Its identification has three parts, as where upstream's file is run by itself.
    __module__ = "upstream"

    def test_it(self) -> None:
        found.append(sys.modules["torch.testing._internal.common_utils"].extract_test_fn())


def test_frames_are_those_of_inspect() -> None:
    def names(frames: list[inspect.FrameInfo]) -> list[tuple[object, str, str]]:
        return [(one.frame, one.filename, one.function) for one in frames]

    assert names(frames_alone()) == names(inspect.stack(context=0))


def test_the_running_test_is_found_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = pytest.importorskip("torch.testing._internal.common_utils")
    if not hasattr(tools, "extract_test_fn"):
        pytest.skip("this release's tools do not look for the running test")

    def look() -> str:
        TestOfUpstream("test_it").debug()
        return found.pop().__name__

    monkeypatch.setattr(tools, "inspect", inspect)
    slowly = look()
    quicken_test_tools()
    assert tools.inspect is not inspect
    assert look() == slowly == "test_it"


def test_a_seed_leaves_nothing_behind_for_devices_that_are_not_there() -> None:
    if not hasattr(torch, "xpu"):
        pytest.skip("this release knows no such device")
    torch.manual_seed(5)
    wanted = torch.rand(4), torch.rand(4, device="cuda")
    quicken_test_tools()
    waiting = len(torch.xpu._queued_calls)
    torch.manual_seed(5)
    assert len(torch.xpu._queued_calls) == waiting
    assert torch.equal(torch.rand(4), wanted[0])
    assert torch.equal(torch.rand(4, device="cuda"), wanted[1])
