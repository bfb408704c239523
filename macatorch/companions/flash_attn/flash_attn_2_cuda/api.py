"""The five functions, with upstream's arguments in upstream's order."""

import functools
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, TypeVar

import torch
from torch import Tensor

from . import checks
from .attention import LENGTH_BLOCK, Gradients, Problem, backward, forward, rounded
from .cache import Cache, Rotary
from .checks import ROTARY, Window, require
from .dropout import Dropout, draw_place, no_place

Function = TypeVar("Function", bound=Callable[..., Any])

DENSE = "batch_size, seqlen_{0}, num_heads{1}, head_size"
PACKED = "total_{0}, num_heads{1}, head_size"


def _as_extension(function: Function) -> Function:
    """Behave as a compiled function: autograd and autocast do not see what it is made of."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with torch.no_grad(), torch.autocast("cuda", enabled=False):
            return function(*arguments)

    return call  # type: ignore[return-value]


def _is_multiple_of_8(head: int, way: str) -> None:
    said = {"forward": "query, key, value, and out_ must have a head_size that is a multiple of 8"}
    require(head % 8 == 0, said.get(way, "head_size should be a multiple of 8"))


# ---- dense ----------------------------------------------------------------------------------------------------------


def _dense(q: Tensor, k: Tensor, v: Tensor, way: str) -> None:
    for name, each in (("q", q), ("k", k), ("v", v)):
        require(each.dim() == 4, f"{name} must have 4 dimensions, got {each.dim()}")
    batch, queries, heads, head = q.shape
    keys, key_heads = k.size(1), k.size(2)
    checks.heads(batch, head, heads, key_heads, way)
    _is_multiple_of_8(head, way)
    for name, each in (("k", k), ("v", v)):
        checks.shape(name, each, (batch, keys, key_heads, head), DENSE.format("k", "_k"))


@_as_extension
def fwd(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out_: Optional[Tensor],
    alibi_slopes_: Optional[Tensor],
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    return_softmax: bool,
    gen: Optional[torch.Generator],
) -> List[Tensor]:
    """Attention of sequences of one length: q (B, L, H, E), k and v (B, S, K, E).

    Returns the output like q, its logsumexp (B, H, L) in float32, the probabilities for debugging (signs say what was
    dropped; empty unless ``return_softmax``) and the place of its random numbers.
    """
    checks.operands(q, k, v)
    _dense(q, k, v, "forward")
    checks.dropout(p_dropout, softcap, return_softmax)
    batch, queries, heads, _ = q.shape
    keys = k.size(1)
    titles = ("Output", "Output tensor")
    out = checks.result("out", out_, q, "batch_size, sizes[1], sizes[2], head_size", "inputs", titles)
    slopes = checks.slopes(alibi_slopes_, batch, heads)
    causal = is_causal and not (queries == 1 and slopes is None)
    problem = Problem(softmax_scale, checks.window(window_size_left, window_size_right, causal, keys), softcap, slopes)
    dropout, place = _dropout(p_dropout, q.device, batch * heads, gen)
    logsumexp = torch.empty((batch, heads, queries), dtype=torch.float32, device=q.device)
    mask = q.new_zeros((batch, heads, rounded(queries), rounded(keys))) if return_softmax else None
    forward(q, k, v, problem, out, logsumexp, dropout, mask)
    return [out, logsumexp, q.new_empty(0) if mask is None else mask, place]


def _dropout(
    probability: float, device: torch.device, heads: int, gen: Optional[torch.Generator]
) -> Tuple[Optional[Dropout], Tensor]:
    if probability == 0:
        return None, no_place(device)
    place = draw_place(device, heads, gen)
    return Dropout(probability, place), place


def _gradient_tensors(
    given: Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]], like: Tuple[Tensor, Tensor, Tensor], form: str
) -> List[Tensor]:
    results = []
    for tensor, operand, name, letter, suffix in zip(given, like, ("dq", "dk", "dv"), "qkk", ("", "_k", "_k")):
        words = form.format(letter, suffix)
        results.append(checks.result(name, tensor, operand, words, "q", (name, name)))
    # Inductor of torch 2.4 makes one tensor of three empty ones that are alike. The gradients would be wrong.
    places = [result.data_ptr() for result in results if result.numel()]
    require(
        len(set(places)) == len(places),
        "dq, dk and dv are the same memory. torch.compile of torch 2.4 does that; leave the attention out of what is "
        "compiled (torch.compiler.disable), or use torch 2.5 or later",
    )
    return results


def _backward_operands(dout: Tensor, q: Tensor, out: Tensor, softmax_lse: Tensor, form: str) -> None:
    require(out.dtype == q.dtype, "query and out must have the same dtype")
    require(dout.dtype == q.dtype, "query and dout must have the same dtype")
    for name, each in (("out", out), ("dout", dout), ("softmax_lse", softmax_lse)):
        checks.on_device(name, each)
    checks.rows(out, "out tensor")
    checks.rows(dout, "dout tensor")
    for name, each in (("out", out), ("dout", dout)):
        checks.shape(name, each, q.shape, form.format("q", ""))


@_as_extension
def bwd(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    dq_: Optional[Tensor],
    dk_: Optional[Tensor],
    dv_: Optional[Tensor],
    alibi_slopes_: Optional[Tensor],
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    deterministic: bool,
    gen: Optional[torch.Generator],
    rng_state: Optional[Tensor],
) -> List[Tensor]:
    """The gradients of `fwd`; dq, dk and dv are written to where they are given.

    Returns them and the sums of gradient times output, (B, H, L rounded up to 128), float32. It is deterministic.
    """
    checks.operands(q, k, v)
    _dense(q, k, v, "backward")
    _backward_operands(dout, q, out, softmax_lse, DENSE)
    checks.dropout(p_dropout, softcap)
    batch, queries, heads, _ = q.shape
    checks.shape("softmax_lse", softmax_lse, (batch, heads, queries), "batch_size, num_heads, seqlen_q")
    dq, dk, dv = _gradient_tensors((dq_, dk_, dv_), (q, k, v), DENSE)
    slopes = checks.slopes(alibi_slopes_, batch, heads)
    problem = Problem(
        softmax_scale, checks.window(window_size_left, window_size_right, is_causal, k.size(1)), softcap, slopes
    )
    dropout = _repeated(p_dropout, q.device, batch * heads, gen, rng_state)
    sums = torch.zeros((batch, heads, rounded(queries)), dtype=torch.float32, device=q.device)
    into = Gradients(dq, dk, dv, sums[..., :queries])
    backward(dout, q, k, v, out, softmax_lse, problem, into, dropout)
    return [dq, dk, dv, sums]


def _repeated(
    probability: float, device: torch.device, heads: int, gen: Optional[torch.Generator], rng_state: Optional[Tensor]
) -> Optional[Dropout]:
    """The numbers of the forward pass; of a new place where nobody kept it, as upstream."""
    if probability == 0:
        return None
    return Dropout(probability, draw_place(device, heads, gen) if rng_state is None else rng_state)


# ---- packed ---------------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Where a sequence lies: its queries from ``query`` on, its keys from ``key`` on."""

    number: int
    query: int
    queries: int
    key: int
    keys: int


