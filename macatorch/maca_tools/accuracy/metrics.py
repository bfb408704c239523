"""How far two tensors are apart. Side 0 is the reference: errors are relative to it."""

import math
from typing import Any, List, NamedTuple, Optional

import torch

from maca_tools.accuracy.summary import TensorSummary, crc32

# Elements in flight: small enough for the cache, so that a pass over memory happens once per tensor.
_CHUNK = 1 << 16
# Edges of the histogram of errors: decades of |a-b| / rms(a), from below 1e-9 to above 1e1.
HISTOGRAM_LOW, HISTOGRAM_BINS = -9, 11


class Metrics(NamedTuple):
    """See docs/accuracy.md for each. None: not known, as for most at level 1."""

    max0: Optional[float] = None
    min0: Optional[float] = None
    max1: Optional[float] = None
    min1: Optional[float] = None
    diff1: Optional[float] = None
    diff2: Optional[float] = None
    cosine: Optional[float] = None
    max_abs: Optional[float] = None
    max_rel: Optional[float] = None
    pcc: Optional[float] = None
    within_1e3: Optional[float] = None
    within_5e3: Optional[float] = None
    ulp: Optional[float] = None
    crc_equal: Optional[bool] = None
    norm: float = 0.0
    absolute: float = 0.0
    histogram: Optional[List[int]] = None
    estimated: bool = False


def _ratio(over: float, under: float) -> float:
    if under > 0.0:
        return over / under
    return 0.0 if over == 0.0 else math.inf


def of_summaries(a: TensorSummary, b: TensorSummary) -> Metrics:
    """diff2 is estimated from the sketches; diff1 and the like cannot be known."""
    same = a.crc == b.crc and a.dtype == b.dtype
    difference = 0.0
    if not same:
        if a.nan != b.nan or a.inf != b.inf:
            difference = math.inf
        elif a.sketch and b.sketch:
            difference = math.sqrt(sum((x - y) ** 2 for x, y in zip(a.sketch, b.sketch)))
        else:
            difference = abs(a.norm - b.norm)
    error = _ratio(difference, a.norm)
    return Metrics(
        a.max, a.min, b.max, b.min, diff2=error, crc_equal=same, norm=a.norm, absolute=difference, estimated=True
    )


def _ordered(bits: Any) -> Any:
    """Integers in the order of the floats whose bits they are, so that their difference counts the steps between."""
    low = torch.iinfo(bits.dtype).min
    wide = bits.to(torch.int64)
    return torch.where(wide < 0, low - wide, wide)


_BITS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32}


