"""Level 0 for a step of an optimizer: run again on the CPU in double precision, from parameters and state before it.

The copies of what was there before are made before the step, in their own dtype. The step of an optimizer that treats
each element by itself runs again in pieces, so that its double precision takes no memory.
"""

import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch

from maca_tools.accuracy import names, verdict
from maca_tools.accuracy.data import host_memory
from maca_tools.accuracy.data.workers import PIECE, Workers, pieces

_WIDE = (torch.float64, torch.complex64, torch.complex128)
_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}
# How a step is computed, not what.
_HOW = {"foreach": False, "fused": None, "capturable": False, "differentiable": False}


class Unchecked(NamedTuple):
    """A parameter that could not be checked."""

    path: str
    why: str


class Before:
    """Parameters, gradients and state of an optimizer before its step."""

    def __init__(self, optimizer: Any) -> None:
        self.groups = [
            {key: _copy(value) for key, value in group.items() if key != "params"} for group in optimizer.param_groups
        ]
        # torch.amp.GradScaler has an optimizer with such a kernel divide the gradients itself, or leave everything as
        # it is where one of them is not finite.
        scale, found_inf = getattr(optimizer, "grad_scale", None), getattr(optimizer, "found_inf", None)
        self.scale = None if scale is None else float(scale)
        self.left_alone = found_inf is not None and float(found_inf) != 0.0
        self.entries: List[_Entry] = []
        for number, group in enumerate(optimizer.param_groups):
            # These kernels may write the gradients.
            copy = self.scale is not None or bool(group.get("fused"))
            self.entries += [_Entry(param, number, optimizer.state.get(param, {}), copy) for param in group["params"]]


class _Entry:
    """One parameter. The gradient is copied only where a step may change it; else its version says if one did."""

    def __init__(self, param: Any, group: int, state: Dict[str, Any], copy: bool) -> None:
        self.original, self.group = param, group
        self.grad = param.grad
        self.why_not = None if self.grad is None else _unusual(param) or _unusual(self.grad)
        self.usable = self.grad is not None and self.why_not is None
        if self.usable:
            self.grad = _copy(self.grad) if copy else self.grad.detach()
            self.version = self.grad._version
            self.param = _copy(param)
            self.state = {key: _copy(value) for key, value in state.items()}


def why_not(optimizer: Any, closure: Any) -> Optional[str]:
    """Why a step cannot run again; None where it can."""
    if closure is not None:
        return "its closure computes new gradients inside the step"
    kind = type(optimizer)
    if getattr(torch.optim, kind.__name__, None) is not kind:
        return "it is no optimizer of torch.optim"
    return None


def lines(
    optimizer: Any, found: Before, workers: Optional[Workers] = None
) -> Tuple[List[Dict[str, Any]], List[Unchecked]]:
    """What of the parameters and the state is further off than its threshold, and what could not be checked.

    A parameter's error is measured against its change. Both it and the state may be off by the rounding of what was
    there before; and by twice what a CPU run in the optimizer's own precision is off. A run in float32 comes first,
    whose rounding is a hundredth of any threshold: only what it does not confirm is computed in double precision.
    """
    off: List[Dict[str, Any]] = []
    unchecked: List[Unchecked] = []
    for index, entry in enumerate(found.entries):
        why = entry.why_not
        if entry.usable and entry.grad._version != entry.version:
            why = "its gradient changed during the step"
        if why is not None:
            unchecked.append(Unchecked(f"params[{index}]", why))
        if why is not None or not entry.usable:
            continue
        try:
            first = entry.param.dtype if entry.param.dtype in _WIDE else torch.float32
            suspects = _suspects(_compared(optimizer, found, entry, first, None, workers))
            if suspects:
                exactly = torch.complex128 if entry.param.is_complex() else torch.float64
                suspects = _suspects(_compared(optimizer, found, entry, exactly, entry.param.dtype, workers))
        except Exception as error:
            # Such as a form that the CPU does not have; level 0 checks what can be checked, and says what it cannot.
            text = str(error).split("\n")[0][:200]
            unchecked.append(Unchecked(f"params[{index}]", f"{type(error).__name__}: {text}"))
            continue
        for key, measured in suspects.items():
            diff2 = measured.error / measured.norm if measured.norm else float("inf")
            path = f"params[{index}]" if not key else f"state[{index}].{key}"
            limit = verdict.threshold(measured.dtype)
            off.append({"path": path, "dtype": measured.dtype, "diff2": diff2, "threshold": limit})
    return off, unchecked