def _starts(name: str, value: Tensor) -> List[int]:
    require(value.dtype == torch.int32, f"{name} must have dtype int32")
    checks.on_device(name, value)
    checks.contiguous(name, value)
    require(value.dim() == 1 and value.numel() > 1, "batch size must be positive")
    return [int(number) for number in value.tolist()]


def _pieces(
    starts_q: List[int], starts_k: List[int], used: Optional[Tensor], left: Optional[Tensor], total: Tuple[int, int]
) -> List[Piece]:
    """``total``: how many queries there are, and how many keys; -1: keys lie in pages."""
    batch = len(starts_q) - 1
    skipped = [0] * batch if left is None else left.tolist()
    wanted = None if used is None else used.tolist()
    pieces = []
    for i in range(batch):
        keys = starts_k[i + 1] - starts_k[i] if wanted is None else wanted[i]
        piece = Piece(
            i, starts_q[i], starts_q[i + 1] - starts_q[i], starts_k[i] + skipped[i], max(0, keys - skipped[i])
        )
        inside = piece.query + piece.queries <= total[0] and (total[1] < 0 or piece.key + piece.keys <= total[1])
        require(
            min(piece.query, piece.queries, piece.key, keys) >= 0 and inside,
            f"cumulative lengths: sequence {i} lies outside of the tensors",
        )
        pieces.append(piece)
    return pieces


