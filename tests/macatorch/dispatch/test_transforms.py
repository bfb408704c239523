"""Forward-mode AD, functorch's transforms, float8 and named tensors: on the device as on the CPU."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, Iterator, Tuple

import pytest
import release_facts
import torch
from torch.autograd import forward_ad
from torch.nn import functional as F

Function = Callable[..., torch.Tensor]


def make(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def same(ours: Any, reference: Any) -> None:
    if isinstance(reference, (tuple, list)):
        assert len(ours) == len(reference)
        for a, b in zip(ours, reference):
            same(a, b)
        return
    assert ours.is_cuda and not reference.is_cuda
    torch.testing.assert_close(ours.cpu(), reference)


def on_both(run: Callable[..., Any], *tensors: torch.Tensor) -> None:
    same(run(*(t.cuda() for t in tensors)), run(*tensors))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    with release_facts.attention_by("MATH"):  # the others have no forward mode, on CUDA neither
        return F.scaled_dot_product_attention(q, k, v)


FUNCTIONS: Dict[str, Tuple[Function, Tuple[Tuple[int, ...], ...]]] = {
    "sin": (torch.sin, ((3, 4),)),
    "product": (torch.mm, ((3, 4), (4, 5))),
    "linear": (F.linear, ((2, 4), (3, 4), (3,))),
    "convolution": (F.conv2d, ((2, 3, 5, 5), (4, 3, 3, 3), (4,))),
    "softmax": (lambda x: F.softmax(x, 1), ((3, 4),)),
    "log_softmax": (lambda x: F.log_softmax(x, 1), ((3, 4),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), ((3, 4), (4,), (4,))),
    "group_norm": (lambda x: F.group_norm(x, 2), ((2, 4, 3),)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), ((4, 3, 2),)),
    "gelu": (F.gelu, ((5,),)),
    "max_pool": (lambda x: F.max_pool2d(x, 2), ((1, 2, 4, 4),)),
    "attention": (attention, ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4))),
    "cumulative": (lambda x: x.cumsum(0).cumprod(1), ((3, 4),)),
    "indexing": (lambda x: x[:, [2, 0]] * x[1:2, :1], ((3, 4),)),
    "sorting": (lambda x: x.sort(1).values.topk(2, 0).values, ((3, 4),)),
    "solve": (lambda a, b: torch.linalg.solve(a @ a.mT + torch.eye(3).to(a), b), ((3, 3), (3, 2))),
    "norm": (lambda x: torch.linalg.vector_norm(x, 3, dim=1), ((3, 4),)),
    "where": (lambda x, y: torch.where(x > 0, x.exp(), y.abs().sqrt()), ((3, 4), (3, 4))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    primals = [make(*shape) for shape in shapes]
    tangents = [make(*shape).flip(0) + 1 for shape in shapes]

    def run(*tensors: torch.Tensor) -> Any:
        return torch.func.jvp(function, tensors[: len(shapes)], tensors[len(shapes) :])

    on_both(run, *primals, *tangents)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("product", [torch.dot, torch.vdot, torch.matmul], ids=lambda product: product.__name__)
def test_forward_mode_of_one_factor(product: Function, dtype: torch.dtype) -> None:
    """The other factor's tangent is a tensor of zeros without memory, and so is what upstream multiplies by it."""
    turn = 1 + 2j if dtype.is_complex else 1
    first, second, tangent = (make(size)[:5].to(dtype) * turn for size in (5, 6, 7))

    def derivative(device: str) -> Tuple[torch.Tensor, ...]:
        x, y, moved = (t.to(device) for t in (first, second, tangent))
        zeros = torch._efficientzerotensor(5, dtype=dtype, device=device)
        with forward_ad.dual_level():
            left = forward_ad.unpack_dual(product(forward_ad.make_dual(x, moved), y)).tangent
            right = forward_ad.unpack_dual(product(x, forward_ad.make_dual(y, moved))).tangent
        return left, right, product(x, zeros), product(zeros, y)

    same(derivative("cuda"), derivative("cpu"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    batch = [torch.stack([make(*shape), make(*shape) - 1]) for shape in shapes]
    on_both(torch.vmap(function), *batch)
    if len(shapes) > 1:
        # The first is shared by the batch.
        on_both(torch.vmap(function, in_dims=(None, *[0] * (len(shapes) - 1))), make(*shapes[0]), *batch[1:])


@pytest.mark.parametrize("name", ["sin", "softmax", "layer_norm", "convolution", "where"])
def test_gradients_of_gradients(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    tensors = [make(*shape) for shape in shapes]

    def scalar(*arguments: torch.Tensor) -> torch.Tensor:
        return function(*arguments).pow(2).sum()

    on_both(lambda *t: torch.func.jacrev(function)(*t), *tensors)
    on_both(lambda *t: torch.func.jacfwd(function)(*t), *tensors)
    on_both(lambda *t: torch.func.hessian(scalar)(*t), *tensors)
    on_both(lambda *t: torch.func.vmap(torch.func.grad(scalar))(*(torch.stack([x, x + 1]) for x in t)), *tensors)


def test_vmap_draws_as_it_is_told() -> None:
    x = torch.ones(3, 50, device="cuda")
    same_draw = torch.vmap(lambda t: F.dropout(t), randomness="same")(x)
    assert torch.equal(same_draw[0], same_draw[1]) and set(same_draw.unique().tolist()) == {0.0, 2.0}
    different = torch.vmap(lambda t: t + torch.rand_like(t), randomness="different")(x)
    assert not torch.equal(different[0], different[1])
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(lambda t: F.dropout(t))(x)


FLOAT8 = [dtype for name, dtype in sorted(vars(torch).items()) if name.startswith("float8_e") and "e8m0" not in name]


def test_batched_derivatives_of_what_draws() -> None:
    """Upstream's gradcheck batches tangents by the older vmap, which lets rrelu through: it draws for itself."""
    x = make(20).cuda()

    def derivative(tangent: torch.Tensor) -> torch.Tensor:
        with forward_ad.dual_level():
            y = F.rrelu(forward_ad.make_dual(x, tangent), 0.0, 1.0, training=True)
            return forward_ad.unpack_dual(y).tangent

    slopes = torch._vmap_internals._vmap(derivative, 0, 0)(torch.eye(20, dtype=x.dtype, device="cuda"))
    diagonal = slopes.diagonal()
    assert torch.equal(slopes, diagonal.diag()) and torch.equal(diagonal == 1, x > 0)
    assert ((diagonal >= 0) & (diagonal <= 1)).all()


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("source", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_float8_rounds_as_on_the_cpu(dtype: torch.dtype, source: torch.dtype) -> None:
    special = torch.tensor(
        [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 448, 449, 464, 465, 57344, 1e-9, 2**-9]
    )
    wide = torch.cat([special, torch.linspace(-500, 500, 4001), make(2000).float() * 1e-2]).to(source)
    ours, reference = wide.cuda().to(dtype), wide.to(dtype)
    assert torch.equal(ours.view(torch.uint8).cpu(), reference.view(torch.uint8))
    back = ours.to(source)
    assert back.is_cuda and torch.equal(back.cpu().nan_to_num(7.0), reference.to(source).nan_to_num(7.0))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_float8_moves_and_changes_shape(dtype: torch.dtype) -> None:
    bytes_ = torch.arange(240, dtype=torch.uint8).reshape(2, 3, 5, 8)
    x = bytes_.view(dtype).cuda()
    bits = x.view(torch.uint8)
    assert torch.equal(torch.cat([x, x], 1).view(torch.uint8), torch.cat([bits, bits], 1))
    for out in (torch.empty(0, dtype=dtype, device="cuda"), torch.empty(2, 6, 5, 8, dtype=dtype, device="cuda")):
        assert torch.cat([x, x], 1, out=out) is out
        assert torch.equal(out.view(torch.uint8), torch.cat([bits, bits], 1))
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.cat([x[:1], x[1:]], out=x)
    assert torch.equal(x.transpose(1, 3).contiguous().view(torch.uint8), bits.transpose(1, 3))
    assert torch.equal(x[:, 1:].clone().view(torch.uint8), bits[:, 1:])
    assert torch.equal(x.cpu().view(torch.uint8).cuda(), bits)
    y = torch.zeros_like(x)
    y.copy_(x)
    assert torch.equal(y.view(torch.uint8), bits) and y.dtype == dtype


@pytest.fixture
def names_are_experimental() -> Iterator[None]:
    if not hasattr(torch.Tensor, "refine_names"):
        pytest.skip("this release has no named tensors")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Named tensors")
        yield


NAMED: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "moved": lambda x: x,
    "sum": lambda x: x.sum("C"),
    "mean, kept": lambda x: x.mean(("N", "W"), keepdim=True),
    "softmax": lambda x: x.softmax("C"),
    "scalar": lambda x: x * 2 + 1,
    "unified": lambda x: x + torch.ones(4, dtype=x.dtype, device=x.device),
    "reordered": lambda x: x.align_to("W", "N", "C"),
    "product": lambda x: x.select("N", 0) @ x.select("N", 1).rename(C="K").transpose("K", "W"),
    "in place": lambda x: x.clone().mul_(3).abs_(),
    "flattened": lambda x: x.flatten(["C", "W"], "F"),
    "split": lambda x: x.unflatten("W", (("A", 2), ("B", 2))),
    "logsumexp": lambda x: x.logsumexp("W"),
    "cumulative": lambda x: x.cumsum("C"),
    "compared": lambda x: x > 0,
    "masked": lambda x: x.masked_fill(x > 0, 0.0),
}


@pytest.mark.parametrize("name", NAMED)
def test_names_follow_the_dimensions(name: str, names_are_experimental: None) -> None:
    x = make(2, 3, 4).refine_names("N", "C", "W")
    reference, ours = NAMED[name](x), NAMED[name](x.cuda())
    assert ours.is_cuda and ours.names == reference.names
    torch.testing.assert_close(ours.rename(None).cpu(), reference.rename(None))


def test_names_that_do_not_fit_are_refused(names_are_experimental: None) -> None:
    x = make(2, 3).refine_names("N", "C").cuda()
    y = make(2, 3).refine_names("N", "D").cuda()
    with pytest.raises(RuntimeError, match="Error when attempting to broadcast dims"):
        x + y
    with pytest.raises(RuntimeError, match="not found in Tensor"):
        x.sum("W")
    out = torch.empty(0, dtype=x.dtype, device="cuda")
    assert torch.add(x, x, out=out).names == ("N", "C")