def _suspects(sums: "Dict[str, _Sums]") -> "Dict[str, _Sums]":
    found = {}
    for key, measured in sums.items():
        unit = float(verdict.THRESHOLDS["unit"].get(measured.dtype, 0.0))
        allowed = max(verdict.threshold(measured.dtype) * measured.norm, 4 * unit * measured.terms, 2 * measured.own)
        # What is not a number is larger than nothing, and than anything.
        if not measured.error <= allowed and measured.norm < float("inf"):
            found[key] = measured
    return found


class _Sums:
    """Norms over the pieces of one tensor: what it is off, what it is measured against, what was there before."""

    __slots__ = ("dtype", "error", "norm", "terms", "own")

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.error = self.norm = self.terms = self.own = 0.0

    def join(self, other: "_Sums") -> None:
        for name in ("error", "norm", "terms", "own"):
            setattr(self, name, math.hypot(getattr(self, name), getattr(other, name)))

    def add(self, actual: Any, exact: Any, earlier: Any, of_change: bool, own: Any, quick: bool) -> None:
        same = quick and actual.dtype == exact.dtype and torch.equal(actual, exact)
        error = 0.0 if same else _gap(actual, exact)
        if quick and error == 0.0:
            # Leaving out what an error is measured against makes more suspects, not fewer.
            return
        self.error = math.hypot(self.error, error)
        self.norm = math.hypot(self.norm, _gap(earlier, exact) if of_change else _norm(exact))
        if earlier is not None:
            self.terms = math.hypot(self.terms, _norm(earlier))
        if own is not None:
            self.own = math.hypot(self.own, _gap(own, exact))


def _compared(
    optimizer: Any, found: Before, entry: _Entry, dtype: Any, own_dtype: Any, workers: Optional[Workers]
) -> Dict[str, _Sums]:
    """Sums of the parameter (key "") and each tensor of its state; with own_dtype also those of a run in it.

    Without own_dtype they are those of the pieces that differ only.
    """
    after = dict(optimizer.state.get(entry.original, {}))
    elementwise = type(optimizer).__name__ in names.ELEMENTWISE_OPTIMIZERS

    def of_part(first: int, end: int) -> Dict[str, _Sums]:
        part = _Part(type(optimizer), found, entry, dtype, own_dtype, after)
        for bounds in pieces(first, end):
            part.add(bounds)
        return part.sums

    if not elementwise or entry.param.numel() <= PIECE:
        whole = _Part(type(optimizer), found, entry, dtype, own_dtype, after)
        whole.add(None)
        return whole.sums
    elements = entry.param.numel()
    # The copy is the one that lies on the CPU.
    parts = [of_part(0, elements)] if workers is None else workers.over_parts(entry.param, of_part)
    for other in parts[1:]:
        for key, sums in other.items():
            if key in parts[0]:
                parts[0][key].join(sums)
            else:
                parts[0][key] = sums
    return parts[0]