def _packed_sizes(q: Tensor, k: Tensor, v: Tensor, batch: int, way: str, paged: bool = False) -> None:
    require(q.dim() == 3, f"q must have 3 dimensions, got {q.dim()}")
    for name, each in (("k", k), ("v", v)):
        require(each.dim() == (4 if paged else 3), f"{name} must have {4 if paged else 3} dimensions, got {each.dim()}")
    checks.heads(batch, q.size(2), q.size(1), k.size(-2), way)
    _is_multiple_of_8(q.size(2), way)
    form = "num_blocks, page_block_size, num_heads_k, head_size" if paged else PACKED.format("k", "_k")
    for name, each in (("k", k), ("v", v)):
        checks.shape(name, each, (*k.shape[:-1], q.size(2)), form)


def _of_sequence(problem: Problem, number: int) -> Problem:
    return problem if problem.slopes is None or problem.slopes.dim() == 1 else problem.batch(number, 1)


@_as_extension
def varlen_fwd(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out_: Optional[Tensor],
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    seqused_k: Optional[Tensor],
    leftpad_k_: Optional[Tensor],
    block_table_: Optional[Tensor],
    alibi_slopes_: Optional[Tensor],
    max_seqlen_q: int,
    max_seqlen_k: int,
    p_dropout: float,
    softmax_scale: float,
    zero_tensors: bool,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    return_softmax: bool,
    gen: Optional[torch.Generator],
) -> List[Tensor]:
    """`fwd` of sequences behind one another: q (T, H, E), k and v (T', K, E) or pages (N, page, K, E).

    Returns the output like q (zero where no sequence lies), its logsumexp (H, T) in float32, the probabilities for
    debugging (B, H, longest query, longest key, both rounded up to 128) and the place of its random numbers.
    """
    checks.operands(q, k, v)
    starts_q, starts_k = _starts("cu_seqlens_q", cu_seqlens_q), _starts("cu_seqlens_k", cu_seqlens_k)
    batch = len(starts_q) - 1
    require(len(starts_k) == batch + 1, "cu_seqlens_k must have shape (batch_size + 1)")
    table = checks.table(block_table_, batch)
    paged = table is not None
    _packed_sizes(q, k, v, batch, "forward", paged)
    require(not paged or k.size(1) % checks.PAGE == 0, "Paged KV cache block size must be divisible by 256")
    checks.dropout(p_dropout, softcap, return_softmax)
    if seqused_k is not None:
        checks.integers("seqused_k", seqused_k, batch, "batch_size", device_first=False)
    if leftpad_k_ is not None:
        require(not paged, "We don't support Paged KV and leftpad_k running at the same time yet")
        checks.integers("leftpad_k", leftpad_k_, batch, "batch_size")
    heads = q.size(1)
    titles = ("Output", "Output tensor")
    out = checks.result("out", out_, q, "sizes[0], sizes[1], head_size", "inputs", titles)
    slopes = checks.slopes(alibi_slopes_, batch, heads)
    causal = is_causal and not (max_seqlen_q == 1 and slopes is None)
    window = checks.window(window_size_left, window_size_right, causal, max_seqlen_k)
    problem = Problem(softmax_scale, window, softcap, slopes)
    dropout, place = _dropout(p_dropout, q.device, batch * heads, gen)
    pieces = _pieces(starts_q, starts_k, seqused_k, leftpad_k_, (q.size(0), -1 if paged else k.size(0)))
    outside = float("-inf") if zero_tensors else float("inf")
    logsumexp = torch.full((heads, q.size(0)), outside, dtype=torch.float32, device=q.device)
    out.zero_()
    mask = q.new_zeros((batch, heads, rounded(max_seqlen_q), rounded(max_seqlen_k))) if return_softmax else None
    for piece in pieces:
        rows = slice(piece.query, piece.query + piece.queries)
        if table is None:
            key, value = (each[piece.key : piece.key + piece.keys].unsqueeze(0) for each in (k, v))
        else:
            capacity = table.size(1) * k.size(1)
            require(piece.keys <= capacity, f"block_table: sequence {piece.number} has more keys than pages")
            paged_cache = Cache(k, v, table[piece.number : piece.number + 1])
            key, value = (each[:, : piece.keys] for each in paged_cache.read(piece.keys, None))
        forward(
            q[rows].unsqueeze(0),
            key,
            value,
            _of_sequence(problem, piece.number),
            out[rows].unsqueeze(0),
            logsumexp[:, rows].unsqueeze(0),
            dropout,
            None if mask is None else mask[piece.number : piece.number + 1],
        )
    return [out, logsumexp, q.new_empty(0) if mask is None else mask, place]


