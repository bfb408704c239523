"""The fuzzer sees what it is made for: each kind of difference is planted once, and found."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest
import torch
from fuzzer import expectations, session
from fuzzer.comparison import Difference
from fuzzer.memory import overlaps
from fuzzer.program import Side, Step

STEPS = [
    Step("t0 = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float32, device=device).view([2, 2])", "tensor", "exact"),
    Step("t1 = t0.t()", "view", "exact"),
    Step("t2 = torch.tensor([1, 2], dtype=torch.int64, device=device)", "tensor", "exact"),
    Step("t4 = t2.view([2])", "view", "exact"),
    Step("t3 = torch.mul(t1, t2)", "mul", "pure"),
]


def planted(change: Callable[[Dict[str, Any]], None]) -> Any:
    """The difference that is found when something happens to the device's names after the last step."""

    def alter(side: Side, step: Step) -> None:
        if step is STEPS[-1]:
            change(side.names)

    return session.run_steps(STEPS, alter=alter).difference


def assign(name: str, value: Callable[[Dict[str, Any]], Any]) -> Callable[[Dict[str, Any]], None]:
    return lambda names: names.__setitem__(name, value(names))


PLANTED: Dict[str, Callable[[Dict[str, Any]], None]] = {
    "values": lambda names: names["t3"][0].mul_(1.001),
    "dtype": assign("t3", lambda names: names["t3"].double()),
    "shape": assign("t3", lambda names: names["t3"].reshape(4)),
    "strides": assign("t3", lambda names: names["t3"].contiguous()),
    "offset": assign("t3", lambda names: torch.stack([names["t3"].t(), names["t3"].t()])[1].t()),
    "device": assign("t3", lambda names: names["t3"].cpu()),
    "grad": assign("t3", lambda names: names["t3"].requires_grad_()),
    "aliasing": assign("t1", lambda names: names["t0"].clone().t()),
    "identity": assign("t4", lambda names: names["t2"]),
    "version": lambda names: names["t0"].add_(0),
    "type": assign("t3", lambda names: 3.0),
    "missing": lambda names: names.pop("t3"),
}


def test_a_program_without_a_difference_passes() -> None:
    assert planted(lambda names: None) is None


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_difference_is_found_and_named(kind: str) -> None:
    found = planted(PLANTED[kind])
    assert found is not None and found.kind == kind
    assert found.step is STEPS[-1]


def test_a_step_that_raises_on_one_device_is_found() -> None:
    found = session.run_steps([*STEPS, Step("t5 = t1.numpy()", "numpy", "exact")]).difference
    assert found is not None and found.kind == "raises" and found.cpu == "returns"


def test_a_program_that_gives_other_bits_when_it_runs_again_is_found() -> None:
    before = session.run_steps(STEPS)
    assert session.run_steps(STEPS).parted(before) is None

    def alter(side: Side, step: Step) -> None:
        if step is STEPS[-1]:
            side.names["t3"][0, 0] += 1

    assert session.run_steps(STEPS, alter=alter).parted(before) == STEPS[-1].text


EXPECTED = {
    "class": "undefined",
    "sentence": "A difference that the test has planted.",
    "kinds": ["values"],
    "callees": ["mul"],
    "dtypes": "^float32",
}


def test_an_expected_difference_is_passed_over_and_no_other() -> None:
    entry = expectations.entry(EXPECTED)
    found = planted(PLANTED["values"])
    assert entry.covers(found)
    assert not entry.covers(planted(PLANTED["shape"]))
    other = Difference("values", Step("t3 = torch.mul_(t1, t2)", "mul_", "pure"), "t3", "1.0", "2.0", found.dtypes)
    assert not entry.covers(other)


@pytest.mark.parametrize(
    "change",
    [{"class": "ours"}, {"sentence": "short"}, {"kinds": []}, {"callees": []}, {"caller": "mul"}],
    ids=lambda change: next(iter(change)),
)
def test_an_entry_that_is_not_whole_or_covers_everything_is_refused(change: Dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        expectations.entry({**EXPECTED, **change})


def test_overlaps_are_those_of_the_elements() -> None:
    memory = torch.arange(12.0)
    assert overlaps(memory.as_strided((3, 3), (1, 1))) and overlaps(memory[:1].expand(3))
    for apart in (memory, memory.view(3, 4).t(), memory[::2], memory.as_strided((2, 3), (1, 2))):
        assert not overlaps(apart)
