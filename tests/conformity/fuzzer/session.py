"""Programs by number: written step by step, run on both devices, compared after each step."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from dataclasses import dataclass, field
from random import Random
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence

import torch

from . import functions, literals, references
from .comparison import (
    GRADIENTS,
    LOW,
    Comparison,
    Difference,
    is_tensor,
    plain,
    reconcile,
    root,
    versions,
    wrong_elements,
)
from .expectations import Expected
from .grammar import Writer
from .memory import element_bytes, host_view, overlaps
from .program import Side, Step
from .samples import sample
from .vocabulary import FAMILIES

# Results of several operators, and gradients, may be off by more.
COMPOSED = 8.0
COMPOSED_CALLEES = (
    "grad", "backward", "double backward", "traced", "captured", "vmap", "func.", "vjp", "jvp", "jac", "hessian", "checkpoint", "optimizer", "gradient of",
    "functional_call", "scripted", "deepcopy ", "torch.nn", "side stream", "functionalize", "instance_norm", "batch_norm", "group_norm", "layer_norm", "local_response_norm",
)  # fmt: skip
# The CPU's kernel lacks the dtype, or the operator.
LACKING = (
    "not implemented for",
    "not supported for",
    "Could not run",
    "does not support",
    "is not supported",
    "unsupported",
    "expected scalar type",
)
# Which of several reasons comes first, a dtype or a shape, is no promise.
REFUSALS = {"RuntimeError", "NotImplementedError"}
FIRST_STEPS, LAST_STEPS = 5, 13
# The CPU's words are not the truth for CUDA's, which are compared with upstream's own tests. So they count on demand only.
COMPARE_WORDS = os.environ.get("FUZZ_WORDS") == "1"


@dataclass
class Outcome:
    """What a program did. ``difference``: the first one that nothing expects."""

    steps: List[Step] = field(default_factory=list)
    ran: int = 0
    raised: List[int] = field(default_factory=list)
    difference: Optional[Difference] = None
    expected: List[Expected] = field(default_factory=list)
    trail: List[int] = field(default_factory=list)
    before: Optional[references.Snapshot] = None

    def parted(self, other: Outcome) -> Optional[str]:
        """The first step whose results, bit by bit, are not those of another run of the program."""
        for step, mine, theirs in zip(self.steps, self.trail, other.trail):
            if mine != theirs:
                return step.text
        return None if len(self.trail) == len(other.trail) else "another number of steps"

    @property
    def repeatable(self) -> bool:
        """TorchScript's executor changes a function from call to call."""
        return not any(step.callee.startswith("scripted") for step in self.steps)


