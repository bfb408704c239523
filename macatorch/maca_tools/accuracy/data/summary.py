"""What level 1 keeps of a tensor instead of its values."""

import base64
import ctypes
import functools
import math
import struct
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from maca_tools.accuracy.data import capture, checksum, host_memory
from maca_tools.accuracy.data.workers import PIECE, Workers, pieces

# Numbers of a sketch: the norm that it estimates has a relative standard deviation of sqrt(1 / (2 SKETCH)), 4.4 %.
SKETCH = 256
# Signs repeat after so many elements, shifted; a multiple of PIECE.
_PERIOD = 1 << 20
# Bytes that a summary takes, in memory and in a file.
STORED_BYTES = 3072
# Tensors that Seen keeps summaries of.
_MOST_SEEN = 4096
# From so many bytes on a checksum is shared among the workers; below, handing a part over takes longer than it.
_WORTH_HELP = 8 << 20 if checksum.FAST else 1 << 20


class TensorSummary(NamedTuple):
    """min, max, mean and norm are over the finite elements; of a complex tensor, over its real and imaginary parts.

    sketch is a linear projection of the values on 256 numbers with fixed random signs (a count sketch): the norm of the
    difference of two sketches estimates the norm of the difference of the tensors, which min, max and norm cannot show.
    """

    dtype: str
    shape: List[int]
    stride: List[int]
    device: str
    min: float
    max: float
    mean: float
    norm: float
    nan: int
    inf: int
    crc: int
    sketch: Optional[List[float]] = None

    def as_dict(self) -> Dict[str, Any]:
        """As it is stored: the sketch is base64 of little-endian doubles, which loads a hundred times faster."""
        stored: Dict[str, Any] = dict(zip(self._fields, self))
        if self.sketch is not None:
            stored["sketch"] = base64.b64encode(struct.pack(f"<{len(self.sketch)}d", *self.sketch)).decode("ascii")
        return stored


def from_dict(stored: Dict[str, Any]) -> TensorSummary:
    """The inverse of as_dict. ValueError for what is no summary: the file may be anybody's."""
    fields = {key: stored.get(key) for key in TensorSummary._fields}
    numbers = [fields[key] for key in ("min", "max", "mean", "norm", "nan", "inf", "crc")]
    shape = fields["shape"]
    if not all(isinstance(number, (int, float)) for number in numbers) or not isinstance(fields["dtype"], str):
        raise ValueError("a summary lacks a number")
    if not isinstance(shape, list) or not all(isinstance(length, int) for length in shape):
        raise ValueError("a summary has no shape")
    text = fields["sketch"]
    if text is not None:
        packed = base64.b64decode(text, validate=True)
        if len(packed) != 8 * SKETCH:
            raise ValueError("the sketch of a summary has another length")
        fields["sketch"] = list(struct.unpack(f"<{SKETCH}d", packed))
    return TensorSummary(**fields)  # type: ignore[arg-type]


def crc32(tensor: Any, workers: "Optional[Workers]" = None) -> int:
    """CRC-32 of the values in logical order, so that it does not depend on the strides."""
    flat = _plain(tensor)
    return _whole_crc(_over_parts(flat, workers, lambda first, end: _crc(flat, first, end)))


def _over_parts(flat: Any, workers: "Optional[Workers]", compute: Callable[[int, int], Any]) -> List[Any]:
    return [compute(0, flat.numel())] if workers is None else workers.over_parts(flat, compute)


def _crc(flat: Any, first: int, end: int) -> Tuple[int, int]:
    """The checksum of a part, and its bytes."""
    crc = 0
    for piece in _pieces(flat, first, end):
        crc = _crc_of_piece(piece, crc)
    return crc, (end - first) * flat.element_size()


def _whole_crc(parts: List[Tuple[int, int]]) -> int:
    whole = parts[0][0]
    for crc, size in parts[1:]:
        whole = checksum.joined(whole, crc, size)
    return whole


def _plain(tensor: Any) -> Any:
    """The values in logical order as a flat tensor on the same device; complex numbers become pairs."""
    flat = tensor.detach().contiguous()
    if getattr(flat, "is_conj", None) and flat.is_conj():
        flat = flat.resolve_conj()
    if getattr(flat, "is_neg", None) and flat.is_neg():
        flat = flat.resolve_neg()
    return (torch.view_as_real(flat) if flat.is_complex() else flat).reshape(-1)