class _Part:
    """A part of a parameter and of its state, compared piece by piece."""

    def __init__(
        self, kind: Any, found: Before, entry: _Entry, dtype: Any, own_dtype: Any, after: Dict[str, Any]
    ) -> None:
        self.sums: Dict[str, _Sums] = {}
        self._found, self._entry, self._after = found, entry, after
        self._quick = own_dtype is None
        options = found.groups[entry.group]
        self._exact, self._own = _Again(kind, options, dtype), _Again(kind, options, None)

    def add(self, part: Optional[Tuple[int, int]]) -> None:
        """Of the whole with part None."""
        entry, quick = self._entry, self._quick
        given = _taken(entry.param, part, entry.param)
        state = {key: _taken(value, part, entry.param) for key, value in entry.state.items()}
        rounded: Any = None
        rounded_state: Dict[str, Any] = {}
        if self._found.left_alone:
            expected, expected_state = given, state
        else:
            grad = _on_host(_taken(entry.grad, part, entry.param))
            if self._found.scale is not None:
                grad = grad.to(torch.promote_types(grad.dtype, torch.float32)) / self._found.scale
            expected, expected_state = self._exact.step(given, grad, state)
            if not quick:
                rounded, rounded_state = self._own.step(given, grad, state)
        actual = _on_host(_taken(entry.original.detach(), part, entry.param))
        self.sums.setdefault("", _Sums(_name(entry.param))).add(actual, expected, given, True, rounded, quick)
        for key, value in self._after.items():
            if not isinstance(value, torch.Tensor) or not isinstance(expected_state.get(key), torch.Tensor):
                continue
            actual = _on_host(_taken(value.detach(), part, entry.param))
            if not _is_number(actual) or actual.shape != expected_state[key].shape:
                continue
            earlier = state.get(key) if isinstance(state.get(key), torch.Tensor) else None
            self.sums.setdefault(key, _Sums(_name(value))).add(
                actual, expected_state[key], earlier, False, rounded_state.get(key), quick
            )


def _on_host(tensor: Any) -> Any:
    return host_memory.seen_from_host(tensor).to("cpu")


def _taken(value: Any, part: Optional[Tuple[int, int]], like: Any) -> Any:
    """The part of a tensor that has the parameter's shape; anything else whole."""
    if part is None or not isinstance(value, torch.Tensor) or value.shape != like.shape:
        return value
    return value.reshape(-1)[part[0] : part[1]]


class _Again:
    """An optimizer of the same kind that makes one step on the CPU; in dtype, or with dtype None each in its own."""

    def __init__(self, kind: Any, options: Dict[str, Any], dtype: Any) -> None:
        self._kind, self._options, self._dtype = kind, options, dtype
        self._optimizer: Any = None

    def _made(self, param: Any) -> Any:
        if self._optimizer is None:
            known = {key: self._options[key] for key in ("lr",) if key in self._options}
            self._optimizer = self._kind([param], **known)
            how = {key: value for key, value in _HOW.items() if key in self._options}
            self._optimizer.param_groups[0].update({**self._options, **how})
        self._optimizer.param_groups[0]["params"] = [param]
        # What an optimizer makes of its parameter when it is made was there before the step, too.
        self._optimizer.state.clear()
        return self._optimizer

    def step(self, given: Any, grad: Any, state: Dict[str, Any]) -> Tuple[Any, Dict[str, Any]]:
        """Parameter and state after one step."""
        param = torch.nn.Parameter(given.to(self._dtype or given.dtype, copy=True))
        param.grad = grad.to(param.dtype)
        optimizer = self._made(param)
        if state:
            optimizer.state[param] = {key: self._wide(value) for key, value in state.items()}
        with torch.enable_grad():
            optimizer.step()
        return param.detach(), dict(optimizer.state[param])

    def _wide(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        dtype = value.dtype
        if self._dtype is not None and _is_number(value):
            # The state of a complex parameter may be real.
            dtype = self._dtype if value.is_complex() else _REAL.get(self._dtype, self._dtype)
        return value.to(dtype, copy=True)


def _gap(actual: Any, exact: Any) -> float:
    return float(torch.linalg.vector_norm(actual.to(exact.dtype) - exact))


def _norm(tensor: Any) -> float:
    return float(torch.linalg.vector_norm(tensor if _is_number(tensor) else tensor.double()))


def _name(tensor: Any) -> str:
    return str(tensor.dtype).replace("torch.", "")


def _is_number(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _unusual(tensor: Any) -> Optional[str]:
    """Why a tensor is not checked; None for a dense one."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return f"a tensor of the class {type(tensor).__name__}"
    return None if tensor.layout == torch.strided else f"a tensor of the layout {tensor.layout}"


def _copy(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    # Into memory that earlier operators were checked in, where it is still there. See heap.py.
    there = host_memory.seen_from_host(value.detach())
    return torch.empty_like(there, device="cpu", requires_grad=False).copy_(there)