@_as_extension
def varlen_bwd(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    dq_: Optional[Tensor],
    dk_: Optional[Tensor],
    dv_: Optional[Tensor],
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    alibi_slopes_: Optional[Tensor],
    max_seqlen_q: int,
    max_seqlen_k: int,
    p_dropout: float,
    softmax_scale: float,
    zero_tensors: bool,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    deterministic: bool,
    gen: Optional[torch.Generator],
    rng_state: Optional[Tensor],
) -> List[Tensor]:
    """The gradients of `varlen_fwd`, zero where no sequence lies.

    Returns them and the sums of gradient times output, (H, T + 128 B), each sequence's 128 behind those before it.
    """
    checks.operands(q, k, v)
    starts_q, starts_k = _starts("cu_seqlens_q", cu_seqlens_q), _starts("cu_seqlens_k", cu_seqlens_k)
    batch, heads = len(starts_q) - 1, q.size(1)
    require(len(starts_k) == batch + 1, "cu_seqlens_k must have shape (batch_size + 1)")
    _packed_sizes(q, k, v, batch, "backward")
    _backward_operands(dout, q, out, softmax_lse, PACKED)
    checks.shape("softmax_lse", softmax_lse, (heads, q.size(0)), "num_heads, total_q")
    checks.dropout(p_dropout, softcap)
    gradients = _gradient_tensors((dq_, dk_, dv_), (q, k, v), PACKED)
    slopes = checks.slopes(alibi_slopes_, batch, heads)
    window = checks.window(window_size_left, window_size_right, is_causal, max_seqlen_k)
    problem = Problem(softmax_scale, window, softcap, slopes)
    dropout = _repeated(p_dropout, q.device, batch * heads, gen, rng_state)
    sums = torch.zeros((heads, q.size(0) + LENGTH_BLOCK * batch), dtype=torch.float32, device=q.device)
    for gradient in gradients:
        gradient.zero_()
    for piece in _pieces(starts_q, starts_k, None, None, (q.size(0), k.size(0))):
        rows, columns = slice(piece.query, piece.query + piece.queries), slice(piece.key, piece.key + piece.keys)
        first = piece.query + LENGTH_BLOCK * piece.number
        own = [each[part].unsqueeze(0) for each, part in zip(gradients, (rows, columns, columns))]
        backward(
            dout[rows].unsqueeze(0),
            q[rows].unsqueeze(0),
            k[columns].unsqueeze(0),
            v[columns].unsqueeze(0),
            out[rows].unsqueeze(0),
            softmax_lse[:, rows].unsqueeze(0),
            _of_sequence(problem, piece.number),
            Gradients(own[0], own[1], own[2], sums[:, first : first + piece.queries].unsqueeze(0)),
            dropout,
        )
    return [*gradients, sums]