def _pieces(flat: Any, first: int, end: int) -> Iterator[Any]:
    """A part of a flat tensor on the CPU, piece by piece; from a device they come into the same memory."""
    room = None if flat.device.type == "cpu" else _room(flat.dtype, "piece")
    for start, behind in pieces(first, end):
        piece = flat[start:behind]
        if room is not None:
            piece = room[: piece.numel()].copy_(piece)
        yield piece


def _crc_of_piece(piece: Any, before: int) -> int:
    size = piece.numel() * piece.element_size()
    return int(checksum.crc32((ctypes.c_char * size).from_address(piece.data_ptr()), before))


def _room(dtype: Any, use: str = "signed") -> Any:
    """Memory of this thread for one piece."""
    rooms: Dict[Any, Any] = _rooms.__dict__
    found = rooms.get((use, dtype))
    if found is None:
        found = rooms[use, dtype] = torch.empty(PIECE, dtype=dtype, device="cpu")
    return found


_rooms = threading.local()


_signs: List[Any] = []


def _fixed_signs() -> Any:
    """A sign for each element, from a counter and not from torch's random stream, which recording must not touch."""
    if not _signs:
        # splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014) of the number.
        mixed = torch.arange(1, _PERIOD + 1, dtype=torch.int64, device="cpu") * -7046029254386353131
        mixed = (mixed ^ ((mixed >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
        mixed = (mixed ^ ((mixed >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
        signs = ((mixed >> 40) & 1).to(torch.float32) * 2 - 1
        _signs.append(torch.cat([signs, signs]))
    return _signs[0]


# Annotations as torch.jit reads them: this function is compiled where it can be. See _sums.
def _sums_of_pieces(
    values: torch.Tensor,
    first: int,
    signs: torch.Tensor,
    ones: torch.Tensor,
    room: torch.Tensor,
    sketch: torch.Tensor,
    piece: int,
    period: int,
) -> List[float]:
    """Minimum, maximum, sum, sum of squares of flat values, and how many of them: up to a piece that is not finite.

    Adds to sketch. first: the number of the first value in its tensor. ones: of the dtype to compute in.
    """
    low, high, total, squares = float("inf"), float("-inf"), 0.0, 0.0
    at, count, width = 0, values.numel(), sketch.numel()
    while at < count:
        part = values.narrow(0, at, min(piece, count - at)).to(ones)
        size = part.numel()
        # Each of the two alone: aminmax takes half as long again.
        least, most = float(torch.amin(part)), float(torch.amax(part))
        if not (least > float("-inf") and most < float("inf")):
            break
        # A third of the time that vector_norm takes.
        square = float(torch.dot(part, part))
        if not (square > 1e-30 and square < 1e38) and (least != 0.0 or most != 0.0):
            # What float32 cannot hold.
            wide = part.to(torch.float64)
            square = float(torch.dot(wide, wide))
        low, high, total, squares = min(low, least), max(high, most), total + float(part.sum()), squares + square
        # Another shift each time: else a constant would meet the same signs again and count double.
        place = first + at
        start = place // period * 7919 % period + place % period
        signed = torch.mul(part, signs.narrow(0, start, size), out=room.narrow(0, 0, size))
        rows = size // width
        if rows > 0:
            # A product with ones: several times faster than sum(0).
            sketch.add_(torch.mv(signed.narrow(0, 0, rows * width).view(rows, width).t(), ones.narrow(0, 0, rows)))
        if rows * width < size:
            sketch.narrow(0, 0, size - rows * width).add_(signed.narrow(0, rows * width, size - rows * width))
        at += size
    return [low, high, total, squares, float(at)]


@functools.lru_cache(maxsize=1)
def _sums() -> Callable[..., List[float]]:
    """_sums_of_pieces without Python in it: other threads have Python's lock from its beginning to its end.

    As it is where torch.jit is missing or switched off: the same numbers, later.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compiled: Callable[..., List[float]] = torch.jit.script(_sums_of_pieces)
        except Exception:
            return _sums_of_pieces
    return compiled


class _Statistics:
    """Of one part of a tensor, from its pieces in order. first: the number of its first element in the tensor."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.low, self.high = float("inf"), float("-inf")
        self.sum = self.squares = 0.0
        self.nan = self.inf = self.count = 0
        self.sketch = torch.zeros(SKETCH, dtype=torch.float64, device="cpu")

    def add(self, values: Any) -> None:
        """Flat values on the CPU, as many as there are."""
        at, count = 0, values.numel()
        while at < count:
            at += self._add_finite(values[at:] if at else values)
            if at < count:
                piece = values[at : at + PIECE]
                at += piece.numel()
                numbers = real_values(piece)
                finite = torch.isfinite(numbers)
                kept = int(finite.sum())
                nan = int(torch.isnan(numbers).sum())
                self.nan += nan
                self.inf += numbers.numel() - nan - kept
                if kept:
                    self.low = min(self.low, float(numbers[finite].min()))
                    self.high = max(self.high, float(numbers[finite].max()))
                # Zeros count in none of the other numbers.
                self._add_finite(torch.where(finite, numbers, torch.zeros_like(numbers)), limits=False)

    def _add_finite(self, values: Any, limits: bool = True) -> int:
        dtype = _computed_in(values.dtype)
        low, high, total, squares, count = _sums()(
            values, self.first + self.count, _fixed_signs(), _ones(dtype), _room(dtype), self.sketch, PIECE, _PERIOD
        )
        if limits:
            self.low, self.high = min(self.low, low), max(self.high, high)
        self.sum += total
        self.squares += squares
        self.count += int(count)
        return int(count)

    def join(self, other: "_Statistics") -> None:
        """The numbers of the next part, too."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.sum += other.sum
        self.squares += other.squares
        self.nan, self.inf, self.count = self.nan + other.nan, self.inf + other.inf, self.count + other.count
        self.sketch += other.sketch


def _ones(dtype: Any) -> Any:
    if dtype not in _all_ones:
        _all_ones[dtype] = torch.ones(PIECE // SKETCH, dtype=dtype, device="cpu")
    return _all_ones[dtype]


_all_ones: Dict[Any, Any] = {}


def real_values(tensor: Any) -> Any:
    """A flat tensor of float32 or float64 with the same values; complex numbers become pairs."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj() if hasattr(tensor, "resolve_conj") else tensor)
    return tensor.contiguous().reshape(-1).to(_computed_in(tensor.dtype))


def _computed_in(dtype: Any) -> Any:
    return torch.float32 if dtype.is_floating_point and dtype != torch.float64 else torch.float64


def summarize(
    tensor: Any,
    dtype: str,
    stride: List[int],
    device: str,
    crc: Optional[int] = None,
    workers: Optional[Workers] = None,
) -> TensorSummary:
    """The summary of a dense tensor; dtype, stride and device are those of the tensor that it was copied from.

    Piece by piece, so that each piece stays in the processor's cache until all of its numbers are known. crc: if it is
    known already.
    """
    shape = list(tensor.shape)
    flat = _plain(tensor)

    def numbers_of(first: int, end: int) -> Tuple[_Statistics, Tuple[int, int]]:
        part, found = 0, _Statistics(first)
        if crc is not None and flat.device.type == "cpu":
            found.add(flat[first:end])
            return found, (0, 0)
        for piece in _pieces(flat, first, end):
            if crc is None:
                part = _crc_of_piece(piece, part)
            found.add(piece)
        return found, (part, (end - first) * flat.element_size())

    if flat.numel() == 0:
        return TensorSummary(dtype, shape, stride, device, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, None)
    parts = _over_parts(flat, workers, numbers_of)
    found = parts[0][0]
    for other, _ in parts[1:]:
        found.join(other)
    if crc is None:
        crc = _whole_crc([part for _, part in parts])
    finite = found.count - found.nan - found.inf
    low, high = (found.low, found.high) if finite else (float("nan"), float("nan"))
    mean = found.sum / max(finite, 1)
    sketch = found.sketch.tolist()
    return TensorSummary(
        dtype, shape, stride, device, low, high, mean, math.sqrt(found.squares), found.nan, found.inf, crc, sketch
    )


def _summarize_one(value: Any, dtype: str, shape: List[int], stride: List[int], device: str, crc: int) -> TensorSummary:
    """The summary of the only element of a tensor; a half of what an optimizer's step records are step counts."""
    number = float(value)
    sketch = [0.0] * SKETCH
    sketch[0] = number * float(_fixed_signs()[0])
    return TensorSummary(dtype, shape, stride, device, number, number, number, abs(number), 0, 0, crc, sketch)


_TENSORS = (torch.Tensor, torch.nn.Parameter)
_dtype_names: Dict[Any, str] = {}


class Seen:
    """Summaries of this record, for tensors that are read where they were written.

    Half of what a run records is a tensor again that it has recorded before: an output that is the next operator's
    input, a parameter. It is taken for the same if it lies at the same place, has the same version and layout and its
    values have the same CRC; so a change that no version counts is still seen.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Of place, dtype and layout: the version, the CRC and what is stored.
        self._stored: Dict[Any, Tuple[int, int, Dict[str, Any]]] = {}
        self._workers = Workers()
        # Compiled before anything is recorded.
        _sums()

    def close(self) -> None:
        self._workers.close()

    def of_plain(self, tensor: Any) -> Optional[Dict[str, Any]]:
        """What is stored of a dense tensor whose memory the host reads, all in one piece; None for any other.

        The same as summary(), without a step for what such a tensor cannot be: most of what a run records is of this
        kind.
        """
        try:
            if (
                type(tensor) not in _TENSORS
                or tensor.layout != torch.strided
                or not host_memory.lies_there(tensor)
                or tensor.is_quantized
                or tensor.is_nested
                or not tensor.is_contiguous()
                or tensor.is_conj()
                or tensor.is_neg()
            ):
                return None
            place, version = tensor.data_ptr(), tensor._version
        except (RuntimeError, NotImplementedError, AttributeError):
            # An inference tensor counts no versions; what only stands for a tensor has no place.
            return None
        elements = tensor.numel()
        if not elements or not place:
            return None
        name = _dtype_names.get(tensor.dtype)
        if name is None:
            name = _dtype_names[tensor.dtype] = str(tensor.dtype).replace("torch.", "")
        shape, stride, device = tuple(tensor.shape), tensor.stride(), str(tensor.device)
        key = (place, name, shape, stride, device)
        crc = self._crc_at(place, elements, tensor.element_size())
        known = self._stored.get(key)
        if known is not None and known[0] == version and known[1] == crc:
            return known[2]
        if elements == 1 and not tensor.is_complex():
            number = tensor.detach().item()
            if math.isfinite(number):
                found = _summarize_one(number, name, list(shape), list(stride), device, crc)
                return self._keep(key, version, crc, found)
        there = host_memory.seen_from_host(tensor.detach())
        return self._keep(key, version, crc, summarize(there, name, list(stride), device, crc, self._workers))

    def _crc_at(self, place: int, elements: int, size: int) -> int:
        def of_part(first: int, end: int) -> Tuple[int, int]:
            length = (end - first) * size
            return int(checksum.crc32((ctypes.c_char * length).from_address(place + first * size))), length

        if elements * size < _WORTH_HELP:
            return of_part(0, elements)[0]
        return _whole_crc(self._workers.over_parts(elements, of_part))

    def _keep(self, key: Any, version: int, crc: int, found: TensorSummary) -> Dict[str, Any]:
        stored = {capture.KIND: "summary", **found.as_dict()}
        with self._lock:
            self._stored.pop(key, None)
            while len(self._stored) >= _MOST_SEEN:
                del self._stored[next(iter(self._stored))]
            self._stored[key] = (version, crc, stored)
        return stored

    def summary(self, tensor: Any, dtype: str, stride: List[int], device: str, place: Any) -> Dict[str, Any]:
        """What is stored of a tensor. place: the address and version of the original, or None if it has none."""
        if place is None or tensor.numel() == 0:
            return {capture.KIND: "summary", **summarize(tensor, dtype, stride, device).as_dict()}
        address, version = place
        key = (address, dtype, tuple(tensor.shape), tuple(stride), device)
        known = self._stored.get(key)
        flat = _plain(tensor)
        crc = None
        if flat.device.type == "cpu":
            crc = self._crc_at(flat.data_ptr(), flat.numel(), flat.element_size())
        elif known is not None and known[0] == version:
            crc = crc32(flat, self._workers)
        if known is not None and known[0] == version and known[1] == crc:
            return known[2]
        found = summarize(flat, dtype, stride, device, crc, self._workers)._replace(shape=list(tensor.shape))
        return self._keep(key, version, found.crc, found)
