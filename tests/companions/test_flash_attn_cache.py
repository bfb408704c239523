"""flash_attn_with_kvcache: new entries, pages, rotary embedding, and steps that a graph replays."""

import random

import pytest
import torch

flash_attn = pytest.importorskip("flash_attn")
from attention_reference import (  # noqa: E402
    Options,
    assert_rounded_once,
    attention,
    random_options,
)

PAGE = 256


def turned(x, cos, sin, places, interleaved):
    """x (n, heads, E), turned by rows ``places`` of the tables in float64, then rounded."""
    c, s = (table.double()[places].unsqueeze(1) for table in (cos, sin))
    half, y = c.size(-1), x.double().clone()
    if interleaved:
        first, second = x[..., 0 : 2 * half : 2].double(), x[..., 1 : 2 * half : 2].double()
        y[..., 0 : 2 * half : 2], y[..., 1 : 2 * half : 2] = first * c - second * s, first * s + second * c
    else:
        first, second = x[..., :half].double(), x[..., half : 2 * half].double()
        y[..., :half], y[..., half : 2 * half] = first * c - second * s, first * s + second * c
    return y.to(x.dtype)


def whole(cache, table, i):
    """The cache of sequence i as one tensor."""
    return cache[table[i].long()].flatten(0, 1) if table is not None else cache[i]