def of_tensors(a: Any, b: Any) -> Metrics:
    """Both tensors dense, on the CPU, of one shape; dtypes may differ."""
    if a.is_complex():
        a = torch.view_as_real(a.resolve_conj())
    if b.is_complex():
        b = torch.view_as_real(b.resolve_conj())
    a, b = a.contiguous().reshape(-1), b.contiguous().reshape(-1)
    count = a.numel()
    if count == 0:
        return Metrics(diff1=0.0, diff2=0.0, crc_equal=True)
    if a.dtype == b.dtype and _equal(a, b):
        low, high = _extremes(a)
        norm = float(torch.linalg.vector_norm(a if a.dtype in (torch.float32, torch.float64) else a.to(torch.float32)))
        # What is equal bit by bit needs no further look; NaN equals NaN here.
        return Metrics(high, low, high, low, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, True, norm, 0.0, None)
    # Differences of float16, bfloat16 and float32 are exact enough in double; sums always are in double.
    bits = _BITS.get(a.dtype) if a.dtype == b.dtype else None
    sums = [0.0] * 8
    peaks = {"abs": 0.0, "rel": 0.0, "ulp": 0.0}
    ends = [math.inf, -math.inf, math.inf, -math.inf]
    histogram = torch.zeros(HISTOGRAM_BINS, dtype=torch.float64, device="cpu")
    within = [0, 0]
    broken = False
    scale = 0.0
    for start in range(0, count, _CHUNK):
        x, y = a[start : start + _CHUNK], b[start : start + _CHUNK]
        x64, y64 = x.to(torch.float64), y.to(torch.float64)
        gap = x64 - y64
        if not bool(torch.isfinite(gap.sum())):
            both = torch.isfinite(x64) & torch.isfinite(y64)
            alike = (torch.isnan(x64) & torch.isnan(y64)) | (x64 == y64)
            broken = broken or not bool((both | alike).all())
            x64, y64 = torch.where(both, x64, torch.zeros_like(x64)), torch.where(both, y64, torch.zeros_like(y64))
            gap = x64 - y64
        magnitude, size = gap.abs(), x64.abs()
        sums[0] += float(magnitude.sum())
        sums[1] += float(size.sum())
        sums[2] += float(torch.dot(gap, gap))
        square = float(torch.dot(x64, x64))
        sums[3] += square
        sums[4] += float(torch.dot(y64, y64))
        sums[5] += float(torch.dot(x64, y64))
        sums[6] += float(x64.sum())
        sums[7] += float(y64.sum())
        low, high = torch.aminmax(x64)
        ends[0], ends[1] = min(ends[0], float(low)), max(ends[1], float(high))
        low, high = torch.aminmax(y64)
        ends[2], ends[3] = min(ends[2], float(low)), max(ends[3], float(high))
        peaks["abs"] = max(peaks["abs"], float(magnitude.max()))
        relative = magnitude / size
        relative.nan_to_num_(nan=0.0, posinf=math.inf)
        peaks["rel"] = max(peaks["rel"], float(relative.max()))
        within[0] += int((relative <= 1e-3).sum())
        within[1] += int((relative <= 5e-3).sum())
        if bits is not None:
            peaks["ulp"] = max(peaks["ulp"], float((_ordered(x.view(bits)) - _ordered(y.view(bits))).abs().max()))
        if scale == 0.0:
            scale = math.sqrt(square / x.numel()) or 1.0
        logs = (
            (magnitude / scale)
            .clamp_(1e-12)
            .log10_()
            .floor_()
            .clamp_(HISTOGRAM_LOW - 1, HISTOGRAM_LOW + HISTOGRAM_BINS - 2)
        )
        histogram += torch.histc(logs, HISTOGRAM_BINS, HISTOGRAM_LOW - 1, HISTOGRAM_LOW + HISTOGRAM_BINS - 2)
    norm_a, norm_b = math.sqrt(sums[3]), math.sqrt(sums[4])
    cosine = _ratio(sums[5], norm_a * norm_b) if norm_a * norm_b > 0 else (1.0 if norm_a == norm_b else 0.0)
    spread = (sums[3] - sums[6] ** 2 / count) * (sums[4] - sums[7] ** 2 / count)
    pcc = (sums[5] - sums[6] * sums[7] / count) / math.sqrt(spread) if spread > 0 else None
    absolute = math.inf if broken else math.sqrt(sums[2])
    exact = not (a.is_floating_point() or b.is_floating_point())
    return Metrics(
        ends[1],
        ends[0],
        ends[3],
        ends[2],
        math.inf if broken else _ratio(sums[0], sums[1]),
        math.inf if broken else _ratio(absolute, norm_a),
        max(-1.0, min(1.0, cosine)),
        math.inf if broken else peaks["abs"],
        math.inf if broken else peaks["rel"],
        pcc if pcc is None else max(-1.0, min(1.0, pcc)),
        within[0] / count,
        within[1] / count,
        peaks["ulp"] if bits is not None and not exact else None,
        crc32(a) == crc32(b) if a.dtype == b.dtype else False,
        norm_a,
        absolute,
        [int(n) for n in histogram.tolist()],
    )


def _equal(a: Any, b: Any) -> bool:
    size = a.element_size()
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(size)
    if a.dtype == torch.bool or whole is None:
        return bool(torch.equal(a, b))
    return bool(torch.equal(a.view(whole), b.view(whole)))


def _extremes(a: Any) -> Any:
    try:
        if a.dtype == torch.bool:
            return float(bool(a.all())), float(bool(a.any()))
        low, high = torch.aminmax(a)
    except RuntimeError:
        low, high = torch.aminmax(a.to(torch.float32))
    return float(low), float(high)
