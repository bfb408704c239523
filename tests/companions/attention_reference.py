"""Attention of one sequence written down in float64, and random problems for it."""

import dataclasses
import math
import random
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    causal: bool = False,
    window: Tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    slopes: Optional[Tensor] = None,
    kept: Optional[Tensor] = None,
    dropout: float = 0.0,
) -> Tuple[Tensor, Tensor]:
    """q (L, H, E), k and v (S, K, E); slopes (H); kept (H, L, S). Returns (L, H, E) and logsumexp (H, L)."""
    queries, keys, groups = q.size(0), k.size(0), q.size(1) // k.size(1)
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    scores = torch.einsum("lhe,she->hls", q, k) * scale
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    place = torch.arange(queries).unsqueeze(1) + keys - queries
    key = torch.arange(keys).unsqueeze(0)
    left, right = window[0], 0 if causal else window[1]
    if slopes is not None:
        # Upstream's bias under a causal mask is another by a constant of the row.
        bias = key.expand(queries, keys) if left < 0 and right == 0 else -(place - key).abs()
        scores = scores + slopes.double().view(-1, 1, 1) * bias
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if left >= 0:
        seen &= key >= place - left
    if right >= 0:
        seen &= key <= place + right
    scores = scores.masked_fill(~seen, -math.inf)
    alive = seen.any(1)
    logsumexp = torch.where(alive, scores.logsumexp(-1), torch.tensor(math.inf, dtype=torch.double))
    p = torch.where(alive.unsqueeze(1), scores - torch.where(alive, logsumexp, 0.0).unsqueeze(-1), -math.inf).exp()
    if kept is not None:
        p = p * kept / (1 - dropout)
    return torch.einsum("hls,she->lhe", p, v), logsumexp


# More than any test has keys.
LARGE = 1000


@dataclasses.dataclass
class Options:
    """What a random problem asks for, in the words of flash_attn's functions."""

    heads: int
    key_heads: int
    size: int
    dtype: torch.dtype
    causal: bool
    window: Tuple[int, int]
    softcap: float
    alibi: str  # "", "heads" or "batch"

    def slopes(self, batch: int) -> Optional[Tensor]:
        shape = {"": None, "heads": (self.heads,), "batch": (batch, self.heads)}[self.alibi]
        return None if shape is None else torch.rand(shape) * 0.3

    def of_flash(self, slopes: Optional[Tensor]) -> Dict[str, Any]:
        return {
            "causal": self.causal,
            "window_size": self.window,
            "softcap": self.softcap,
            "alibi_slopes": None if slopes is None else slopes.cuda(),
        }

    def of_reference(self, slopes: Optional[Tensor], sequence: int) -> Dict[str, Any]:
        own = slopes if slopes is None or slopes.dim() == 1 else slopes[sequence]
        # A limit beyond all keys is none: then the mask is causal, and has the bias of one.
        window = tuple(-1 if limit >= LARGE else limit for limit in self.window)
        return {"causal": self.causal, "window": window, "softcap": self.softcap, "slopes": own}


def random_options(seed: int, plain: bool = False) -> Options:
    """``plain``: nothing that the distribution's own operator does not take."""
    chosen = random.Random(seed)
    key_heads = chosen.choice([1, 2, 3])
    options = Options(
        heads=key_heads * chosen.choice([1, 1, 2, 4]),
        key_heads=key_heads,
        size=chosen.choice([8, 32, 40, 64, 96, 128, 256]),
        dtype=chosen.choice([torch.float16, torch.bfloat16]),
        causal=chosen.random() < 0.5,
        window=(-1, -1),
        softcap=0.0,
        alibi="",
    )
    if not plain:
        options.window = chosen.choice([(-1, -1), (-1, -1), (0, 0), (3, 5), (17, -1), (-1, 9), (LARGE, 2)])
        options.softcap = chosen.choice([0.0, 0.0, 5.0, 30.0])
        options.alibi = chosen.choice(["", "", "heads", "batch"])
    return options


def random_lengths(seed: int, count: int, longest: int, empty: bool = False) -> List[int]:
    chosen = random.Random(1000 + seed)
    return [0 if empty and chosen.random() < 0.25 else chosen.randint(1, longest) for _ in range(count)]


def tensors(options: Options, queries: int, keys: int, *batch: int) -> List[Tensor]:
    """query, key and value on the CPU."""
    shapes = ((queries, options.heads), (keys, options.key_heads), (keys, options.key_heads))
    return [torch.randn(*batch, *shape, options.size).to(options.dtype) for shape in shapes]


def assert_rounded_once(got: Tensor, want: Tensor, dtype: torch.dtype, margin: float = 1.0) -> None:
    """Within rounding of ``dtype`` and what float32 adds to sums of such numbers."""
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(
        got.double().cpu(), want.double().cpu(), rtol=0.6 * margin * unit, atol=0.05 * margin * unit
    )


def assert_gradients(got: Sequence[Tensor], want: Sequence[Tensor], dtype: torch.dtype) -> None:
    """Gradients come from an output that was rounded, so they are off by that of the largest of their elements."""
    unit = torch.finfo(dtype).eps
    for a, b in zip(got, want):
        largest = float(b.abs().max()) if b.numel() else 0.0
        torch.testing.assert_close(a.double().cpu(), b.double().cpu(), rtol=unit, atol=2 * unit * max(largest, 1.0))