class Run:
    """One program on both devices."""

    def __init__(self, expected: Sequence[Expected], alter: Optional[Callable[[Side, Step], None]] = None) -> None:
        self.cpu, self.cuda = Side("cpu"), Side("cuda")
        self.expected, self.outcome, self.alter = expected, Outcome(), alter

    def step(self, step: Step) -> Optional[Difference]:
        """Run a step and compare; a difference that is expected is counted and forgotten."""
        if not self.cpu.knows(step) or not self.cuda.knows(step) or traps(step, self.cpu):
            return None
        outcome = self.outcome
        before = references.Snapshot(self.cpu)
        outcome.before = before
        outcome.steps.append(step)
        self.versions = versions(self.cpu.pool()), versions(self.cuda.pool())
        mine, other = self.cpu.run(step), self.cuda.run(step)
        if self.alter is not None:
            self.alter(self.cuda, step)
        outcome.ran += 1
        if mine is not None:
            outcome.raised.append(len(outcome.steps) - 1)
        # What a step that raises has made is not defined.
        made = self._digest(step) if other is None else []
        outcome.trail.append(zlib.crc32(repr((mine and mine[0], other and other[0], made)).encode()))
        undefined = self._writes_one_place_twice()
        for found in self._differences(step, before, mine, other):
            if undefined and found.kind in ("values", "untouched", "layout"):
                continue
            found.layouts = layouts(step, before)
            entry = next((e for e in self.expected if e.covers(found)), None)
            if entry is None:
                outcome.difference = found
                return found
            outcome.expected.append(entry)
            if found.kind in ("aliasing", "identity"):
                # What shares memory cannot be made the same.
                self.cpu.names.pop(root(found.where), None)
                self.cuda.names.pop(root(found.where), None)
        reconcile(self.cpu, self.cuda)
        return None

    def _writes_one_place_twice(self) -> bool:
        """Whether the step has written to a tensor whose elements share memory, which leaves open what is there."""
        pool = self.cuda.pool()
        return any(overlaps(pool[e]) and pool[e]._version > v for e, v in self.versions[1].items() if e in pool)

    def _digest(self, step: Step) -> List[Any]:
        rows: List[Any] = []
        for name, value in self.cuda.pool().items():
            if root(name) in (*step.binds, *step.uses):
                if is_tensor(value) and value.layout == torch.strided:
                    # What else the storage has need never have been written.
                    content = zlib.crc32(element_bytes(value.detach()))
                    rows.append((name, str(value.dtype), tuple(value.shape), value.stride(), content))
                elif not is_tensor(value):
                    rows.append((name, repr(value)))
        return rows

    def _differences(self, step: Step, before: references.Snapshot, mine: Any, other: Any) -> Iterator[Difference]:
        dtypes = self._dtypes(step, before)
        factor = COMPOSED if step.callee.startswith(COMPOSED_CALLEES) else 1.0
        if (mine is None) != (other is None):
            lacking = mine is not None and any(word in mine[1] for word in LACKING)
            verdict = self._against_wide(step, before, dtypes, factor) if lacking else "none"
            if verdict != "agrees":
                words = [f"{raised[0]}: {raised[1]}" if raised else "returns" for raised in (mine, other)]
                if verdict.startswith("values"):
                    yield Difference("values", step, "against double precision", verdict, "another value", dtypes)
                else:
                    yield Difference("raises", step, verdict, words[0], words[1], dtypes)
            self._forget(step)
            self._forget_touched(step)
            if step.callee in GRADIENTS:
                self._forget_unmatched()
        elif mine is not None and other is not None:
            if step.callee.endswith("out="):
                # Which comes first, the size of `out` or the error, is no promise.
                self._forget_touched(step)
            several = any("not implemented for" in words for words in (mine[1], other[1]))
            if mine[0] != other[0] and not several and not {mine[0], other[0]} <= REFUSALS:
                yield Difference(
                    "raises", step, "another type", f"{mine[0]}: {mine[1]}", f"{other[0]}: {other[1]}", dtypes
                )
            elif COMPARE_WORDS and plain(mine[1]) != plain(other[1]):
                yield Difference("text", step, "other words", mine[1], other[1], dtypes)
        pool = self.cpu.pool()
        undefined = frozenset(
            e for e, v in pool.items() if mine is not None and is_tensor(v) and before.shapes.get(e) != tuple(v.shape)
        )
        comparison = Comparison(
            step,
            pool,
            self.cuda.pool(),
            before.values,
            dtypes,
            factor,
            versions=self.versions if mine is None and other is None else ({}, {}),
            undefined=undefined,
        )
        for found in comparison.all():
            if found.kind == "values" and self._near_wide(step, before, found.where, factor):
                continue
            if found.kind == "values" and self._low_inside(step) and self._near_loosely(found.where, factor):
                continue
            if found.kind in ("strides", "offset", "dtype") and references.fake_agrees(
                step, before, found.where, self.cuda.pool()
            ):
                continue
            yield found
        if step.kind == "pure" and mine is None and other is None and references.has_layout(step, before):
            yield from self._layout(step, before, dtypes, factor)

    def _dtypes(self, step: Step, before: references.Snapshot) -> str:
        found = []
        for name in step.uses:
            value = before.values.get(name)
            for one in _all(value):
                if is_tensor(one):
                    found.append(literals.of(one.dtype))
        return ",".join(dict.fromkeys(found))

    def _forget(self, step: Step) -> None:
        for name in step.binds:
            self.cpu.names.pop(name, None)
            self.cuda.names.pop(name, None)

    def _forget_touched(self, step: Step) -> None:
        """Forget what shares memory with an argument: one device may have written to it."""
        for pool in (self.cpu.pool(), self.cuda.pool()):
            strided = {e: v for e, v in pool.items() if is_tensor(v) and v.layout == torch.strided}
            memory = {v.untyped_storage()._cdata for e, v in strided.items() if root(e) in step.uses}
            for expression, value in strided.items():
                if value.untyped_storage()._cdata in memory:
                    self.cpu.names.pop(root(expression), None)
                    self.cuda.names.pop(root(expression), None)

    def _forget_unmatched(self) -> None:
        """Forget what has a gradient on one device only."""
        for expression in set(self.cpu.pool()) ^ set(self.cuda.pool()):
            self.cpu.names.pop(root(expression), None)
            self.cuda.names.pop(root(expression), None)

    def _against_wide(self, step: Step, before: references.Snapshot, dtypes: str, factor: float) -> str:
        """Whether the device's result is double precision's, where the CPU lacks a kernel."""
        side = references.wide(step, before)
        if side is None:
            return "no reference"
        pool = side.pool()
        for expression, value in self.cuda.pool().items():
            if root(expression) in step.binds and is_tensor(value) and value.layout == torch.strided:
                reference = pool.get(expression)
                if not is_tensor(reference) or tuple(reference.shape) != tuple(value.shape):
                    return f"another shape than {tuple(reference.shape) if is_tensor(reference) else None}"
                if (
                    value.is_floating_point() != reference.is_floating_point()
                    or value.is_complex() != reference.is_complex()
                ):
                    return f"a dtype of another kind: {value.dtype}"
                if step.kind == "layout":
                    continue
                low = any(word in dtypes for word in ("float16", "complex32")) and value.dtype not in LOW
                got, want = host_view(value.detach()), reference.detach()
                if got.is_complex():
                    # Where a part overflows, the formula of a product or quotient decides about the other.
                    lost = ~got.isfinite() | ~want.to(got.dtype).isfinite()
                    got, want = (
                        got.resolve_conj().resolve_neg().masked_fill(lost, 0),
                        want.resolve_conj().masked_fill(lost, 0),
                    )
                wrong = wrong_elements(got, want, "loose" if low else "values", factor)
                if wrong is not None and bool(wrong.any()):
                    return (
                        f"values in double precision: {want.flatten()[:8].tolist()}, here {got.flatten()[:8].tolist()}"
                    )
        return "agrees"

    def _near_wide(self, step: Step, before: references.Snapshot, where: str, factor: float) -> bool:
        """Whether what differs from the CPU's result agrees with double precision's."""
        value = self.cuda.pool()[where]
        side = references.wide(step, before)
        if side is None:
            return False
        reference = side.pool().get(where)
        if not is_tensor(reference) or reference.shape != value.shape:
            return False
        got, want = host_view(value.detach()), reference.detach()
        # A result of a wider dtype than an argument is as near as the argument's dtype allows.
        low = any(
            is_tensor(v) and v.dtype in LOW and got.dtype not in LOW
            for n in step.uses
            for v in _all(before.values.get(n))
        )
        wrong = wrong_elements(got, want, "loose" if low else "values", factor)
        if wrong is None or not bool(wrong.any()):
            return True
        same = wrong_elements(got, self.cpu.pool()[where].detach(), "values", factor)
        return same is not None and not bool((wrong & same).any())

    def _low_inside(self, step: Step) -> bool:
        """Whether a function that the step calls computes in low precision, whatever its argument's dtype is."""
        return any(".half()" in getattr(self.cpu.names.get(name), "source", "") for name in step.uses)

    def _near_loosely(self, where: str, factor: float) -> bool:
        """Whether both devices agree within low precision's tolerance."""
        got, want = host_view(self.cuda.pool()[where].detach()), self.cpu.pool()[where].detach()
        wrong = wrong_elements(got, want, "loose", factor)
        return wrong is None or not bool(wrong.any())

    def _layout(self, step: Step, before: references.Snapshot, dtypes: str, factor: float) -> Iterator[Difference]:
        side = references.contiguous(step, before)
        if side is None:
            return
        pool = side.pool()
        for expression, value in self.cuda.pool().items():
            if root(expression) not in step.binds or not is_tensor(value) or value.layout != torch.strided:
                continue
            reference = pool.get(expression)
            if not is_tensor(reference) or reference.shape != value.shape or reference.dtype != value.dtype:
                continue
            got = host_view(value.detach())
            wrong = wrong_elements(got, reference, "values", factor)
            if wrong is not None and bool(wrong.any()) and not self._near_wide(step, before, expression, factor):
                index = tuple(wrong.nonzero()[0].tolist())
                said = f"{int(wrong.sum())} of {wrong.numel()}, at {index} "
                yield Difference(
                    "layout",
                    step,
                    expression,
                    said + str(reference[index].item()),
                    said + str(got.resolve_conj()[index].item()),
                    dtypes,
                )