@pytest.mark.parametrize("seed", range(40))
def test_a_step_with_a_cache(seed):
    chosen = random.Random(seed)
    options = random_options(200 + seed)
    options.size = max(options.size, 16)
    batch, queries = chosen.choice([1, 3]), chosen.choice([1, 1, 4, 7])
    paged, new = chosen.random() < 0.4, chosen.choice([0, queries, 5])
    capacity = PAGE * 2 if paged else chosen.choice([64, 131])
    lengths = [chosen.randint(queries, capacity - 8) for _ in range(batch)]
    if chosen.random() < 0.3:
        lengths = [lengths[0]] * batch
    table, indices = None, None
    rows = batch
    if paged:
        rows = 3 * batch
        table = torch.tensor(chosen.sample(range(rows), 2 * batch), dtype=torch.int32).view(batch, 2)
    elif chosen.random() < 0.4:
        rows = batch + 2
        indices = torch.tensor(chosen.sample(range(rows), batch), dtype=torch.int32)
    shape = (rows, PAGE if paged else capacity, options.key_heads, options.size)
    caches = [torch.randn(shape).to(options.dtype) for _ in range(2)]
    if indices is None:
        # What lies behind a sequence was never written.
        for i, length in enumerate(lengths):
            for cache in caches:
                view = whole(cache, table, i)
                view[length:] = float("nan")
                if table is not None:
                    cache[table[i].long()] = view.unflatten(0, (2, PAGE))
    left = None
    if not paged and chosen.random() < 0.3:
        left = torch.tensor([chosen.randint(0, length - 1) for length in lengths], dtype=torch.int32)
    q = torch.randn(batch, queries, options.heads, options.size).to(options.dtype)
    fresh = [torch.randn(batch, new, *shape[2:]).to(options.dtype) for _ in range(2)] if new else [None, None]
    rotary = None
    if new and chosen.random() < 0.6:
        width = chosen.choice([w for w in (16, 32, options.size) if w <= options.size and w % 16 == 0])
        angles = torch.rand(capacity, width // 2) * 6
        rotary = [angles.cos().to(options.dtype), angles.sin().to(options.dtype), chosen.random() < 0.5]
    slopes = options.slopes(batch)

    def on_device(x):
        return None if x is None else x.cuda().contiguous()

    given = [x.cuda().contiguous() for x in caches]
    out, lse = flash_attn.flash_attn_with_kvcache(
        on_device(q), *given, *map(on_device, fresh),
        rotary_cos=on_device(rotary[0]) if rotary else None,
        rotary_sin=on_device(rotary[1]) if rotary else None,
        cache_seqlens=torch.tensor(lengths, dtype=torch.int32, device="cuda"),
        cache_batch_idx=on_device(indices), cache_leftpad=on_device(left), block_table=on_device(table),
        rotary_interleaved=rotary[2] if rotary else True,
        **options.of_flash(slopes), return_softmax_lse=True,
    )  # fmt: skip
    assert out.shape == q.shape and lse.shape == (batch, options.heads, queries)
    local = options.causal and not (queries == 1 and slopes is None) or any(0 <= w < capacity for w in options.window)
    for i, length in enumerate(lengths):
        row = i if indices is None else int(indices[i])
        views = [whole(cache, table, row).clone() for cache in caches]
        query = q[i]
        if new:
            places = torch.arange(length, length + new)
            key = fresh[0][i]
            if rotary:
                key = turned(key, *rotary[:2], places, rotary[2])
                seats = length + (torch.arange(queries) if local else torch.zeros(queries, dtype=torch.long))
                query = turned(query, *rotary[:2], seats, rotary[2])
            views[0][places], views[1][places] = key, fresh[1][i]
            written = [whole(cache.cpu(), table, row)[places] for cache in given]
            torch.testing.assert_close(written[0].double(), key.double(), rtol=1e-2, atol=1e-3)
            assert torch.equal(written[1], fresh[1][i])
        first = 0 if left is None else int(left[i])
        own = [view[first : length + new].double() for view in views]
        want, want_lse = attention(query.double(), *own, options.size**-0.5, **options.of_reference(slopes, i))
        # Turned keys may be rounded to a neighbour of the reference's.
        margin = 8 if rotary else 1
        assert_rounded_once(out[i], want, options.dtype, margin)
        torch.testing.assert_close(lse[i].double().cpu(), want_lse, rtol=1e-5 * margin**3, atol=1e-5 * margin**3)


def step_arguments(options, lengths):
    q, k, v = (
        torch.randn(2, 1, heads, options.size, dtype=options.dtype, device="cuda")
        for heads in (options.heads, options.key_heads, options.key_heads)
    )
    caches = [torch.randn(2, 48, options.key_heads, options.size, dtype=options.dtype, device="cuda") for _ in "kv"]
    return q, caches, (k, v), torch.tensor(lengths, dtype=torch.int32, device="cuda")


def test_a_graph_replays_a_step_at_the_lengths_of_its_launch():
    options = Options(4, 2, 32, torch.float16, True, (-1, -1), 0.0, "")
    q, caches, fresh, lengths = step_arguments(options, [3, 9])
    copies = [x.clone() for x in caches]

    def step(memory):
        return flash_attn.flash_attn_with_kvcache(q, *memory, *fresh, cache_seqlens=lengths, causal=True)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step(caches)
    for number in range(3):
        lengths.add_(number)
        graph.replay()
        want = step(copies)
        torch.testing.assert_close(out, want, rtol=1e-3, atol=1e-4)
        assert all(map(torch.equal, caches, copies))


def test_a_full_cache_is_an_error_and_left_as_it_is():
    options = Options(2, 2, 32, torch.float16, True, (-1, -1), 0.0, "")
    q, caches, fresh, lengths = step_arguments(options, [3, 48])
    copies = [x.clone() for x in caches]
    with pytest.raises(RuntimeError, match="1 new ones, of at most 48"):
        flash_attn.flash_attn_with_kvcache(q, *caches, *fresh, cache_seqlens=lengths, causal=True)
    assert all(map(torch.equal, caches, copies))


def test_wrong_arguments_are_refused_in_upstreams_words():
    options = Options(2, 2, 32, torch.float16, True, (-1, -1), 0.0, "")
    q, caches, fresh, lengths = step_arguments(options, [3, 8])
    call = flash_attn.flash_attn_with_kvcache
    with pytest.raises(RuntimeError, match="If key is supplied, seqlens_k must also be passed in"):
        call(q, *caches, *fresh)
    with pytest.raises(RuntimeError, match="If key is supplied, value must also be passed in"):
        call(q, *caches, fresh[0], cache_seqlens=lengths)
    pages = torch.zeros(2, 1, dtype=torch.int32, device="cuda")
    with pytest.raises(RuntimeError, match="Paged KV cache block size must be divisible by 256"):
        call(q, *caches, cache_seqlens=lengths, block_table=pages)
    cos = torch.ones(48, 8, dtype=torch.float16, device="cuda")
    with pytest.raises(RuntimeError, match="new key / value to be appended to KV cache must also be provided"):
        call(q, *caches, cache_seqlens=lengths, rotary_cos=cos, rotary_sin=cos)
    with pytest.raises(RuntimeError, match="cos/sin seqlen must be at least the seqlen of KV cache"):
        call(q, *caches, *fresh, cache_seqlens=lengths, rotary_cos=cos[:40], rotary_sin=cos[:40])