# ---- with a cache ---------------------------------------------------------------------------------------------------


def _rotary(
    cos: Optional[Tensor], sin: Optional[Tensor], interleaved: bool, key: Optional[Tensor], query: Tensor, capacity: int
) -> Optional[Rotary]:
    if cos is None:
        return None
    require(
        key is not None,
        "If rotary cos/sin are provided, new key / value to be appended to KV cache must also be provided",
    )
    checks.on_device("rotary_cos", cos)
    width = cos.size(1) * 2
    require(width <= query.size(3), "rotary_dim must be <= headdim")
    require(width % ROTARY == 0, f"Only rotary dimensions divisible by {ROTARY} are currently supported")
    require(cos.size(0) >= capacity, "cos/sin seqlen must be at least the seqlen of KV cache")
    checks.contiguous("rotary_cos", cos)
    require(cos.dtype == query.dtype, "rotary_cos must have the same dtype as query")
    if sin is None:
        raise RuntimeError("If rotary cos is provided, rotary sin must also be provided")
    checks.on_device("rotary_sin", sin)
    checks.shape("rotary_sin", sin, cos.shape, "seqlen_ro, params.rotary_dim / 2")
    checks.contiguous("rotary_sin", sin)
    require(sin.dtype == query.dtype, "rotary_cos must have the same dtype as query")
    return Rotary(cos, sin, interleaved)


def _new_entries(key: Optional[Tensor], value: Optional[Tensor], query: Tensor, cache: Cache) -> int:
    """How many entries there are to append."""
    if key is None:
        return 0
    if value is None:
        raise RuntimeError("If key is supplied, value must also be passed in")
    require(query.size(1) <= cache.capacity, "If key is supplied, it must have seqlen <= the seqlen of the KV cache")
    require(key.dtype == query.dtype, "Key must have the same dtype as query")
    require(value.dtype == query.dtype, "Value must have the same dtype as query")
    for name, each, title in (("k", key, "Key tensor"), ("v", value, "Value tensor")):
        checks.on_device(name, each)
        checks.rows(each, title)
        wanted = (query.size(0), key.size(1), cache.key.size(2), query.size(3))
        checks.shape(name, each, wanted, "batch_size, seqlen_knew, num_heads_k, head_size_og")
    return int(key.size(1))


def _lengths_fit(lengths: Tensor, new: int, left: Optional[Tensor], capacity: int) -> Tuple[int, bool]:
    """The longest sequence, and whether all are so long and start at 0.

    A capture must not ask: the whole cache is read then, as far as a launch finds it to be used.
    """
    if torch.cuda.is_current_stream_capturing():
        return capacity, False
    known = lengths.tolist()
    longest = max(known) + new
    require(
        min(known) >= 0 and longest <= capacity, f"cache_seqlens: {known} and {new} new ones, of at most {capacity}"
    )
    return longest, left is None and min(known) == max(known)


