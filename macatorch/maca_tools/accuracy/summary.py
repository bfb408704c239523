"""What level 1 keeps of a tensor instead of its values."""

import base64
import ctypes
import math
import struct
import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from maca_tools.accuracy import checksum
from maca_tools.accuracy.workers import PIECE, Workers, pieces

# Numbers of a sketch: the norm that it estimates has a relative standard deviation of sqrt(1 / (2 SKETCH)), 4.4 %.
SKETCH = 256
# Signs repeat after so many elements, shifted; a multiple of PIECE.
_PERIOD = 1 << 20
# Tensors that Seen keeps summaries of, and the fewest elements of one. A summary takes 3 KB.
_MOST_SEEN = 4096
_WORTH_LOOKING = 1 << 10


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
        stored = dict(self._asdict())
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
    room = None if flat.device.type == "cpu" else _room(flat.dtype)
    for start, behind in pieces(first, end):
        piece = flat[start:behind]
        if room is not None:
            piece = room[: piece.numel()].copy_(piece)
        yield piece


def _crc_of_piece(piece: Any, before: int) -> int:
    size = piece.numel() * piece.element_size()
    return int(checksum.crc32((ctypes.c_char * size).from_address(piece.data_ptr()), before))


def _room(dtype: Any, use: str = "piece") -> Any:
    """Memory of this thread for one piece."""
    key = f"{use} {dtype}"
    found = getattr(_rooms, key, None)
    if found is None:
        found = torch.empty(PIECE, dtype=dtype, device="cpu")
        setattr(_rooms, key, found)
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


class _Statistics:
    """Of one part of a tensor, from its pieces in order. first: the number of its first element in the tensor."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.low, self.high = float("inf"), float("-inf")
        self.sum = self.norm = 0.0
        self.nan = self.inf = self.count = 0
        self.sketch = torch.zeros(SKETCH, dtype=torch.float64, device="cpu")

    def add(self, piece: Any) -> None:
        values = real_values(piece)
        low, high = (float(part) for part in torch.aminmax(values))
        if not (low > float("-inf") and high < float("inf")):
            nan = int(torch.isnan(values).sum())
            finite = torch.isfinite(values)
            kept = values[finite]
            self.nan += nan
            self.inf += values.numel() - nan - kept.numel()
            values = torch.where(finite, values, torch.zeros_like(values))
            low, high = (float(kept.min()), float(kept.max())) if kept.numel() else (float("inf"), float("-inf"))
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.sum += float(values.sum())
        self.norm = math.hypot(self.norm, float(torch.linalg.vector_norm(values)))
        self._add_to_sketch(values)
        self.count += values.numel()

    def join(self, other: "_Statistics") -> None:
        """The numbers of the next part, too."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.sum += other.sum
        self.norm = math.hypot(self.norm, other.norm)
        self.nan, self.inf, self.count = self.nan + other.nan, self.inf + other.inf, self.count + other.count
        self.sketch += other.sketch

    def _add_to_sketch(self, values: Any) -> None:
        number, offset = divmod(self.first + self.count, _PERIOD)
        # Another shift each time: else a constant would meet the same signs again and count double.
        start = number * 7919 % _PERIOD + offset
        signs = _fixed_signs()[start : start + values.numel()]
        signed = torch.mul(values, signs, out=_room(values.dtype, "signed")[: values.numel()])
        whole = signed.numel() // SKETCH * SKETCH
        if whole:
            # A product with ones: several times faster than sum(0).
            ones = _ones(values.dtype)[: whole // SKETCH]
            self.sketch += torch.mv(signed[:whole].view(-1, SKETCH).t(), ones)
        if whole < signed.numel():
            self.sketch[: signed.numel() - whole] += signed[whole:]


def _ones(dtype: Any) -> Any:
    if dtype not in _all_ones:
        _all_ones[dtype] = torch.ones(PIECE // SKETCH, dtype=dtype, device="cpu")
    return _all_ones[dtype]


_all_ones: Dict[Any, Any] = {}


def real_values(tensor: Any) -> Any:
    """A flat tensor of float32 or float64 with the same values; complex numbers become pairs."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj() if hasattr(tensor, "resolve_conj") else tensor)
    flat = tensor.contiguous().reshape(-1)
    if flat.dtype in (torch.float32, torch.float64):
        return flat
    return flat.to(torch.float32 if flat.is_floating_point() else torch.float64)


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
        for piece in _pieces(flat, first, end):
            if crc is None:
                part = _crc_of_piece(piece, part)
            found.add(piece)
        return found, (part, (end - first) * flat.element_size())

    parts = _over_parts(flat, workers, numbers_of)
    found = parts[0][0]
    for other, _ in parts[1:]:
        found.join(other)
    if crc is None:
        crc = _whole_crc([part for _, part in parts])
    if found.count == 0:
        return TensorSummary(dtype, shape, stride, device, 0.0, 0.0, 0.0, 0.0, 0, 0, crc, None)
    finite = found.count - found.nan - found.inf
    low, high = (found.low, found.high) if finite else (float("nan"), float("nan"))
    mean = found.sum / max(finite, 1)
    sketch = found.sketch.tolist()
    return TensorSummary(dtype, shape, stride, device, low, high, mean, found.norm, found.nan, found.inf, crc, sketch)


class Seen:
    """Summaries of this record, for tensors that are read where they were written.

    Half of what a run records is a tensor again that it has recorded before: an output that is the next operator's
    input, a parameter. It is taken for the same if it lies at the same place, has the same version and layout and its
    values have the same CRC; so a change that no version counts is still seen.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stored: Dict[Any, Tuple[int, Dict[str, Any]]] = {}
        self._workers = Workers()

    def close(self) -> None:
        self._workers.close()

    def summary(self, tensor: Any, dtype: str, stride: List[int], device: str, place: Any) -> Dict[str, Any]:
        """What is stored of a tensor. place: the address and version of the original, or None if it has none."""
        if place is None or tensor.numel() < _WORTH_LOOKING:
            return summarize(tensor, dtype, stride, device).as_dict()
        key = (place, dtype, tuple(tensor.shape), tuple(stride), device)
        known = self._stored.get(key)
        crc = None if known is None else crc32(tensor, self._workers)
        if known is not None and known[0] == crc:
            return known[1]
        found = summarize(tensor, dtype, stride, device, crc, self._workers)
        with self._lock:
            self._stored.pop(key, None)
            while len(self._stored) >= _MOST_SEEN:
                del self._stored[next(iter(self._stored))]
            self._stored[key] = (found.crc, found.as_dict())
            return self._stored[key][1]
