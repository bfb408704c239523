"""From a program that differs to the smallest one that still does, in a process of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, List, Optional, Sequence

import torch
from torch.utils._pytree import tree_flatten

from . import literals
from .clean import Clean
from .comparison import Difference
from .program import Program, Step
from .references import Snapshot

SECONDS = 60.0
LARGEST = 256


@dataclass
class Reduced:
    """``before``: programs that the process must have run; ``alone``: whether a process of its own shows the difference."""

    steps: List[Step]
    before: List[List[Step]] = field(default_factory=list)
    raised: List[int] = field(default_factory=list)
    alone: bool = True
    found: Any = None

    def script(self, said: str) -> str:
        joined: List[Step] = []
        for number, program in enumerate(self.before):
            joined += [renamed(step, number + 1) for step in program]
        offset = len(joined)
        raising = [*range(offset), *[offset + position for position in self.raised]]
        if not self.alone:
            said += "\nIt was seen late in a process and did not come back in a new one: what came before matters."
        return Program([*joined, *self.steps]).script((), said, raising)


def renamed(step: Step, number: int) -> Step:
    """The same step with names of its own."""
    import re

    return Step(re.sub(r"\b([tmfh])(\d+)\b", rf"\g<1>{number}00\g<2>", step.text), step.callee, step.kind)


def same(first: Any, second: Difference) -> bool:
    return isinstance(first, Difference) and (first.kind, first.step.callee) == (second.kind, second.step.callee)


class Reduction:
    def __init__(self, clean: Clean, difference: Difference, seconds: float = SECONDS) -> None:
        self.clean, self.difference = clean, difference
        self.end = time.monotonic() + seconds
        self.raised: List[int] = []
        self.found: Any = difference

    def shows(self, steps: Sequence[Step], before: Sequence[Sequence[Step]] = ()) -> bool:
        reply = self.clean.ask(before, steps)
        if isinstance(reply, tuple) and same(reply[0], self.difference):
            self.found, self.raised = reply[0], reply[1]
            return True
        return False

    def reduce(self, steps: Sequence[Step], snapshot: Optional[Snapshot], history: Sequence[Sequence[Step]]) -> Reduced:
        if not self.shows(steps):
            return self._with_history(list(steps), history)
        smallest = list(steps)
        frozen = None if snapshot is None else freeze(smallest[-1], snapshot)
        if frozen is not None and self.shows(frozen):
            smallest = frozen
        smallest = self._fewer(smallest, ())
        self.shows(smallest)
        return Reduced(smallest, raised=self.raised, found=self.found)

    def _fewer(self, steps: List[Step], before: Sequence[Sequence[Step]]) -> List[Step]:
        """Leave out what is not needed, from the end."""
        changed = True
        while changed:
            changed = False
            for position in range(len(steps) - 2, -1, -1):
                if time.monotonic() > self.end:
                    return steps
                shorter = [
                    s for i, s in enumerate(steps) if i != position and not set(steps[position].binds) & set(s.uses)
                ]
                if shorter and shorter[-1] is steps[-1] and self.shows(shorter, before):
                    steps, changed = shorter, True
                    break
        return steps

    def _with_history(self, steps: List[Step], history: Sequence[Sequence[Step]]) -> Reduced:
        """Look for the programs before it that make the difference, the nearest first."""
        length = 1
        while history and time.monotonic() < self.end:
            tail = [list(program) for program in history[-length:]]
            if self.shows(steps, tail):
                return self._fewer_programs(steps, tail)
            if length >= len(history):
                break
            length *= 8
        return Reduced(steps, alone=False, found=self.difference)

    def _fewer_programs(self, steps: List[Step], before: List[List[Step]]) -> Reduced:
        self.end += SECONDS
        size = max(1, len(before) // 2)
        while time.monotonic() < self.end:
            for start in range(0, len(before), size):
                shorter = before[:start] + before[start + size :]
                if self.shows(steps, shorter):
                    before = shorter
                    break
            else:
                if size == 1:
                    break
                size = max(1, size // 2)
            size = min(size, max(1, len(before)))
            if not before:
                break
        steps = self._fewer(steps, before)
        for number, program in enumerate(before):
            position = len(program) - 1
            while position >= 0 and time.monotonic() < self.end:
                shorter = program[:position] + program[position + 1 :]
                if self.shows(steps, [*before[:number], shorter, *before[number + 1 :]]):
                    program = before[number] = shorter
                position -= 1
        self.shows(steps, before)
        return Reduced(steps, [p for p in before if p], raised=self.raised, found=self.found)


def freeze(step: Step, snapshot: Snapshot) -> Optional[List[Step]]:
    """The step, and its arguments made anew from what they held; None where that is not possible."""
    steps: List[Step] = []
    bases: Any = {}
    for name in step.uses:
        value = snapshot.values.get(name)
        if not isinstance(value, torch.Tensor):
            return None
        if any(leaf.numel() > LARGEST or leaf.layout != torch.strided for leaf in tree_flatten(value)[0]):
            return None
        key = value.untyped_storage()._cdata
        kept = snapshot.content[key]
        dtype = literals.of(value.dtype)
        if (key, dtype) not in bases:
            if (
                any(k == key for k, _ in bases)
                or dtype not in literals.DTYPES
                or len(kept) > 8 * LARGEST
                or not len(kept)
            ):
                return None
            whole = torch.frombuffer(
                bytearray(kept[: len(kept) // value.element_size() * value.element_size()]), dtype=value.dtype
            )
            flat = "[" + ", ".join(literals.of_value(v) for v in whole.tolist()) + "]"
            base = f"t9{len(bases)}9"
            bases[(key, dtype)] = base
            steps.append(
                Step(f"{base} = {literals.tensor(flat, whole.numel(), dtype, (whole.numel(),))}", "tensor", "exact")
            )
        view = (
            f"{bases[(key, dtype)]}.as_strided({list(value.shape)}, {list(value.stride())}, {value.storage_offset()})"
        )
        if value.is_conj():
            view += ".conj()"
        if value.is_neg():
            view = f"torch._neg_view({view})"
        steps.append(Step(f"{name} = {view}", "view", "exact"))
    return [*steps, step]
