"""What level 1 keeps of a tensor instead of its values."""

import ctypes
import zlib
from typing import Any, Dict, List, NamedTuple, Optional

import torch

# Columns of the sketch: the estimate of a difference has a relative standard deviation of sqrt(2 / SKETCH), 18 %.
SKETCH = 64


class TensorSummary(NamedTuple):
    """min, max, mean and norm are over the finite elements; of a complex tensor, over its real and imaginary parts.

    sketch is a linear projection of the values on 64 numbers with fixed random signs (a count sketch): the norm of the
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
        return dict(self._asdict())


def crc32(tensor: Any) -> int:
    """CRC-32 of the values in logical order, so that it does not depend on the strides. Needs a CPU tensor."""
    flat = tensor.contiguous()
    if getattr(flat, "is_conj", None) and flat.is_conj():
        flat = flat.resolve_conj()
    if getattr(flat, "is_neg", None) and flat.is_neg():
        flat = flat.resolve_neg()
    size = flat.numel() * flat.element_size()
    if size == 0:
        return 0
    return zlib.crc32((ctypes.c_char * size).from_address(flat.data_ptr())) & 0xFFFFFFFF


_signs: List[Any] = []


def _row_signs(rows: int) -> Any:
    """Fixed signs, from a counter and not from torch's random stream, which recording must not touch."""
    if not _signs or _signs[0].numel() < rows:
        index = torch.arange(max(rows, 1 << 14), dtype=torch.int64)
        # A multiplicative hash of the row number; the top bit of 31 is the sign.
        mixed = (index * 2654435761) & 0x7FFFFFFF
        mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0x7FFFFFFF
        mixed = ((mixed ^ (mixed >> 13)) * 3266489917) & 0x7FFFFFFF
        _signs[:] = [((mixed >> 30) & 1).to(torch.float32) * 2 - 1]
    return _signs[0][:rows]


def real_values(tensor: Any) -> Any:
    """A flat tensor of float32 or float64 with the same values; complex numbers become pairs."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj() if hasattr(tensor, "resolve_conj") else tensor)
    flat = tensor.contiguous().reshape(-1)
    if flat.dtype in (torch.float32, torch.float64):
        return flat
    return flat.to(torch.float32 if flat.is_floating_point() else torch.float64)


def summarize(tensor: Any, dtype: str, stride: List[int], device: str) -> TensorSummary:
    """The summary of a dense CPU tensor; dtype, stride and device are those of the tensor that it was copied from."""
    crc = crc32(tensor)
    values = real_values(tensor)
    shape = list(tensor.shape)
    if values.numel() == 0:
        return TensorSummary(dtype, shape, stride, device, 0.0, 0.0, 0.0, 0.0, 0, 0, crc, None)
    low, high = (float(part) for part in torch.aminmax(values))
    nan = inf = 0
    if not (low > float("-inf") and high < float("inf")):
        not_a_number = torch.isnan(values)
        nan = int(not_a_number.sum())
        finite = torch.isfinite(values)
        inf = values.numel() - nan - int(finite.sum())
        values = torch.where(finite, values, torch.zeros_like(values))
        kept = values[finite]
        low, high = (float(kept.min()), float(kept.max())) if kept.numel() else (float("nan"), float("nan"))
    count = max(values.numel() - nan - inf, 1)
    rows = values.numel() // SKETCH
    sketch = torch.zeros(SKETCH, dtype=torch.float64)
    if rows:
        sketch += (_row_signs(rows).to(values.dtype) @ values[: rows * SKETCH].view(rows, SKETCH)).double()
    rest = values[rows * SKETCH :]
    if rest.numel():
        sketch[: rest.numel()] += rest.double()
    norm = float(torch.linalg.vector_norm(values))
    mean = float(values.mean()) * values.numel() / count
    return TensorSummary(dtype, shape, stride, device, low, high, mean, norm, nan, inf, crc, sketch.tolist())