def _all(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else [value]


def layouts(step: Step, before: references.Snapshot) -> str:
    """Dimensions and layout of each tensor that a step uses; see Difference."""
    words = []
    for name in step.uses:
        for one in _all(before.values.get(name)):
            if is_tensor(one) and one.layout == torch.strided:
                layout = "overlapping" if overlaps(one) else "contiguous" if one.is_contiguous() else "strided"
                words.append(f"{one.dim()}d-{layout}")
    return " ".join(words)


DIVISION = re.compile(r"remainder|fmod|div|//|%")
LEAST = re.compile(r"-9223372036854775808|-2147483648\b|2 ?\*\* ?(63|31)")


def traps(step: Step, cpu: Side) -> bool:
    """Whether the CPU may divide the least integer by -1, which ends the process; the device's quotients do not."""
    if not DIVISION.search(step.callee):
        return False
    operands = [one for name in step.uses for one in _all(cpu.names.get(name))]
    integers = [one for one in operands if is_tensor(one) and one.dtype in (torch.int32, torch.int64)]
    least = any(bool((one == torch.iinfo(one.dtype).min).any()) for one in integers)
    return least or LEAST.search(step.text) is not None


def written(writer: Writer) -> Iterator[Step]:
    """The steps of a program, each written when those before it have run."""
    rng = writer.rng
    for _ in range(rng.randint(2, 4)):
        yield from writer.leaf()
    families = list(FAMILIES)
    weights = [FAMILIES[name] for name in families]
    elsewhere: Dict[str, Callable[[Writer], List[Step]]] = {
        "traced": functions.traced, "transformed": functions.transformed, "graphed": functions.graphed, "trained": functions.trained,
        "functional_module": functions.functional_module, "sample": sample,
    }  # fmt: skip
    for _ in range(rng.randint(FIRST_STEPS, LAST_STEPS)):
        if not writer.tensors():
            yield from writer.leaf()
            continue
        family = rng.choices(families, weights)[0]
        yield from elsewhere[family](writer) if family in elsewhere else getattr(writer, family)()


def run_number(number: int, expected: Sequence[Expected]) -> Outcome:
    """Write and run the program of this number."""
    run = Run(expected)
    prepare()
    writer = Writer(Random(number), run.cpu)
    for step in written(writer):
        if run.step(step) is not None:
            break
    return run.outcome


def run_steps(
    steps: Iterable[Step], expected: Sequence[Expected] = (), alter: Optional[Callable[[Side, Step], None]] = None
) -> Outcome:
    """Run steps that are there."""
    run = Run(expected, alter)
    prepare()
    for step in steps:
        if run.step(step) is not None:
            break
    return run.outcome


def prepare() -> None:
    """The same state at the begin of each program."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_grad_enabled(True)


ENVIRONMENT = {"PYTORCH_DEFAULT_NCHW": "1"}


def check_environment() -> None:
    for key, value in ENVIRONMENT.items():
        if os.environ.get(key) != value:
            raise RuntimeError(f"The fuzzer compares layouts: set {key}={value} before torch is imported.")
