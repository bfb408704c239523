"""Memory that copies of tensors live in while they wait for the disk.

Fresh memory for each copy costs more than the copy: the kernel has to clear every page of it. So what the writer is
done with is kept for the next copy, up to a limit, until the record ends.
"""

import threading
from typing import Any, List, Tuple

import torch

# Smaller ones come from the allocator's own lists.
_SMALLEST = 1 << 20
_MOST_KEPT = 256 << 20
_lock = threading.Lock()
_free: List[Any] = []
_kept = 0


def copy(tensor: Any) -> Tuple[Any, Any]:
    """A CPU copy with the values, dtype, shape and, where elements do not overlap, strides; and what to give back."""
    size = tensor.numel() * tensor.element_size()
    if size < _SMALLEST:
        values = tensor.to("cpu", copy=True)
        for resolve in ("resolve_conj", "resolve_neg"):
            if hasattr(values, resolve):
                values = getattr(values, resolve)()
        return values, None
    buffer = _take(size)
    flat = buffer[:size].view(tensor.dtype)
    strides = tensor.stride()
    values = flat.as_strided(tensor.shape, strides) if dense(tensor) else flat.view(tensor.shape)
    values.copy_(tensor)
    # copy_ has carried out what a lazy conjugate or negative only says.
    return values, buffer


def scratch(size: int) -> Tuple[Any, Any]:
    """size bytes on the CPU, and what to give back."""
    buffer = _take(size)
    return buffer[:size], buffer


def give(buffer: Any) -> None:
    """Nobody reads the copy any more."""
    global _kept
    if buffer is None:
        return
    with _lock:
        if _kept + buffer.numel() <= _MOST_KEPT:
            _free.append(buffer)
            _kept += buffer.numel()


def clear() -> None:
    global _kept
    with _lock:
        _free.clear()
        _kept = 0


def dense(tensor: Any) -> bool:
    """Whether the elements fill one piece of memory, each place once."""
    step = 1
    for stride, length in sorted((stride, length) for stride, length in zip(tensor.stride(), tensor.shape)):
        if length != 1:
            if stride != step:
                return False
            step *= length
    return True


def _take(size: int) -> Any:
    global _kept
    with _lock:
        fitting = [(buffer.numel(), place) for place, buffer in enumerate(_free) if size <= buffer.numel() <= 2 * size]
        if fitting:
            buffer = _free.pop(min(fitting)[1])
            _kept -= buffer.numel()
            return buffer
    return torch.empty(size, dtype=torch.uint8, device="cpu")
