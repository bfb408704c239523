"""Threads that sum tensors up, each on one core.

Note [Pieces and cores]
What is computed of a tensor piece by piece, so that the piece stays in the processor's cache, takes a tenth of a
millisecond a step. torch's own parallel loops wake their threads for each of these steps, which takes as long, and
many times as long where other programs use the cores. So here each of several parts of a tensor has a thread that goes
through its pieces alone.
"""

import contextlib
import ctypes
import os
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Callable, Iterator, List, Tuple, TypeVar

import torch

# Elements of a piece.
PIECE = 1 << 17
# torch computes fewer elements than this in the thread that asks.
_ALONE = 1 << 15
_MOST = 4
_Result = TypeVar("_Result")


def _one_core() -> None:
    """For this thread only: its parallel loops have one part."""
    # torch sets the number when a thread first asks for it, and not again.
    torch.get_num_threads()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).omp_set_num_threads(1)


def _cores() -> int:
    ask = getattr(os, "sched_getaffinity", None)
    return max(1, min(_MOST, len(ask(0)) if ask is not None else os.cpu_count() or 1))


class Workers:
    def __init__(self) -> None:
        self.count = _cores()
        self._pool = ThreadPoolExecutor(self.count, "maca-accuracy-sums", _one_core)

    def close(self) -> None:
        self._pool.shutdown()

    def over_parts(self, tensor: Any, compute: Callable[[int, int], _Result]) -> List[_Result]:
        """compute(first, end) of each part of the elements of a tensor, in order; parts begin at multiples of PIECE.

        Device work in compute belongs to the caller's stream.
        """
        elements = tensor.numel()
        if elements < _ALONE:
            return [compute(0, elements)]
        whole = -(-elements // PIECE)
        count = min(self.count, whole)
        bounds = [whole * part // count * PIECE for part in range(count)] + [elements]
        parts: List[Tuple[int, int]] = list(zip(bounds, bounds[1:]))
        stream = torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None
        try:
            waiting = [self._pool.submit(_on_stream, stream, compute, first, end) for first, end in parts]
        except RuntimeError:
            # Python, about to exit, starts no more threads.
            return [compute(first, end) for first, end in parts]
        # All of them, also where one fails: the caller may then let the tensor go.
        wait(waiting)
        return [future.result() for future in waiting]


def _on_stream(stream: Any, compute: Callable[[int, int], _Result], first: int, end: int) -> _Result:
    with contextlib.nullcontext() if stream is None else torch.cuda.stream(stream):
        return compute(first, end)


def pieces(first: int, end: int) -> Iterator[Tuple[int, int]]:
    """First and end of each piece of a part."""
    for start in range(first, end, PIECE):
        yield start, min(start + PIECE, end)
