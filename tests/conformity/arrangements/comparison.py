"""A case on both devices: results, and gradients from one slope."""

from __future__ import annotations

import math
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from arrangements.draws import Argument, Draw, dirty

Function = Callable[..., Any]
# Relative to the norm of the result. A wrong element is far off; what rounding does is looked at by the sweep.
TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 0.15}
FLOOR = 0.3  # the size of an element, at least, to which an error is compared: results that cancel have none


def tensors(value: Any) -> List[torch.Tensor]:
    return [each for each in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(each, torch.Tensor)]


def difference(got: torch.Tensor, want: torch.Tensor, tolerance: float) -> Optional[str]:
    """What is wrong with a result, in words; None if nothing is."""
    if got.shape != want.shape:
        return f"has the shape {tuple(got.shape)}, not {tuple(want.shape)}"
    got, want = got.detach().cpu(), want.detach()
    if not want.is_floating_point():
        return None if torch.equal(got.to(want.dtype), want) else "is another one"
    got = got.double()
    if not torch.equal(got.isnan(), want.isnan()):
        return f"has {int(got.isnan().sum())} NaN, not {int(want.isnan().sum())}"
    finite = want.isfinite() & got.isfinite()
    got, want = got[finite], want[finite]
    error = float((got - want).norm() / (want.norm() + FLOOR * math.sqrt(max(want.numel(), 1))))
    return f"is off by {error:.1e} of its norm" if error > tolerance else None


def run(function: Function, given: Sequence[torch.Tensor]) -> Tuple[Optional[List[torch.Tensor]], str]:
    """Results, or none and the words of the error."""
    try:
        return tensors(function(*given)), ""
    except (RuntimeError, NotImplementedError, IndexError, ValueError) as error:
        return None, f"{type(error).__name__}: {error}"


def compare(draw: Draw, function: Function, arguments: Sequence[Argument]) -> Optional[List[str]]:
    """What differs, in words. None where the case shows nothing: the CPU refuses it in double precision, or CUDA lacks
    its dtype; whether rightly is what the sweep looks at."""
    exact = [argument.exact.clone().requires_grad_(argument.differentiable) for argument in arguments]
    want, _ = run(function, exact)
    if want is None:
        return None
    dirty(draw.dtype)
    given = [argument.arranged.detach().requires_grad_(argument.differentiable) for argument in arguments]
    got, words = run(function, given)
    if got is None:
        return None if "not implemented for" in words else [f"raises {words}"]
    tolerance = max((TOLERANCE[t.dtype] for t in given if t.is_floating_point()), default=0.0)
    found = [(f"result {i}", difference(g, w, tolerance)) for i, (g, w) in enumerate(zip(got, want))]
    with_slope = [(g, w) for g, w in zip(got, want) if w.requires_grad]
    if with_slope and not any(words for _, words in found):
        slopes = [torch.randn(w.shape).to(g.dtype) for g, w in with_slope]
        wanted, _ = gradients([w for _, w in with_slope], exact, [slope.double() for slope in slopes])
        if wanted is None:
            return None
        dirty(draw.dtype)
        grads, words = gradients([g for g, _ in with_slope], given, [draw.arrange(slope)[0] for slope in slopes])
        if grads is None:
            return None if "not implemented for" in words else [f"the backward raises {words}"]
        for i, (one, other) in enumerate(zip(grads, wanted)):
            if (one is None) != (other is None):
                found.append((f"gradient {i}", f"is {'missing' if one is None else 'there'}"))
            elif one is not None and other is not None:
                found.append((f"gradient {i}", difference(one, other, tolerance)))
    return [f"{what} {words}" for what, words in found if words]


def gradients(
    results: Sequence[torch.Tensor], given: Sequence[torch.Tensor], slopes: Sequence[torch.Tensor]
) -> Tuple[Optional[Sequence[Optional[torch.Tensor]]], str]:
    """Gradients of what asks for them, or none and the words of the error: a release may lack a derivative."""
    leaves = [tensor for tensor in given if tensor.requires_grad]
    try:
        return torch.autograd.grad(results, leaves, slopes, allow_unused=True), ""
    except (RuntimeError, NotImplementedError) as error:
        return None, str(error)
