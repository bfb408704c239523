"""Judges an operator by the error that it makes, not by the error that it passes on."""

import json
import math
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from maca_tools.accuracy import names

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "thresholds.json"), encoding="utf-8") as _file:
    THRESHOLDS: Dict[str, Any] = json.load(_file)

# From good to bad; the first culprit is the first operator that is judged WRONG.
SAME = "same"
CLOSE = "close"
PASSED_ON = "passed on"
RANDOM = "random"
WRONG = "wrong"
NOT_COMPARED = "not compared"


def threshold(dtype: str) -> float:
    """The diff2 that one operator with this output may make; 0 for integers and bool."""
    return float(THRESHOLDS["diff2"].get(dtype, 0.0))


class Tensor(NamedTuple):
    """One compared tensor as the verdict needs it. error is diff2, or inf; norm is that of side 0."""

    path: str
    dtype: str
    error: float
    norm: float
    absolute: float
    elements: int
    is_input: bool
    same: bool
    problem: str = ""


class Judgement(NamedTuple):
    verdict: str
    reason: str
    error: float
    input_error: float


def judge(
    api: str,
    backward: bool,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    estimated: bool,
    forward_error: float = 0.0,
) -> Judgement:
    """The verdict on one operator.

    forward_error is, for a backward operator, the error of what its forward one read and wrote: the gradient depends
    on those values as well.
    """
    slack = float(THRESHOLDS["summary_slack"]) if estimated else 1.0
    seen = [tensor for tensor in inputs if not tensor.problem]
    input_error = max([tensor.error for tensor in seen if math.isfinite(tensor.error)] + [forward_error, 0.0])
    input_broken = any(not math.isfinite(tensor.error) for tensor in seen)
    problems = [tensor for tensor in list(inputs) + list(outputs) if tensor.problem]
    compared = [tensor for tensor in outputs if not tensor.problem]
    worst: Optional[Tensor] = None
    for tensor in compared:
        if worst is None or tensor.error > worst.error:
            worst = tensor
    error = worst.error if worst is not None else 0.0
    if problems and not compared:
        first = problems[0]
        return Judgement(NOT_COMPARED, f"{first.path}: {first.problem}", error, input_error)
    note = f"; {problems[0].path}: {problems[0].problem}" if problems else ""
    if worst is None or all(tensor.same for tensor in compared):
        return Judgement(SAME, f"all outputs equal{note}", error, input_error)
    kind = names.api_class(api)
    last = names.last(api)
    growth = float(THRESHOLDS["growth"]["cancelling" if kind in THRESHOLDS["cancelling"] else "default"])
    # Only of these the output is a plain sum: a product's other factor says nothing about the size of the terms.
    summed = [
        tensor for tensor in seen if (tensor.path.startswith("grad_out") if backward else kind in ("sum", "mean"))
    ]
    incoming = [tensor for tensor in summed if math.isfinite(tensor.norm)]
    largest = max([tensor.norm for tensor in incoming], default=0.0)
    wrong: List[str] = []
    passed: List[str] = []
    for tensor in compared:
        limit = threshold(tensor.dtype) * slack
        if tensor.error <= limit:
            continue
        if not math.isfinite(tensor.error):
            (passed if input_broken else wrong).append(
                f"{tensor.path} has NaN or Inf on one side only" + (", and so has an input" if input_broken else "")
            )
            continue
        if input_broken:
            passed.append(f"{tensor.path}: diff2 {tensor.error:.2e}, and an input has NaN or Inf on one side only")
        elif limit == 0.0 and input_error > 0.0:
            passed.append(f"{tensor.path}: {tensor.dtype} values depend on inputs that differ by {input_error:.2e}")
        elif tensor.error <= growth * input_error:
            passed.append(f"{tensor.path}: diff2 {tensor.error:.2e} comes from inputs that differ by {input_error:.2e}")
        elif limit > 0.0 and tensor.absolute <= _rounding(tensor, incoming, largest, growth * input_error):
            # A sum whose terms cancel: its relative error says nothing, the error against its terms does.
            passed.append(f"{tensor.path}: diff2 {tensor.error:.2e} is rounding of terms that cancel")
        else:
            wrong.append(
                f"{tensor.path}: diff2 {tensor.error:.2e} above {limit:.1e} for {tensor.dtype}, "
                f"inputs differ by {input_error:.2e}"
            )
    if wrong and (last in names.RANDOM or last in names.UNINITIALISED):
        return Judgement(RANDOM, "its values are random or uninitialised and need not agree" + note, error, input_error)
    if (
        wrong
        and last in names.RANDOM_WHILE_TRAINING
        and kind.endswith("dropout")
        or wrong
        and kind.startswith("dropout")
    ):
        return Judgement(
            RANDOM, "random while training: switch dropout off to compare what follows" + note, error, input_error
        )
    if wrong:
        return Judgement(WRONG, "; ".join(wrong) + note, error, input_error)
    if passed:
        return Judgement(PASSED_ON, "; ".join(passed) + note, error, input_error)
    return Judgement(CLOSE, f"diff2 {error:.2e} is within rounding{note}", error, input_error)


