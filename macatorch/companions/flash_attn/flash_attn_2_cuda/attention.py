"""Attention of float16 and bfloat16 tensors, computed in float32 and rounded once.

Shapes: query (B, L, H, E), key and value (B, S, K, E), where H is a multiple of K. The last query stands at the last
key. Note: where nothing but a causal mask of equal lengths is asked for, the distribution's own operator computes.
Everything else is done here by blocks of queries, each with all keys that it may see, so that memory is linear in the
lengths.
"""

import math
from dataclasses import dataclass
from typing import Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .checks import Window
from .dropout import Dropout

# Scores of a block: small enough to stay in a processor's cache, large enough for a product to be worth its call.
BLOCK_SCORES = 1 << 21
FEWEST_QUERIES = 16
WORTHWHILE_QUERIES = 64
# Keys of a block in upstream's forward kernel with dropout, by the largest head dimension; see `debug_mask`.
KEY_BLOCKS = ((32, 128), (96, 64), (128, 32), (256, 64))
LENGTH_BLOCK = 128


def rounded(length: int) -> int:
    return (length + LENGTH_BLOCK - 1) // LENGTH_BLOCK * LENGTH_BLOCK


@dataclass(frozen=True)
class Problem:
    """What to compute beside the tensors.

    ``slopes``: ALiBi's, (H) or (B, H). ``starts`` and ``lengths``: the part of the keys that each sequence has, (B),
    int64; None: all of them.
    """

    scale: float
    window: Window
    softcap: float = 0.0
    slopes: Optional[Tensor] = None
    starts: Optional[Tensor] = None
    lengths: Optional[Tensor] = None

    def batch(self, first: int, count: int) -> "Problem":
        """The same for some of the sequences."""

        def part(tensor: Optional[Tensor]) -> Optional[Tensor]:
            return None if tensor is None else tensor[first : first + count]

        slopes = part(self.slopes) if self.slopes is not None and self.slopes.dim() == 2 else self.slopes
        return Problem(self.scale, self.window, self.softcap, slopes, part(self.starts), part(self.lengths))

    def is_plain(self, query: Tensor, key: Tensor, dropout: Optional[Dropout]) -> bool:
        """Whether the distribution's own operator computes this without keeping all scores."""
        special = dropout is not None or self.softcap > 0 or self.slopes is not None or self.lengths is not None
        aligned = self.window.causal and query.size(1) == key.size(1)
        return not special and (self.window.open or aligned) and query.numel() > 0 and key.numel() > 0


class Block(NamedTuple):
    """Queries [top, bottom) of so many sequences from the first on, and the keys [low, high) that they may see."""

    first: int
    sequences: int
    top: int
    bottom: int
    low: int
    high: int