@_as_extension
def fwd_kvcache(
    q: Tensor,
    kcache: Tensor,
    vcache: Tensor,
    k_: Optional[Tensor],
    v_: Optional[Tensor],
    seqlens_k_: Optional[Tensor],
    rotary_cos_: Optional[Tensor],
    rotary_sin_: Optional[Tensor],
    cache_batch_idx_: Optional[Tensor],
    leftpad_k_: Optional[Tensor],
    block_table_: Optional[Tensor],
    alibi_slopes_: Optional[Tensor],
    out_: Optional[Tensor],
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    is_rotary_interleaved: bool,
    num_splits: int,
) -> List[Tensor]:
    """`fwd` over caches (B', S, K, E), or pages (N, page, K, E); new entries (B, n, K, E) are written there first.

    With rotary embedding q and the new keys are turned by their places behind the cached ones. Returns the output like
    q and its logsumexp (B, H, L), float32. ``num_splits`` is how hardware divides the work.
    """
    checks.operands(q, kcache, vcache)
    for name, each in (("q", q), ("kcache", kcache), ("vcache", vcache)):
        require(each.dim() == 4, f"{name} must have 4 dimensions, got {each.dim()}")
    batch, queries, heads, head = q.shape
    require(block_table_ is None or cache_batch_idx_ is None, "Paged KVcache does not support cache_batch_idx")
    cache = Cache(kcache, vcache, checks.table(block_table_, batch), cache_batch_idx_)
    paged = cache.table is not None
    require(not paged or kcache.size(1) % checks.PAGE == 0, "Paged KV cache block size must be divisible by 256")
    checks.heads(batch, head, heads, kcache.size(2), "forward")
    form = "num_blocks, page_block_size" if paged else "batch_size_c, seqlen_k"
    for name, each in (("kcache", kcache), ("vcache", vcache)):
        checks.shape(name, each, (*kcache.shape[:3], head), f"{form}, num_heads_k, head_size_og")
    titles = ("Output", "Output tensor")
    out = checks.result("out", out_, q, "batch_size, seqlen_q, num_heads, head_size_og", "inputs", titles)
    new = _new_entries(k_, v_, q, cache)
    require(k_ is None or seqlens_k_ is not None, "If key is supplied, seqlens_k must also be passed in")
    if seqlens_k_ is not None:
        checks.integers("seqlens_k", seqlens_k_, batch, "batch_size")
    if leftpad_k_ is not None:
        require(not paged, "We don't support Paged KV and leftpad_k running at the same time yet")
        checks.integers("leftpad_k", leftpad_k_, batch, "batch_size")
    rotary = _rotary(rotary_cos_, rotary_sin_, is_rotary_interleaved, k_, q, cache.capacity)
    if cache_batch_idx_ is not None:
        checks.integers("cache_batch_idx", cache_batch_idx_, batch, "batch_size")
    elif not paged:
        require(kcache.size(0) >= batch, f"kcache has {kcache.size(0)} sequences, and q has {batch}")
    slopes = checks.slopes(alibi_slopes_, batch, heads)
    causal = is_causal and not (queries == 1 and slopes is None)
    window = checks.window(window_size_left, window_size_right, causal, cache.capacity)

    cached = torch.full((batch,), cache.capacity, device=q.device) if seqlens_k_ is None else seqlens_k_.long()
    longest, uniform = _lengths_fit(cached, new, leftpad_k_, cache.capacity)
    key, value = k_, v_
    if rotary is not None and key is not None:
        q, key = _turned(rotary, q, key, cached, window)
    if key is not None and value is not None:
        cache.append(key, value, cached.unsqueeze(1) + torch.arange(new, device=q.device))
    problem = Problem(softmax_scale, window, softcap, slopes)
    keys, values = cache.read(longest, cached + new)
    keys, values = keys[:batch, :longest], values[:batch, :longest]
    if not uniform:
        starts = None if leftpad_k_ is None else leftpad_k_.long()
        lengths = cached + new
        problem = Problem(
            softmax_scale, window, softcap, slopes, starts, lengths if starts is None else lengths - starts
        )
    logsumexp = torch.empty((batch, heads, queries), dtype=torch.float32, device=q.device)
    forward(q, keys, values, problem, out, logsumexp)
    return [out, logsumexp]


def _turned(rotary: Rotary, q: Tensor, key: Tensor, cached: Tensor, window: Window) -> Tuple[Tensor, Tensor]:
    """Queries that may not see all keys stand behind one another; the others all stand at the first new place."""
    behind = torch.arange(max(q.size(1), key.size(1)), device=q.device)
    first = cached.unsqueeze(1)
    places = first + (0 * behind if window.open else behind)[: q.size(1)]
    return rotary.turned(q, places), rotary.turned(key, first + behind[: key.size(1)])
