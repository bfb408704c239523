"""What a case may be: for each family a function that draws a function of tensors, and its arguments.

The inputs are such that the result hardly changes with the last bits of them.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import torch
from torch.nn import functional as F

from arrangements.draws import Argument, Draw

Case = Tuple[Callable[..., Any], List[Argument]]
OPERATORS: Dict[str, Callable[[Draw], Case]] = {}


def family(draws: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
    OPERATORS[draws.__name__] = draws
    return draws


# Products


@family
def product(draw: Draw) -> Case:
    n, m, rows, inner, columns = draw.few(), draw.few(), draw.size(), draw.size(), draw.size()
    left, right = draw.of([
        ((rows, inner), (inner, columns)), ((n, rows, inner), (n, inner, columns)),
        ((n, m, rows, inner), (inner, columns)), ((n, 1, rows, inner), (m, inner, columns)), ((inner,), (inner,)),
        ((inner,), (n, inner, columns)), ((n, rows, inner), (inner,)), ((rows, inner), (n, m, inner, columns)),
    ])  # fmt: skip
    return torch.matmul, [draw.numbers(*left), draw.numbers(*right)]


@family
def product_and_sum(draw: Draw) -> Case:
    n, rows, inner, columns = draw.few(), draw.size(), draw.size(), draw.size()
    beta, alpha, batched = draw.of([0, 1, 0.5]), draw.of([1, -0.5]), draw.flag()
    added = draw.of([(rows, columns), (columns,), (1, columns), (rows, 1)])
    batch = (n,) if batched else ()
    function = torch.baddbmm if batched else torch.addmm
    if batched and len(added) == 2 and draw.flag():
        added = (n, *added)
    sides = [draw.numbers(*batch, rows, inner), draw.numbers(*batch, inner, columns)]
    return lambda i, x, y: function(i, x, y, beta=beta, alpha=alpha), [draw.numbers(*added), *sides]


@family
def linear(draw: Draw) -> Case:
    lead = draw.of([(), (draw.size(),), (draw.few(), draw.size()), (draw.few(), draw.few(), draw.few())])
    inner, outer = draw.size(), draw.size()
    bias = [draw.numbers(outer)] if draw.flag() else []
    return F.linear, [draw.numbers(*lead, inner), draw.numbers(outer, inner), *bias]


@family
def contraction(draw: Draw) -> Case:
    b, h, q, k, d = draw.few(), draw.few(), draw.size(), draw.size(), draw.few()
    equation, left, right = draw.of([
        ("bhqd,bhkd->bhqk", (b, h, q, d), (b, h, k, d)), ("bqhd,bkhd->bhqk", (b, q, h, d), (b, k, h, d)),
        ("bhwc,hkc->bhwk", (b, h, q, d), (h, k, d)), ("ij,kj->ik", (q, d), (k, d)), ("abc,abc->", (b, h, q), (b, h, q)),
    ])  # fmt: skip
    return lambda x, y: torch.einsum(equation, x, y), [draw.numbers(*left), draw.numbers(*right)]


@family
def matrices(draw: Draw) -> Case:
    size, batch, dtype = draw.of([1, 2, 3, 5, 8]), draw.of([(), (2,), (3, 2)]), draw.of([torch.float32, torch.float64])
    general = torch.randn(*batch, size, size) + 6 * torch.eye(size)
    function = draw.of([
        torch.linalg.inv, torch.linalg.matrix_exp, torch.linalg.pinv, lambda x: torch.linalg.slogdet(x)[1],
        lambda x: torch.linalg.cholesky(x @ x.mT), lambda x: torch.linalg.solve(x, x.mT), torch.linalg.svdvals,
        lambda x: torch.linalg.lu_solve(*torch.linalg.lu_factor(x), x.mT),
    ])  # fmt: skip
    scale = 0.1 if function is torch.linalg.matrix_exp else 1.0
    return function, [draw.argument((general * scale).to(dtype))]


# Images


@family
def convolution(draw: Draw) -> Case:
    dims, groups, transposed = draw.between(1, 3), draw.of([1, 1, 2, 4]), draw.rng.random() < 0.3
    kernel, stride = [draw.of([1, 2, 3]) for _ in range(dims)], [draw.of([1, 1, 2, 3]) for _ in range(dims)]
    size = [k + draw.of([0, 0, 1, 3, 9 if dims < 3 else 2]) for k in kernel]
    inner, outer = groups * draw.of([1, 3, 8, 17]), groups * draw.of([1, 2, 8, 33])
    padding = [0 if transposed else draw.of([0, 0, k // 2]) for k in kernel]
    sides = (inner, outer // groups) if transposed else (outer, inner // groups)
    x, weight = draw.numbers(draw.between(1, 3), inner, *size), draw.numbers(*sides, *kernel)
    rest = (stride, padding, [1] * dims, transposed, [0] * dims, groups)
    return lambda i, w, b: torch.ops.aten.convolution(i, w, b, *rest), [x, weight, draw.numbers(outer)]


def image(draw: Draw, dims: int, least: int = 1) -> Argument:
    return draw.numbers(draw.few(), draw.of([1, 3, 8, 17]), *[draw.between(least, least + 8) for _ in range(dims)])


@family
def pooling(draw: Draw) -> Case:
    dims = draw.between(1, 3)
    kernel, stride = [draw.of([1, 2, 3]) for _ in range(dims)], [draw.of([1, 2, 3]) for _ in range(dims)]
    padding, ceil = [draw.between(0, k // 2) for k in kernel], draw.flag()
    counts, out = draw.flag(), [draw.of([1, 2, 3, 5]) for _ in range(dims)]
    of_dims: Dict[str, Any] = {name: getattr(F, f"{name}{dims}d") for name in (
        "max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool")}  # fmt: skip
    function = draw.of([
        lambda x: of_dims["max_pool"](x, kernel, stride, padding, 1, ceil),
        lambda x: of_dims["avg_pool"](x, kernel, stride, padding, ceil, counts),
        lambda x: of_dims["adaptive_avg_pool"](x, out), lambda x: of_dims["adaptive_max_pool"](x, out),
    ])  # fmt: skip
    return function, [image(draw, dims, least=3)]


@family
def interpolation(draw: Draw) -> Case:
    dims = draw.between(1, 3)
    linear_mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[dims]
    mode = draw.of(["nearest", "nearest-exact", "area", linear_mode, *(["bicubic"] if dims == 2 else [])])
    options: Dict[str, Any] = {"size": [draw.of([1, 2, 4, 7, 16]) for _ in range(dims)], "mode": mode}
    if mode in (linear_mode, "bicubic"):
        options["align_corners"] = draw.flag()
        options["antialias"] = dims == 2 and draw.flag()
    return lambda x: F.interpolate(x, **options), [image(draw, dims)]


@family
def sampling(draw: Draw) -> Case:
    dims = draw.between(2, 3)
    padding, corners = draw.of(["zeros", "border"]), draw.flag()
    batch, places = draw.few(), [draw.few() for _ in range(dims)]
    grid = torch.rand(batch, *places, dims) * 1.8 - 0.9
    x = draw.numbers(batch, draw.of([1, 3, 8]), *[draw.between(2, 9) for _ in range(dims)])
    # A coordinate's last bits choose other pixels: those of single precision suffice, and no gradient is asked.
    points = draw.argument(grid.to(torch.float16).to(draw.dtype), differentiable=False)
    return lambda i, g: F.grid_sample(i, g, "bilinear", padding, corners), [x, points]


@family
def borders(draw: Draw) -> Case:
    dims = draw.between(1, 3)
    mode = draw.of(["reflect", "replicate", "circular", "constant"])
    widths = [draw.between(0 if mode == "circular" else -1, 2) for _ in range(2 * dims)]
    return lambda x: F.pad(x, widths, mode=mode), [image(draw, dims, least=3)]


@family
def patches(draw: Draw) -> Case:
    factor, kernel = draw.between(1, 3), draw.between(1, 3)
    function = draw.of([
        lambda x: F.unfold(x, kernel, 1, 1, 2), lambda x: F.pixel_unshuffle(x[..., :factor, :factor], factor),
        lambda x: F.pixel_shuffle(x[:, :1].expand(-1, factor * factor, -1, -1), factor),
        lambda x: F.channel_shuffle(x, x.shape[1]),
    ])  # fmt: skip
    return function, [image(draw, 2, least=3)]


# Normalisation, attention, recurrence


@family
def batch_norm(draw: Draw) -> Case:
    channels, training = draw.of([1, 3, 8, 17, 64]), draw.flag()
    x = draw.numbers(draw.of([3, 5, 16]), channels, *[draw.few() for _ in range(draw.between(0, 3))])
    statistics = [draw.constants(channels), draw.constants(channels, positive=True)]
    parameters = [draw.numbers(channels), draw.numbers(channels)] if draw.flag() else []

    def function(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, *parameters: torch.Tensor) -> Any:
        mean, var = mean.clone(), var.clone()
        return F.batch_norm(x, mean, var, *(parameters or (None, None)), training, 0.1, 0.1), mean, var

    return function, [x, *statistics, *parameters]


@family
def normalisation(draw: Draw) -> Case:
    shape = [*draw.shape(1, 3), draw.of([4, 8, 17, 64])]
    last = draw.between(1, len(shape))
    kind, groups = draw.of(["layer", "group", "softmax", "log_softmax"]), draw.of([1, 2, 4])
    if kind == "group":
        parameters = [draw.numbers(8), draw.numbers(8)] if draw.flag() else []
        x = draw.numbers(draw.few(), 8, draw.between(2, 5), *[draw.few() for _ in range(draw.between(0, 2))])
        return lambda x, *p: F.group_norm(x, groups, *(p or (None, None)), 0.1), [x, *parameters]
    if kind == "layer":
        parameters = [draw.numbers(*shape[-last:]) for _ in range(draw.between(0, 2))]
        return lambda x, *p: F.layer_norm(x, shape[-last:], *p, eps=0.1), [draw.numbers(*shape), *parameters]
    dim = draw.between(0, len(shape) - 1)
    return lambda x: getattr(F, kind)(x, dim), [draw.numbers(*shape)]


@family
def attention(draw: Draw) -> Case:
    batch, heads, queries, width = draw.few(), draw.of([1, 2, 4]), draw.size(), draw.of([1, 8, 17, 32])
    causal = draw.flag()  # of one length: with two, the forms differ in where the first query stands
    keys = queries if causal else draw.size()
    given = [draw.numbers(batch, heads, queries, width), *[draw.numbers(batch, heads, keys, width) for _ in range(2)]]
    if causal or draw.flag():
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), given
    mask = draw.of([(batch, heads, queries, keys), (queries, keys), (batch, 1, 1, keys)])
    return lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), [*given, draw.numbers(*mask)]


@family
def recurrence(draw: Draw) -> Case:
    kind, first, both = draw.of([torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN]), draw.flag(), draw.flag()
    sizes, layers = (draw.of([1, 3, 8, 17]), draw.of([3, 8, 16])), draw.between(1, 2)
    layer = kind(*sizes, layers, batch_first=first, bidirectional=both)
    names = [name for name, _ in layer.named_parameters()]
    parameters = [draw.argument(p.detach().to(draw.dtype)) for p in layer.parameters()]

    def function(x: torch.Tensor, *parameters: torch.Tensor) -> Any:
        own = kind(*sizes, layers, batch_first=first, bidirectional=both).to(x.device, x.dtype)
        output, states = torch.func.functional_call(own, dict(zip(names, parameters)), (x,))
        return (output, *(states if isinstance(states, tuple) else (states,)))

    return function, [draw.numbers(draw.of([1, 2, 5]), draw.of([1, 3, 8]), sizes[0]), *parameters]


# Reductions and scans


@family
def reduction(draw: Draw) -> Case:
    shape = draw.shape(1, 5)
    dims, keeps = draw.rng.sample(range(len(shape)), draw.between(1, len(shape))), draw.flag()
    function = draw.of([
        lambda x: x.sum(dims, keeps), lambda x: x.mean(dims, keeps), lambda x: x.amax(dims, keeps), lambda x: x.sum(),
        lambda x: x.var(dims, correction=0, keepdim=keeps), lambda x: x.logsumexp(dims), lambda x: x.nansum(dims),
        lambda x: torch.linalg.vector_norm(x, 2, dims, keeps), lambda x: torch.var_mean(x, dims, correction=0),
        lambda x: x.max(dims[0], keeps)[0], lambda x: x.median(dims[0])[0], lambda x: torch.aminmax(x, dim=dims[0]),
    ])  # fmt: skip
    return function, [draw.numbers(*shape)]


@family
def scan(draw: Draw) -> Case:
    shape = draw.shape()
    dim, descending = draw.between(0, len(shape) - 1), draw.flag()
    count = draw.between(1, shape[dim])
    function = draw.of([
        lambda x: x.cumsum(dim), lambda x: x.cummax(dim)[0], lambda x: x.logcumsumexp(dim), lambda x: x.flip(dim),
        lambda x: x.sort(dim, descending)[0], lambda x: x.topk(count, dim, descending)[0],
        lambda x: x.kthvalue(count, dim)[0], lambda x: x.roll(3, dim), lambda x: x.diff(dim=dim),
    ])  # fmt: skip
    return function, [draw.numbers(*shape)]


# Indices


@family
def places(draw: Draw) -> Case:
    shape = draw.shape()
    dim, count = draw.between(0, len(shape) - 1), draw.of([1, 2, 3, 7])
    taken = [count if d == dim else size for d, size in enumerate(shape)]
    along = [draw.between(1, size) for size in shape]
    x, one_dim, whole = draw.numbers(*shape), draw.places(shape[dim], count), draw.places(shape[dim], *along)
    source, values = draw.numbers(*taken), draw.numbers(*along)
    function, arguments = draw.of([
        (lambda x, i: x.index_select(dim, i), [x, one_dim]), (lambda x, i: x.gather(dim, i), [x, whole]),
        (lambda x, i, y: x.index_add(dim, i, y), [x, one_dim, source]),
        (lambda x, i, y: x.scatter_add(dim, i, y), [x, whole, values]),
        (lambda x, i: x.index_fill(dim, i, 0.5), [x, one_dim]),
        (lambda x, i: x[(slice(None),) * dim + (i,)], [x, one_dim]),
        (lambda x, i: x.take(i), [x, one_dim]),
    ])  # fmt: skip
    return function, arguments


@family
def masks(draw: Draw) -> Case:
    shape = draw.shape()
    mask = draw.argument(torch.rand(draw.partner(shape)) < 0.4)
    function = draw.of([
        lambda x, m: x.masked_fill(m, 0.5), lambda x, m: torch.where(m, x, 2 * x),
        lambda x, m: x.masked_select(m), lambda x, m: torch.where(m, x, 0.0),
    ])  # fmt: skip
    return function, [draw.numbers(*shape), mask]


@family
def embedding(draw: Draw) -> Case:
    words, width = draw.size(), draw.size()
    indices, weight = draw.places(words, draw.few(), draw.size()), draw.numbers(words, width)
    mode = draw.of(["", "sum", "mean", "max"])
    if not mode:
        return F.embedding, [indices, weight]
    return lambda i, w: F.embedding_bag(i, w, mode=mode), [indices, weight]


# Elementwise


@family
def elementwise(draw: Draw) -> Case:
    shape = draw.shape(0, 5)
    function = draw.of([
        torch.exp, torch.tanh, torch.sigmoid, F.gelu, F.silu, F.softplus, F.hardswish, F.leaky_relu, torch.erf,
        lambda x: (x.abs() + 0.5).log(), lambda x: (x.abs() + 0.5).rsqrt(), lambda x: F.gelu(x, approximate="tanh"),
        lambda x: x.clone().add_(x), lambda x: x.expand(2, *x.shape).contiguous(), lambda x: x.reshape(-1),
    ])  # fmt: skip
    return function, [draw.numbers(*shape)]


@family
def broadcast(draw: Draw) -> Case:
    shape = draw.shape(0, 5)
    function = draw.of([
        torch.add, torch.sub, torch.mul, torch.maximum, torch.atan2, lambda x, y, z: x / (y.abs() + 0.5),
        lambda x, y, z: torch.addcmul(x, y, z, value=0.5), lambda x, y, z: torch.where(y > 0, x, z),
        lambda x, y, z: torch.lerp(x, y, z), lambda x, y, z: x.clamp(max=y), lambda x, y, z: (x.abs() + 0.5) ** y,
    ])  # fmt: skip
    two = function in (torch.add, torch.sub, torch.mul, torch.maximum, torch.atan2)
    arguments = [draw.numbers(*shape), draw.numbers(*draw.partner(shape)), draw.numbers(*draw.partner(shape))]
    return function, arguments[:2] if two else arguments


@family
def joining(draw: Draw) -> Case:
    shape = draw.shape()
    dim = draw.between(0, len(shape) - 1)
    function = draw.of([
        lambda x, y: torch.cat([x, y], dim), lambda x, y: torch.stack([x, y], dim), torch.dist,
        lambda x, y: x.clone().copy_(y), lambda x, y: torch.cat([x.transpose(0, dim), y.transpose(0, dim)]),
        lambda x, y: F.mse_loss(x, y), lambda x, y: F.smooth_l1_loss(x, y), torch.hypot,
    ])  # fmt: skip
    return function, [draw.numbers(*shape), draw.numbers(*shape)]


@family
def into_given_tensors(draw: Draw) -> Case:
    shape = draw.shape(2, 4)
    order = draw.rng.sample(range(len(shape)), len(shape))
    back = [order.index(dim) for dim in range(len(shape))]

    def room(x: torch.Tensor) -> torch.Tensor:
        return torch.full([x.shape[dim] for dim in order], float("nan"), dtype=x.dtype, device=x.device).permute(back)

    function = draw.of([
        lambda x, y: torch.add(x, y, out=room(x)), lambda x, y: torch.cumsum(x, 0, out=room(x)),
        lambda x, y: torch.where(y > 0, x, y, out=room(x)), lambda x, y: torch.sigmoid(x, out=room(x)),
        lambda x, y: torch.sum(x, 0, keepdim=True, out=room(x[:1])),
        lambda x, y: torch.cat([x, y], 0, out=x.new_empty(0)),
        lambda x, y: torch.matmul(x, y.mT @ y, out=room(x)),
    ])  # fmt: skip
    return function, [draw.constants(*shape), draw.constants(*shape)]


@family
def optimizer(draw: Draw) -> Case:
    shape, dtype = draw.shape(), draw.of([torch.float32, torch.float64])
    kind, foreach = draw.of(["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam"]), draw.flag()

    def function(start: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
        parameter = torch.nn.Parameter(start.detach().clone())
        one = getattr(torch.optim, kind)([parameter], lr=0.1, foreach=foreach)
        for step in range(3):
            parameter.grad = slope * (step + 1)
            one.step()
        return parameter.detach()

    return function, [draw.argument(torch.randn(shape).to(dtype), differentiable=False) for _ in range(2)]


@family
def convolution_of_images_of_one_channel(draw: Draw) -> Case:
    kernel, steps = [draw.of([1, 2, 3]) for _ in range(2)], [draw.of([1, 2, 3]) for _ in range(2)]
    size = [k + draw.of([0, 1, 2]) for k in kernel]
    order = torch.channels_last

    def function(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x.to(memory_format=order), weight.to(memory_format=order), stride=steps)

    return function, [draw.numbers(draw.between(1, 3), 1, *size), draw.numbers(draw.of([1, 2, 8]), 1, *kernel)]
