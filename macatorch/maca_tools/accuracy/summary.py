"""What level 1 keeps of a tensor instead of its values."""

import base64
import ctypes
import struct
import zlib
from typing import Any, Dict, List, NamedTuple, Optional

import torch

# Numbers of a sketch: the norm that it estimates has a relative standard deviation of sqrt(1 / (2 SKETCH)), 4.4 %.
SKETCH = 256
# Signs repeat after so many elements, shifted.
_PERIOD = 1 << 20


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


def _sketch(values: Any) -> Any:
    signs = _fixed_signs()
    sketch = torch.zeros(SKETCH, dtype=torch.float64, device="cpu")
    for number, start in enumerate(range(0, values.numel(), _PERIOD)):
        signed = values[start : start + _PERIOD]
        # Another shift each time: else a constant would meet the same signs again and count double.
        shift = number * 7919 % _PERIOD
        signed = signed * signs[shift : shift + signed.numel()].to(signed.dtype)
        whole = signed.numel() // SKETCH * SKETCH
        part = torch.zeros(SKETCH, dtype=torch.float64, device="cpu")
        if whole:
            part += signed[:whole].view(-1, SKETCH).sum(0).double()
        if whole < signed.numel():
            part[: signed.numel() - whole] += signed[whole:].double()
        sketch += part
    return sketch


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
    sketch = _sketch(values)
    norm = float(torch.linalg.vector_norm(values))
    mean = float(values.mean()) * values.numel() / count
    return TensorSummary(dtype, shape, stride, device, low, high, mean, norm, nan, inf, crc, sketch.tolist())
