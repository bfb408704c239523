"""How far two tensors are apart. Side 0 is the reference: errors are relative to it.

Note [Precision of the statistics]
A comparison is bound by memory and by the number of passes, so tensors go through in pieces that stay in the cache,
and each pass is as narrow as it may be. Differences are taken in double precision, which holds those of float32 and
narrower types exactly, and so are sums of products, which underflow in float32 for small gradients. What is one
rounding away from its definition (a ratio of two elements, a magnitude, a partial sum of 65536 magnitudes) is float32.
Integers and float64 are double precision throughout. Tensors that are equal bit by bit need no differences at all.
"""

import math
import threading
from typing import Any, Dict, List, NamedTuple, Optional

import torch

from maca_tools.accuracy.data.summary import TensorSummary

# Elements in flight: small enough for the cache, large enough that a pass takes longer than its call.
_CHUNK = 1 << 16
# Edges of the histogram of errors: decades of |a-b| / rms(a), from below 1e-9 to 1 and above.
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


# float32 and narrower: their values and differences are exact in double precision, their magnitudes good in float32.
_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Work type -> (integers of its bits, shift that leaves exponent and three bits of the mantissa, number of such values).
_FINE_BINS = {torch.float32: (torch.int32, 20, 1 << 11), torch.float64: (torch.int64, 49, 1 << 14)}
_scratch = threading.local()


def _space(name: str, dtype: Any, count: int) -> Any:
    """Memory of this thread that is used again for each piece."""
    spaces: Dict[Any, Any] = _scratch.__dict__.setdefault("spaces", {})
    found = spaces.get((name, dtype))
    if found is None:
        found = spaces[name, dtype] = torch.empty(_CHUNK, dtype=dtype, device="cpu")
    return found if count == _CHUNK else found[:count]


class _Sums:
    """What the pieces of two tensors add up to; work is the type of magnitudes and ratios."""

    def __init__(self, work: Any, bits: Any) -> None:
        self.work, self._bits = work, bits
        # Sums of |a-b| and |a|, products and sums of a and g = a - b.
        self.gap = self.size = self.gg = self.aa = self.ag = self.a = self.g = 0.0
        self.low0 = self.low1 = math.inf
        self.high0 = self.high1 = -math.inf
        self.most = self.relative = self.ulp = 0.0
        self.beyond_1e3 = self.beyond_5e3 = 0
        self.broken = False
        self.fine = torch.zeros(_FINE_BINS[work][2], dtype=torch.int64, device="cpu")

    def extremes(self, side: int, piece: Any) -> None:
        low, high = torch.aminmax(piece)
        if side == 0:
            self.low0, self.high0 = min(self.low0, float(low)), max(self.high0, float(high))
        else:
            self.low1, self.high1 = min(self.low1, float(low)), max(self.high1, float(high))

    def magnitudes(self, x: Any) -> None:
        """Only range and norm of one side."""
        wide = self._wide("x", x)
        x64 = wide if wide.dtype == torch.float64 else _space("x", torch.float64, x.numel()).copy_(wide)
        square = float(torch.dot(x64, x64))
        if not math.isfinite(square):
            finite = torch.isfinite(x64)
            if not bool(finite.all()):
                if bool(finite.any()):
                    self.magnitudes(x[finite])
                return
        self.aa += square
        self.extremes(0, wide)

    def _wide(self, name: str, x: Any) -> Any:
        return x if x.dtype == self.work else _space(name, self.work, x.numel()).copy_(x)

    def add(self, x: Any, y: Any) -> None:
        count = x.numel()
        wide_x, wide_y = self._wide("x", x), self._wide("y", y)
        if self.work == torch.float64:
            x64, y64 = wide_x, wide_y
        else:
            x64 = _space("x", torch.float64, count).copy_(wide_x)
            y64 = _space("y", torch.float64, count).copy_(wide_y)
        gap = torch.sub(x64, y64, out=_space("gap", torch.float64, count))
        gg = float(torch.dot(gap, gap))
        if not math.isfinite(gg):
            both = torch.isfinite(x64) & torch.isfinite(y64)
            if not bool(both.all()):
                alike = ~both & ((torch.isnan(x64) & torch.isnan(y64)) | (x64 == y64))
                same, rest = int(alike.sum()), count - int(both.sum())
                self.fine[0] += same
                self.broken = self.broken or same < rest
                self.beyond_1e3, self.beyond_5e3 = self.beyond_1e3 + rest - same, self.beyond_5e3 + rest - same
                if bool(both.any()):
                    self.add(x[both], y[both])
                return
        self.gg += gg
        self.aa += float(torch.dot(x64, x64))
        self.ag += float(torch.dot(x64, gap))
        self.a += float(x64.sum())
        self.g += float(gap.sum())
        self.extremes(0, wide_x)
        self.extremes(1, wide_y)
        magnitude = _space("magnitude", self.work, count).copy_(gap).abs_()
        size = torch.abs(wide_x, out=_space("size", self.work, count))
        self.gap += float(magnitude.sum())
        self.size += float(size.sum())
        self.most = max(self.most, float(magnitude.max()))
        self._relative(magnitude, size)
        bits, shift, bins = _FINE_BINS[self.work]
        fine = torch.bitwise_right_shift(magnitude.view(bits), shift, out=_space("bits", bits, count))
        self.fine += torch.bincount(fine, minlength=bins)
        if self._bits is not None:
            self._steps(x.view(self._bits), y.view(self._bits))

    def _relative(self, magnitude: Any, size: Any) -> None:
        """Changes size."""
        relative = torch.div(magnitude, size, out=size)
        # 0 / 0 is no error; anything else / 0 stays infinite.
        relative.nan_to_num_(nan=0.0, posinf=math.inf)
        most = float(relative.max())
        self.relative = max(self.relative, most)
        if most > 1e-3:
            self.beyond_1e3 += int(torch.gt(relative, 1e-3, out=_space("flags", self.work, relative.numel())).sum())
        if most > 5e-3:
            self.beyond_5e3 += int(relative.gt_(5e-3).sum())

    def _steps(self, x: Any, y: Any) -> None:
        """Steps of the dtype between the elements: integers of the bits count them where the signs agree."""
        count = x.numel()
        apart = torch.bitwise_xor(x, y, out=_space("bits", x.dtype, count))
        if int(apart.min()) >= 0:
            low, high = torch.aminmax(torch.sub(x, y, out=apart))
            self.ulp = max(self.ulp, float(high), -float(low))
            return
        x, y = x.to(torch.int64), y.to(torch.int64)
        least = torch.iinfo(apart.dtype).min
        x, y = torch.where(x < 0, least - x, x), torch.where(y < 0, least - y, y)
        self.ulp = max(self.ulp, float((x - y).abs_().max()))

    def histogram(self, scale: float) -> List[int]:
        """Counts by decade of |a-b| / scale; the edges are those of the fine bins, an eighth of a power of two."""
        bits, shift, bins = _FINE_BINS[self.work]
        powers = range(HISTOGRAM_LOW, HISTOGRAM_LOW + HISTOGRAM_BINS - 1)
        edges = torch.tensor([scale * 10.0**power for power in powers], dtype=self.work, device="cpu")
        places = [0, *(edges.view(bits) >> shift).clamp_(1, bins - 1).tolist(), bins]
        running = [0, *self.fine.cumsum(0).tolist()]
        return [running[end] - running[start] for start, end in zip(places, places[1:])]


