"""Steps that hand a small function or module on: to the tracer, a transform, a graph, a checkpoint, an optimizer."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from . import literals
from .grammar import Writer
from .pen import moderate
from .program import Step

# Lines of a function over x, whose last dimension may be anything; each gives x again.
LINES = (
    "x = x * 2 + 1", "x = torch.relu(x)", "x = x + x.sum()", "x = torch.sin(x)", "x = x.flatten()", "x = x / 3", "x = x.clone()", "x = x * x",
    "x = x.unsqueeze(0)", "x = torch.cat([x, x])", "x = x - x.mean()", "x = torch.where(x > 0, x, -x)", "x = x.transpose(0, -1)", "x = F.gelu(x)",
    "x = torch.softmax(x, -1)", "x = x.clamp(-1, 1)", "x = x.exp()", "x = x @ x.mT", "x = F.layer_norm(x, x.shape[-1:])", "x = x.cumsum(0)", "x = x[..., :1]",
    "x = torch.sigmoid(x)", "x = x.add(1).mul_(2)", "x = F.silu(x)", "x = x.amax(0)", "x = x.sort(-1)[0]", "x = x.repeat(2, *[1] * (x.dim() - 1))", "x = x.pow(2)",
    "x = x.half()", "x = x.to(torch.float64)", "x = x.reshape(-1)[:2]", "x = x.var(-1)", "x = torch.tanh(x).neg()", "x = torch.erf(x)", "x = x.prod(0)",
    "x = F.pad(x, (1, 1))", "x = x.index_select(0, torch.zeros(2, dtype=torch.long, device=x.device))", "x = x.masked_fill(x > 1, 0.5)", "x = F.softplus(x)",
)  # fmt: skip
# A module and the shapes of what it takes.
MODULES: Sequence[Tuple[str, Sequence[Tuple[int, ...]]]] = (
    ("torch.nn.Conv2d(2, 3, 3, padding=1)", [(1, 2, 4, 4)]), ("torch.nn.Conv1d(2, 2, 2)", [(2, 2, 5)]), ("torch.nn.Conv3d(1, 2, 2)", [(1, 1, 3, 3, 3)]),
    ("torch.nn.ConvTranspose2d(2, 2, 2, stride=2)", [(1, 2, 3, 3)]), ("torch.nn.Linear(4, 3)", [(2, 4)]), ("torch.nn.BatchNorm2d(2)", [(2, 2, 3, 3)]), ("torch.nn.BatchNorm1d(3)", [(4, 3)]),
    ("torch.nn.LayerNorm(4)", [(2, 4)]), ("torch.nn.GroupNorm(1, 2)", [(2, 2, 3)]), ("torch.nn.LSTM(3, 2, batch_first=True)", [(2, 3, 3)]), ("torch.nn.GRU(3, 2)", [(3, 2, 3)]),
    ("torch.nn.RNN(2, 3)", [(3, 1, 2)]), ("torch.nn.LSTM(2, 2, num_layers=2, bidirectional=True)", [(3, 2, 2)]), ("torch.nn.MultiheadAttention(4, 2, batch_first=True)", [(1, 3, 4)] * 3), ("torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU())", [(2, 2, 4, 4)]),
    ("torch.nn.LSTMCell(3, 2)", [(2, 3)]), ("torch.nn.GRUCell(3, 2)", [(2, 3)]), ("torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)", [(2, 3, 4)]), ("torch.nn.PReLU()", [(2, 3)]),
    ("torch.nn.Bilinear(2, 3, 2)", [(2, 2), (2, 3)]), ("torch.nn.InstanceNorm2d(2, affine=True)", [(2, 2, 3, 3)]), ("torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))", [(3, 4)]),
    ("torch.nn.Conv2d(4, 4, 3, groups=4)", [(1, 4, 5, 5)]), ("torch.nn.AdaptiveAvgPool2d(2)", [(1, 2, 5, 5)]), ("torch.nn.Upsample(scale_factor=2, mode='bilinear')", [(1, 2, 3, 3)]), ("torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 3))", [(2, 4)]),
)  # fmt: skip
# Adam divides gradients that are rounding errors by their size: attention's bias of the keys, a bias before a norm.
TRAINED = [row for row in MODULES if not any(word in row[0] for word in ("Attention", "Transformer", "Norm"))]


def function(writer: Writer) -> Tuple[str, Step]:
    name = writer.fresh("f")
    lines = [writer.rng.choice(LINES) for _ in range(writer.rng.randint(1, 4))]
    text = f"def {name}(x):\n" + "\n".join(f"    {line}" for line in lines) + "\n    return x"
    return name, Step(text, "def")


def argument(writer: Writer) -> Tuple[str, List[Step]]:
    """A floating tensor with a dimension and elements."""
    found = writer.tensors(lambda t: t.is_floating_point() and t.dim() > 0 and t.numel() > 0 and moderate(t))
    if found and writer.maybe(0.7):
        return writer.rng.choice(found)[0], []
    steps = writer.leaf(
        tuple(writer.rng.randint(1, 4) for _ in range(writer.rng.randint(1, 3))),
        writer.rng.choice(("float32", "float32", "float16", "float64", "bfloat16")),
    )
    return [n for s in steps for n in s.binds][-1], steps


def module(
    writer: Writer, dtype: str, modules: Sequence[Tuple[str, Sequence[Tuple[int, ...]]]] = MODULES
) -> Tuple[str, List[str], List[Step]]:
    """A module with the same weights on both devices, and arguments for it."""
    made, shapes = writer.rng.choice(modules)
    name, steps, names = writer.fresh("m"), [], []
    mode = writer.rng.choice(("", "", ".eval()"))
    first = Step(
        f"torch.manual_seed({writer.rng.randint(0, 99)})\n{name} = {made}.to(device, torch.{dtype}){mode}",
        made.split("(")[0],
    )
    for shape in shapes:
        leaf = writer.leaf(shape, dtype, tame=True)
        steps += leaf
        names.append([n for s in leaf for n in s.binds][-1])
    return name, names, [first, *steps]


def functional_module(writer: Writer) -> List[Step]:
    dtype = writer.rng.choice(("float32", "float32", "float32", "float64", "float16", "bfloat16"))
    name, arguments, steps = module(writer, dtype)
    result = writer.fresh()
    called = steps[0].callee
    rng = writer.rng
    given = ", ".join(arguments)
    kind = rng.random()
    if kind < 0.45:
        traced, nodes = writer.fresh("m"), writer.fresh("h")
        strict = ", strict=False" if rng.random() < 0.2 else ""
        steps += [
            Step(
                f"{traced} = torch.jit.trace({name}, ({given},), check_trace=False{strict})\n{nodes} = kinds({traced}.graph)",
                f"jit.trace {called}",
            ),
            Step(f"{result} = {traced}({given})", f"traced {called}"),
        ]
    elif kind < 0.55:
        steps.append(Step(f"{result} = torch.jit.script({name})({given})", f"scripted {called}"))
    elif kind < 0.7:
        steps.append(
            Step(
                f"{result} = torch.func.functional_call({name}, {{k: v * 2 for k, v in {name}.named_parameters()}}, ({given},))",
                f"functional_call {called}",
            )
        )
    elif kind < 0.8:
        steps.append(Step(f"{result} = copy.deepcopy({name})({given})", f"deepcopy {called}"))
    elif kind < 0.9:
        steps.append(
            Step(f"{result} = checkpoint({name}, {given}, use_reentrant={rng.random() < 0.3})", f"checkpoint {called}")
        )
    else:
        steps.append(Step(f"{result} = {name}({given})", called))
    # Not the sum: its gradient through a norm is a rounding error. What TorchScript does changes from call to call.
    if (
        rng.random() < 0.6
        and "scripted" not in steps[-1].callee
        and not ("Norm" in steps[0].text and "float16" in dtype)
    ):
        steps.append(
            Step(
                f"sum(v.float().pow(3).sum() for v in torch.utils._pytree.tree_flatten({result})[0] if v is not None).backward()",
                f"backward of {called}",
            )
        )
    return steps


def traced(writer: Writer) -> List[Step]:
    name, defined = function(writer)
    given, steps = argument(writer)
    module_name, nodes, result = writer.fresh("m"), writer.fresh("h"), writer.fresh()
    return [
        *steps,
        defined,
        Step(
            f"{module_name} = torch.jit.trace({name}, ({given},), check_trace=False)\n{nodes} = kinds({module_name}.graph)",
            "jit.trace",
        ),
        Step(f"{result} = {module_name}({given})", "traced function"),
    ]


def transformed(writer: Writer) -> List[Step]:
    name, defined = function(writer)
    given, steps = argument(writer)
    result = writer.fresh()
    text, callee = writer.rng.choice((
        (f"torch.func.vmap({name})({given})", "vmap"), (f"torch.func.grad(lambda x: {name}(x).float().sum())({given})", "func.grad"), (f"torch.func.vjp({name}, {given})[0]", "vjp"),
        (f"torch.func.jvp({name}, ({given},), (torch.ones_like({given}),))", "jvp"), (f"torch.func.jacrev({name})({given})", "jacrev"), (f"torch.func.jacfwd({name})({given})", "jacfwd"),
        (f"torch.func.hessian(lambda x: {name}(x).float().sum())({given})", "hessian"), (f"torch.func.functionalize({name})({given})", "functionalize"),
        (f"torch.func.vmap(torch.func.grad(lambda x: {name}(x).float().sum()))({given})", "vmap grad"), (f"torch.func.vmap({name}, in_dims=-1)({given})", "vmap"),
        (f"torch.autograd.functional.jacobian({name}, {given})", "jacobian"), (f"torch.autograd.forward_ad.make_dual({given}, {given})" if False else f"{name}({given})", "call"),
    ))  # fmt: skip
    return [*steps, defined, Step(f"{result} = {text}", callee)]


def graphed(writer: Writer) -> List[Step]:
    name, defined = function(writer)
    given, steps = argument(writer)
    result = writer.fresh()
    text, callee, kind = writer.rng.choice((
        (f"{result} = captured({name}, {given}.detach())", "captured", "values"), (f"{result} = captured({name}, {given}.detach())", "captured", "values"),
        (f"{result} = side_stream({name}, {given})", "side stream", "values"), (f"{result} = checkpoint({name}, {given}, use_reentrant=False)", "checkpoint", "values"),
        (f"with autocast(device, torch.{writer.rng.choice(('float16', 'bfloat16'))}):\n    {result} = {name}({given}.detach())", "autocast", "loose"),
    ))  # fmt: skip
    return [*steps, defined, Step(text, callee, kind)]


def trained(writer: Writer) -> List[Step]:
    """Some steps of an optimizer."""
    rng = writer.rng
    name, arguments, steps = module(writer, rng.choice(("float32", "float64")), TRAINED)
    optimizer = rng.choice((
        "SGD({p}, lr=0.1, momentum=0.9)", "SGD({p}, lr=0.1, foreach=False)", "Adam({p}, lr=0.01)", "AdamW({p}, lr=0.01, foreach=False)", "RMSprop({p}, lr=0.01)", "Adagrad({p}, lr=0.1)",
        "Adam({p}, lr=0.01, fused=device == 'cuda')", "SGD({p}, lr=0.1, fused=device == 'cuda')", "NAdam({p}, lr=0.01)", "Adadelta({p})", "Adamax({p})", "RAdam({p}, lr=0.01)",
    ))  # fmt: skip
    text = (
        f"opt = torch.optim.{optimizer.format(p=f'list({name}.parameters())')}\nfor _ in range(3):\n    opt.zero_grad()\n"
        f"    sum(v.pow(2).sum() for v in torch.utils._pytree.tree_flatten({name}({', '.join(a + '.detach()' for a in arguments)}))[0] if v is not None).backward()\n    opt.step()"
    )
    return [*steps, Step(text, f"optimizer {optimizer.split('(')[0]}")]


assert literals.DTYPES