def judge_again(rows: Sequence[Dict[str, Any]], own: Dict[str, Any]) -> Optional[Tuple[str, str]]:
    """Verdict and reason for a suspect from its own errors (replay.OwnError by path); None if they do not decide.

    What both sides are off from the double precision run is the precision of the kernels, which may compute in steps
    that each round: the sides may then part by as much. In low precision the CPU's kernels do so where a device's round
    once: where only the CPU is off, the device made no error.
    """
    wrong: List[str] = []
    passed: List[str] = []
    for row in rows:
        error = row.get("diff2")
        if row.get("part") != "output" or error is None:
            continue
        dtype = max((row["dtype0"], row["dtype1"]), key=threshold)
        limit = threshold(dtype)
        if limit == 0.0 or error <= limit:
            continue
        found = own.get(row["tensor"])
        if found is None:
            return None
        kernels = min(found.side0, found.side1)
        if kernels > float(THRESHOLDS["faithful"]):
            # The run again was not the operator that ran: something that no record holds decided about it.
            return None
        device = _off_the_cpu(row, found)
        if device is not None and device <= limit and dtype in THRESHOLDS["stepwise on cpu"]:
            passed.append(
                f"{row['tensor']}: diff2 {error:.2e}, of which the device made {device:.1e}: the CPU rounds more often"
            )
            continue
        limit = max(limit, 2.0 * kernels)
        text = f"{row['tensor']}: diff2 {error:.2e}, of which {found.difference:.1e} is its own"
        if found.difference > limit:
            wrong.append(
                f"{text} (above {limit:.1e} for {dtype}; in double precision from its own inputs "
                f"side 0 is off by {found.side0:.1e}, side 1 by {found.side1:.1e})"
            )
        else:
            passed.append(f"{text} and the rest comes from its inputs")
    if wrong:
        return WRONG, "; ".join(wrong)
    return (PASSED_ON, "; ".join(passed)) if passed else None


def _off_the_cpu(row: Dict[str, Any], found: Any) -> Optional[float]:
    """The own error of the side that is not on the CPU, where the other one is."""
    cpu0, cpu1 = (row.get(f"device{side}") == "cpu" for side in (0, 1))
    if cpu0 == cpu1:
        return None
    return float(found.side1 if cpu0 else found.side0)


def _rounding(tensor: Tensor, inputs: Sequence[Tensor], largest: float, passed_on: float) -> float:
    """The absolute error that rounding may leave in a sum over the inputs, of fewer elements than they have."""
    if not any(source.elements > tensor.elements for source in inputs):
        return 0.0
    # Kernels add in float32 or better, whatever the dtype.
    unit = min(float(THRESHOLDS["unit"].get(tensor.dtype, 0.0)), float(THRESHOLDS["unit"]["float32"]))
    return (4 * unit + passed_on) * largest
