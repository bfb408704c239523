"""Images that the layout rule made channels-last, on their way into a kernel.

A 4-D tensor that moves from the CPU to the device arrives channels-last. A kernel that works out places from sizes, as
the program's author knows them to be, would read another element, and nobody would notice. So such a tensor is brought
into the order that it has upstream: in place where nobody can tell, else in a copy that is copied back afterwards.
Kernels that are told the strides, and Inductor's own, know where the elements lie.
"""

import os
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence

# What the launch is given before the kernel's own arguments: grid, stream, function, metadata, hooks.
LEADING = 9
_RANKS = [3] * ("PYTORCH_DEFAULT_NLC" in os.environ) + [4] * ("PYTORCH_DEFAULT_NCHW" not in os.environ)
_RANKS += [5] * ("PYTORCH_DEFAULT_NDHWC" in os.environ)
# What Inductor calls its own kernels, behind which it says what they do: pointwise, reductions, templates.
_INDUCTORS = "triton_"


def applies(fn: Any) -> str:
    """Return how arguments of a kernel's function may be reordered: `in place`, in a `copy`, or not at all (empty)."""
    python = getattr(fn, "fn", None)
    if python is None or not _RANKS:
        return ""
    if "triton_heuristics" not in getattr(python, "__globals__", {}):
        return "in place"
    # A kernel of the program's, called in compiled code, which counts on the strides that its tensors have.
    return "" if python.__name__.startswith(_INDUCTORS) else "copy"


def images(arguments: Sequence[Any], places: Iterable[int]) -> List[Any]:
    """Return what may have to be reordered among the arguments at these places. Every launch comes here."""
    found = []
    for at in places:
        value = arguments[at]
        if type(value) is tuple:
            found += images(value, range(len(value)))
        elif getattr(value, "ndim", 0) in _RANKS and not value.is_contiguous():
            found.append(value)
    return found


def launch(
    call: Callable[..., None], arguments: Sequence[Any], suspects: Sequence[Any], how: str, constants: List[int]
) -> None:
    """Launch with each image of `suspects` in upstream's order, unless the kernel is told its strides.

    `constants` are the numbers that the kernel was compiled for.
    """
    torch = sys.modules["torch"]
    numbers = list(_numbers(arguments[LEADING:]))
    away = {}
    for tensor in suspects:
        strides = list(tensor.stride()[1:])
        told = _contains(numbers, strides) or _contains(constants, strides)
        if not told and torch.ops.macatorch.is_contiguous_upstream(tensor):
            away[id(tensor)] = tensor
    # All or none: what a kernel combines element by element has one order before, and must have one afterwards.
    if not away or (how == "in place" and torch.ops.macatorch.reorder_in_place(list(away.values()))):
        call(*arguments)
        return
    # One copy of what several arguments name: each sees what the kernel writes through the others.
    copies: Dict[Any, Any] = {}
    replaced = {}
    for key, tensor in away.items():
        memory = tensor.data_ptr(), tensor.dtype, tensor.shape
        if memory not in copies:
            copies[memory] = tensor, tensor.detach().contiguous()
        replaced[key] = copies[memory][1]
    _require_apart(arguments[LEADING:], away)
    call(*_replaced(arguments, replaced))
    for tensor, copy in copies.values():
        # A kernel's writes do not count for autograd, nor do those by way of `data`.
        tensor.data.copy_(copy)


def _require_apart(values: Sequence[Any], away: Dict[int, Any]) -> None:
    """Refuse other views of an image's memory, whose writes a copy would not show."""
    storages = {tensor.untyped_storage().data_ptr() for tensor in away.values()}
    for value in values:
        if isinstance(value, tuple):
            _require_apart(value, away)
            continue
        storage = getattr(value, "untyped_storage", None)
        if storage is not None and id(value) not in away and storage().data_ptr() in storages:
            raise RuntimeError(
                "a Triton kernel is given an image that arrived channels-last and another view of its memory, and is "
                "not told the image's strides: pass .contiguous(), or set PYTORCH_DEFAULT_NCHW=1 to keep upstream's "
                "layout."
            )


def _numbers(values: Sequence[Any]) -> Iterator[int]:
    for value in values:
        if isinstance(value, int):
            yield value
        elif isinstance(value, tuple):
            yield from _numbers(value)


def _contains(numbers: List[int], wanted: List[int]) -> bool:
    return any(numbers[at : at + len(wanted)] == wanted for at in range(len(numbers) - len(wanted) + 1))


def _replaced(values: Any, copies: Dict[int, Any]) -> List[Any]:
    def replace(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(replace(member) for member in value)
        return copies.get(id(value), value)

    return [replace(value) for value in values]