def of_tensors(a: Any, b: Any) -> Metrics:
    """Both tensors dense, on the CPU, of one shape; dtypes may differ. See Note [Precision of the statistics]."""
    if a.is_complex():
        a = torch.view_as_real(a.resolve_conj())
    if b.is_complex():
        b = torch.view_as_real(b.resolve_conj())
    a, b = a.contiguous().reshape(-1), b.contiguous().reshape(-1)
    count = a.numel()
    if count == 0:
        return Metrics(diff1=0.0, diff2=0.0, crc_equal=True)
    alike = a.dtype == b.dtype
    narrow = alike and a.dtype in _NARROW
    bits = _BITS[a.element_size()] if alike and a.dtype != torch.bool else None
    bits_a, bits_b = (a.view(bits), b.view(bits)) if bits is not None else (a, b)
    sums = _Sums(torch.float32 if narrow else torch.float64, bits if narrow else None)
    same = alike and torch.equal(bits_a, bits_b)
    for start in range(0, count, _CHUNK):
        place = slice(start, start + _CHUNK)
        if same:
            sums.magnitudes(a[place])
        else:
            sums.add(a[place], b[place])
    if not math.isfinite(sums.gap + sums.size) and narrow:
        # Values near the end of float32's range: magnitudes need more.
        return of_tensors(a.to(torch.float64), b.to(torch.float64))._replace(ulp=None if sums.broken else sums.ulp)
    if sums.low0 > sums.high0:
        sums.low0 = sums.high0 = sums.low1 = sums.high1 = math.nan
    norm_a = math.sqrt(sums.aa)
    if same:
        # What is equal bit by bit needs no further look; NaN equals NaN here.
        low, high = sums.low0, sums.high0
        return Metrics(high, low, high, low, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, True, norm_a)
    total_b, ab, bb = sums.a - sums.g, sums.aa - sums.ag, max(0.0, sums.aa - 2.0 * sums.ag + sums.gg)
    norm_b = math.sqrt(bb)
    cosine = _ratio(ab, norm_a * norm_b) if norm_a * norm_b > 0 else (1.0 if norm_a == norm_b else 0.0)
    spread = (sums.aa - sums.a**2 / count) * (bb - total_b**2 / count)
    pcc = (ab - sums.a * total_b / count) / math.sqrt(spread) if spread > 0 else None
    absolute = math.inf if sums.broken else math.sqrt(sums.gg)
    return Metrics(
        sums.high0,
        sums.low0,
        sums.high1,
        sums.low1,
        math.inf if sums.broken else _ratio(sums.gap, sums.size),
        math.inf if sums.broken else _ratio(absolute, norm_a),
        max(-1.0, min(1.0, cosine)),
        math.inf if sums.broken else sums.most,
        math.inf if sums.broken else sums.relative,
        pcc if pcc is None else max(-1.0, min(1.0, pcc)),
        1.0 - sums.beyond_1e3 / count,
        1.0 - sums.beyond_5e3 / count,
        sums.ulp if narrow and not sums.broken else None,
        False,
        norm_a,
        absolute,
        sums.histogram(norm_a / math.sqrt(count) or 1.0),
    )
