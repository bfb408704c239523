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


try:
    _omp_threads: Any = getattr(ctypes.CDLL(None), "omp_set_num_threads", None)
except (OSError, TypeError):
    # A system whose programs have no table of all their symbols.
    _omp_threads = None


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """In this thread parallel loops have one part meanwhile; the number is each thread's own."""
    # torch sets the number when a thread first asks for it, and not again.
    before = torch.get_num_threads()
    if _omp_threads is None or before == 1:
        yield
        return
    _omp_threads(1)
    try:
        yield
    finally:
        _omp_threads(before)


def _cores() -> int:
    ask = getattr(os, "sched_getaffinity", None)
    return max(1, min(_MOST, len(ask(0)) if ask is not None else os.cpu_count() or 1))


class Workers:
    def __init__(self) -> None:
        self.count = _cores()
        # Who asks computes the first part.
        self._pool = ThreadPoolExecutor(max(1, self.count - 1), "maca-accuracy-sums")

    def close(self) -> None:
        self._pool.shutdown()

    def over_parts(self, data: Any, compute: Callable[[int, int], _Result]) -> List[_Result]:
        """compute(first, end) of each part of the elements of a tensor, in order; parts begin at multiples of PIECE.

        data: the tensor, or its number of elements. Device work in compute belongs to the caller's stream.
        """
        elements, on_device = (data, False) if isinstance(data, int) else (data.numel(), data.is_cuda)
        if elements < _ALONE:
            return [compute(0, elements)]
        whole = -(-elements // PIECE)
        # A part of one piece takes as long as handing it over.
        count = max(1, min(self.count, whole // 2))
        bounds = [whole * part // count * PIECE for part in range(count)] + [elements]
        (first, *others) = zip(bounds, bounds[1:])
        stream = torch.cuda.current_stream(data.device) if on_device else None
        waiting: List[Any] = []
        try:
            for start, end in others:
                waiting.append(self._pool.submit(_on_stream, stream, compute, start, end))
        except RuntimeError:
            # Python, about to exit, starts no more threads.
            pass
        try:
            with _one_core():
                results = [compute(*first)]
                results += [compute(*part) for part in others[len(waiting) :]]
        finally:
            # All of them, also where one fails: the caller may then let the tensor go.
            wait(waiting)
        return [results[0], *[future.result() for future in waiting], *results[1:]]


def _on_stream(stream: Any, compute: Callable[[int, int], _Result], first: int, end: int) -> _Result:
    with _one_core(), contextlib.nullcontext() if stream is None else torch.cuda.stream(stream):
        return compute(first, end)


def pieces(first: int, end: int) -> Iterator[Tuple[int, int]]:
    """First and end of each piece of a part."""
    for start in range(first, end, PIECE):
        yield start, min(start + PIECE, end)