def _blocks(query: Tensor, key: Tensor, problem: Problem) -> Iterator[Block]:
    """How the work is divided. It follows from shapes alone: both passes have to draw the same random numbers."""
    batch, queries, heads, _ = query.shape
    keys = key.size(1)
    of_one_query = max(1, heads * keys)
    count = min(batch, max(1, BLOCK_SCORES // (of_one_query * min(queries, WORTHWHILE_QUERIES) or 1)))
    size = BLOCK_SCORES // (of_one_query * count)
    size = max(FEWEST_QUERIES, size // FEWEST_QUERIES * FEWEST_QUERIES)
    left, right = problem.window
    further = keys - queries
    for first in range(0, batch, count):
        for top in range(0, queries, size):
            bottom = min(queries, top + size)
            low, high = 0, keys
            if problem.lengths is None:
                low = min(keys, max(0, top + further - left)) if left >= 0 else 0
                high = max(low, min(keys, bottom + further + right)) if right >= 0 else keys
            yield Block(first, min(count, batch - first), top, bottom, low, high)


class _Heads:
    """Key and value of some sequences in float32, heads first: (count, K, S, E)."""

    def __init__(self, key: Tensor, value: Tensor, problem: Problem) -> None:
        self.key, self.value = _heads_first(key), _heads_first(value)
        if problem.lengths is not None:
            # What lies outside of a sequence was perhaps never written: zero times infinity is no zero.
            place = torch.arange(key.size(1), device=key.device)
            outside = place >= _ends(problem).unsqueeze(1)
            if problem.starts is not None:
                outside |= place < problem.starts.unsqueeze(1)
            self.value.masked_fill_(outside[:, None, :, None], 0)


def _heads_first(tensor: Tensor) -> Tensor:
    return tensor.transpose(1, 2).to(torch.float32, memory_format=torch.contiguous_format)


def _ends(problem: Problem) -> Tensor:
    assert problem.lengths is not None
    return problem.lengths if problem.starts is None else problem.starts + problem.lengths


def _grouped(tensor: Tensor, key_heads: int) -> Tensor:
    """(count, H, n, E) as (count, K, H / K * n, E): query heads of one key head behind one another."""
    count, _, _, size = tensor.shape
    return tensor.reshape(count, key_heads, -1, size)


class _Scores:
    """Scores of a block, (count, K, G * n, m), and what the backward pass needs of how they came about."""

    def __init__(self, query: Tensor, heads: _Heads, problem: Problem, block: Block, queries: int, keys: int) -> None:
        """``query``: (count, H, n, E), scaled."""
        key_heads = heads.key.size(1)
        self.query = _grouped(query, key_heads)
        self.key = heads.key[:, :, block.low : block.high]
        self.value = heads.value[:, :, block.low : block.high]
        scores = torch.matmul(self.query, self.key.transpose(-2, -1))
        self.capped: Optional[Tensor] = None
        if problem.softcap > 0:
            self.capped = scores.div_(problem.softcap).tanh_()
            scores = self.capped * problem.softcap
        by_head = scores.view(block.sequences, query.size(1), block.bottom - block.top, block.high - block.low)
        _add_slopes_and_mask(by_head, problem, block, queries, keys)
        self.scores = scores


def _add_slopes_and_mask(scores: Tensor, problem: Problem, block: Block, queries: int, keys: int) -> None:
    """``scores``: (count, H, n, m), changed in place."""
    left, right = problem.window
    device = scores.device
    column = torch.arange(block.low, block.high, device=device)
    row = torch.arange(block.top, block.bottom, device=device)
    if problem.lengths is not None:
        start = 0 if problem.starts is None else problem.starts.view(-1, 1, 1)
        column = column.view(1, 1, -1) - start
        row = row.view(1, -1, 1) + (problem.lengths.view(-1, 1, 1) - queries)
        forbidden: Optional[Tensor] = (column >= problem.lengths.view(-1, 1, 1)) | (column < 0)
    else:
        further = keys - queries
        column, row = column.view(1, 1, -1), row.view(1, -1, 1) + further
        forbidden = None
        # The first query of the block sees least of the right, the last one least of the left.
        right = -1 if block.top + further + right >= block.high - 1 else right
        left = -1 if block.bottom - 1 + further - left <= block.low else left
    if problem.slopes is not None:
        slopes = problem.slopes.view(-1, problem.slopes.size(-1), 1, 1)
        # Under a causal mask upstream leaves out what is the same for a whole row; its logsumexp shows that.
        distance = column if problem.window.causal else -(row - column).abs()
        scores.add_(slopes * distance.unsqueeze(1))
    if right >= 0:
        beyond = column > row + right
        forbidden = beyond if forbidden is None else forbidden | beyond
    if left >= 0:
        before = column < row - left
        forbidden = before if forbidden is None else forbidden | before
    if forbidden is not None:
        scores.masked_fill_(forbidden.unsqueeze(1), -math.inf)


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    problem: Problem,
    output: Tensor,
    logsumexp: Tensor,
    dropout: Optional[Dropout] = None,
    mask: Optional[Tensor] = None,
) -> None:
    """Fill ``output`` (B, L, H, E) and ``logsumexp`` (B, H, L), float32; a row that sees nothing has zero and infinity.

    ``mask``: see `debug_mask`; (B, H, at least L, at least S), filled as far as there are scores.
    """
    if problem.is_plain(query, key, dropout):
        result = torch.ops.aten._flash_attention_forward(
            query, key, value, None, None, query.size(1), key.size(1), 0.0, problem.window.causal, False,
            scale=problem.scale,
        )  # fmt: skip
        output.copy_(result[0])
        logsumexp.copy_(result[1])
        return
    queries, keys = query.size(1), key.size(1)
    heads, part, scaled = None, problem, query
    for block in _blocks(query, key, problem):
        if block.top == 0:
            chosen = slice(block.first, block.first + block.sequences)
            part = problem.batch(block.first, block.sequences)
            heads = _Heads(key[chosen], value[chosen], part)
            scaled = _heads_first(query[chosen]).mul_(problem.scale)
        assert heads is not None
        scores = _Scores(scaled[:, :, block.top : block.bottom], heads, part, block, queries, keys)
        self_rows = (slice(block.first, block.first + block.sequences), slice(None), slice(block.top, block.bottom))
        own_output, own_logsumexp = output.transpose(1, 2)[self_rows], logsumexp[self_rows]
        if block.high == block.low:
            own_output.zero_()
            own_logsumexp.fill_(math.inf)
            continue
        s = scores.scores
        largest = s.amax(-1, keepdim=True)
        largest.masked_fill_(largest == -math.inf, 0)
        if mask is not None:
            unnormalised = _debug_mask(
                s.view(block.sequences, query.size(2), -1, s.size(-1)), block, query.size(3), keys
            )
        p = s.sub_(largest).exp_()
        total = p.sum(-1, keepdim=True)
        own_logsumexp.copy_((largest + total.log()).masked_fill_(total == 0, math.inf).view(own_logsumexp.shape))
        factor = 1 / total.masked_fill(total == 0, 1)
        if dropout is not None:
            kept = dropout.kept(p)
            p.mul_(kept)
            factor.mul_(dropout.scale)
            if mask is not None:
                kept = kept.view(unnormalised.shape)
                place = (*self_rows, slice(block.low, block.high))
                mask[place].copy_(torch.where(kept, unnormalised, -unnormalised))
        own_output.copy_(torch.matmul(p, scores.value).mul_(factor).view(own_output.shape))


def _debug_mask(scores: Tensor, block: Block, head: int, keys: int) -> Tensor:
    """Probabilities as upstream's kernel leaves them for debugging, before dropout's signs.

    It goes over blocks of keys from the last to the first and subtracts the largest score that it has met so far.
    """
    size = next(keys_of_block for largest, keys_of_block in KEY_BLOCKS if head <= largest)
    whole = torch.nn.functional.pad(scores, (block.low, (-keys) % size + keys - block.high), value=-math.inf)
    of_block = whole.unflatten(-1, (-1, size)).amax(-1)
    so_far = of_block.flip(-1).cummax(-1).values.flip(-1)
    so_far.masked_fill_(so_far == -math.inf, 0)
    subtracted = so_far.repeat_interleave(size, -1)[..., block.low : block.high]
    return (scores - subtracted).exp_()


class Gradients(NamedTuple):
    """What a backward pass fills: gradients shaped like the operands, and the sums of gradient times output.

    ``sums``: (B, H, L), float32.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    sums: Tensor


def backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    logsumexp: Tensor,
    problem: Problem,
    into: Gradients,
    dropout: Optional[Dropout] = None,
) -> None:
    """The gradients of `forward`, from its output and logsumexp."""
    sums = into.sums
    sums.copy_((gradient.float() * output.float()).sum(-1).transpose(1, 2))
    if problem.is_plain(query, key, dropout):
        unused = [torch.zeros((), dtype=torch.int64, device=query.device)] * 2
        results = torch.ops.aten._flash_attention_backward(
            gradient, query, key, value, output, logsumexp.contiguous(), None, None, query.size(1), key.size(1), 0.0,
            problem.window.causal, *unused, scale=problem.scale,
        )  # fmt: skip
        for target, result in zip(into, results):
            target.copy_(result)
        return
    queries, keys, key_heads = query.size(1), key.size(1), key.size(2)
    if queries == 0 or query.size(0) == 0:
        into.key.zero_()
        into.value.zero_()
        return
    heads, part, scaled, wanted = None, problem, query, gradient
    totals: List[Tensor] = []
    for block in _blocks(query, key, problem):
        chosen = slice(block.first, block.first + block.sequences)
        if block.top == 0:
            part = problem.batch(block.first, block.sequences)
            heads = _Heads(key[chosen], value[chosen], part)
            scaled = _heads_first(query[chosen]).mul_(problem.scale)
            wanted = _heads_first(gradient[chosen])
            totals = [torch.zeros_like(heads.key), torch.zeros_like(heads.value)]
        assert heads is not None
        rows = (chosen, slice(None), slice(block.top, block.bottom))
        own = into.query.transpose(1, 2)[rows]
        if block.high == block.low:
            own.zero_()
        else:
            scores = _Scores(scaled[:, :, block.top : block.bottom], heads, part, block, queries, keys)
            of_output = _grouped(wanted[:, :, block.top : block.bottom], key_heads)
            of_query, of_key, of_value = _block_gradients(
                scores, of_output, _column(logsumexp[rows], key_heads), _column(sums[rows], key_heads), part, dropout
            )
            own.copy_(of_query.view(own.shape))
            totals[0][:, :, block.low : block.high].add_(of_key)
            totals[1][:, :, block.low : block.high].add_(of_value)
        if block.bottom == queries:
            into.key.transpose(1, 2)[chosen].copy_(totals[0])
            into.value.transpose(1, 2)[chosen].copy_(totals[1])


def _column(tensor: Tensor, key_heads: int) -> Tensor:
    """(count, H, n) as (count, K, G * n, 1)."""
    return tensor.reshape(tensor.size(0), key_heads, -1, 1)


def _block_gradients(
    scores: _Scores,
    of_output: Tensor,
    logsumexp: Tensor,
    sums: Tensor,
    problem: Problem,
    dropout: Optional[Dropout],
) -> Tuple[Tensor, Tensor, Tensor]:
    p = scores.scores.sub_(logsumexp).exp_()
    of_p = torch.matmul(of_output, scores.value.transpose(-2, -1))
    dropped = p
    if dropout is not None:
        kept = dropout.kept(p)
        of_p.mul_(kept).mul_(dropout.scale)
        dropped = p * kept
    of_value = torch.matmul(dropped.transpose(-2, -1), of_output)
    if dropout is not None:
        of_value.mul_(dropout.scale)
    of_scores = of_p.sub_(sums).mul_(p)
    if scores.capped is not None:
        of_scores.mul_(1 - scores.capped.square_())
    of_query = torch.matmul(of_scores, scores.key).mul_(problem.scale)
    return of_query, torch.matmul(of_scores.transpose(-2, -1), scores.query), of_value
