"""Steps from upstream's OpInfo: its arguments, with other dtypes, layouts and aliases than upstream gave them."""

from __future__ import annotations

import functools
import itertools
import warnings
import zlib
from typing import Any, Dict, List, Optional, Tuple

import torch
from opinfo_checks import entry_name, treated

from . import literals
from .grammar import Writer
from .program import Step

SAMPLES = 10
LARGEST = 200
# Device memory is shown, sparse or nested tensors are asked for, or the call decides by time, device or machine.
LEFT_OUT = (
    "sparse", "tensor_split", "torch.ops.aten", "nn.functional.multi_head", "_segment", "to_sparse", "jiterator", "_native_batch_norm_legit", "_batch_norm_with_update",
    "native_batch_norm", "empty", "new_empty", "linalg.lstsq.grad", "cdouble", "item", "_refs", "ops.nvprims", "pca_lowrank", "svd_lowrank", "equal",
    "linalg.eig", "linalg.svd", "svd", "linalg.ldl", "lu_unpack", "geqrf", "ormqr", "linalg.householder", "linalg.eigh", "symeig", "to", "narrow_copy_sym",
)  # fmt: skip


@functools.lru_cache(maxsize=None)
def entries() -> List[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return [
        op
        for op in op_db
        if not any(op.name == name or (len(name) > 5 and name in entry_name(op)) for name in LEFT_OUT)
        and not op.is_factory_function
        and not treated(op, "undefined")
    ]


@functools.lru_cache(maxsize=None)
def taken(position: int, dtype: torch.dtype, gradients: bool) -> List[Any]:
    op = entries()[position]
    torch.manual_seed(zlib.crc32(f"{entry_name(op)} {dtype}".encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), 4 * SAMPLES))
        except Exception:  # upstream's makers have their own conditions
            return []
    return found[:: max(1, len(found) // SAMPLES)]


def path_of(op: Any) -> str:
    """The function's name in Python; ``opinfo(…)`` where it has none."""
    found: Any = torch
    for part in op.name.split("."):
        found = getattr(found, part, None)
    if found is not None and found is op.op and not op.variant_test_name:
        return f"torch.{op.name}"
    return f"opinfo({op.name!r}, {op.variant_test_name!r})"


class Unprintable(Exception):
    """An argument has no source."""


class Sample:
    """One call: its arguments as source, tensors as names that earlier steps bind."""

    def __init__(self, writer: Writer, dtype: torch.dtype) -> None:
        self.writer, self.dtype, self.steps = writer, dtype, []  # type: ignore[var-annotated]
        self.names: Dict[int, str] = {}

    def source(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            inner = ", ".join(self.source(each) for each in value)
            if isinstance(value, tuple):
                return f"({inner},)" if value else "()"
            return f"[{inner}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self.source(each)}" for key, each in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({value.start}, {value.stop}, {value.step})"
        if value is Ellipsis:
            return "..."
        if isinstance(value, torch.dtype):
            return str(value)
        if isinstance(value, torch.memory_format):
            return str(value)
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            if isinstance(value, str) and ("cpu" in value or "cuda" in value):
                raise Unprintable
            return literals.of_value(value)
        raise Unprintable

    def tensor(self, value: torch.Tensor) -> str:
        if id(value) in self.names:
            return self.names[id(value)]
        if (
            value.layout != torch.strided
            or value.numel() > LARGEST
            or value.is_quantized
            or value.is_nested
            or type(value) not in (torch.Tensor, torch.nn.Parameter)
        ):
            raise Unprintable
        writer, rng = self.writer, self.writer.rng
        dtype = literals.of(value.dtype)
        if dtype not in literals.DTYPES:
            raise Unprintable
        same = writer.tensors(lambda t: t.shape == value.shape and t.dtype == value.dtype)
        integral = not (value.is_floating_point() or value.is_complex())
        if same and not integral and rng.random() < 0.25:
            name = str(rng.choice(same)[0])
            self.names[id(value)] = name
            return name
        if not integral and rng.random() < 0.04:
            dtype = writer.dtype()
        base, name = writer.fresh(), writer.fresh()
        content = value.detach().resolve_conj().resolve_neg()
        shape = tuple(content.shape)
        order = list(range(len(shape)))
        kind = rng.random()
        made = ""
        if kind < 0.2 and len(shape) > 1:
            rng.shuffle(order)
            content = content.permute(order)
            made = f".permute({[order.index(i) for i in range(len(shape))]})"
        elif kind < 0.3 and shape and shape[-1]:
            content = torch.stack([content, content], -1).flatten(-2)
            made = "[..., ::2]"
        flat = [literals.of_value(v) for v in content.flatten().tolist()]
        if dtype in literals.RANGES and content.is_floating_point():
            flat = [str(int(v)) if v == v and abs(v) < 100 else "1" for v in content.flatten().tolist()]
        elif content.is_complex() and dtype not in literals.COMPLEX:
            flat = [literals.of_value(v.real) for v in content.flatten().tolist()]
        self.steps.append(
            Step(
                f"{base} = {literals.tensor('[' + ', '.join(flat) + ']', len(flat), dtype, tuple(content.shape))}",
                "tensor",
                "exact",
            )
        )
        if made:
            self.steps.append(Step(f"{name} = {base}{made}", "view", "exact"))
        else:
            name = base
        if value.requires_grad and dtype in (*literals.FLOATING, *literals.COMPLEX):
            self.steps.append(Step(f"{name}.requires_grad_()", "requires_grad_"))
        self.names[id(value)] = name
        return name


def sample(writer: Writer) -> List[Step]:
    rng = writer.rng
    for _ in range(5):
        position = rng.randrange(len(entries()))
        op = entries()[position]
        dtypes = sorted((d for d in op.supported_dtypes("cuda") if literals.of(d) in literals.DTYPES), key=str)
        if not dtypes:
            continue
        dtype = rng.choice(dtypes)
        if rng.random() < 0.3 and torch.float32 in dtypes:
            dtype = torch.float32
        gradients = bool(
            op.supports_autograd
            and not treated(op, "random")
            and dtype in op.supported_backward_dtypes("cuda")
            and rng.random() < 0.4
        )
        found = taken(position, dtype, gradients)
        if not found:
            continue
        written = _written(writer, op, dtype, rng.choice(found), gradients)
        if written is not None:
            return written
    return writer.leaf()


def _written(writer: Writer, op: Any, dtype: torch.dtype, chosen: Any, gradients: bool) -> Optional[List[Step]]:
    made = Sample(writer, dtype)
    rng = writer.rng
    form = rng.random()
    inplace = op.get_inplace() is not None and form < 0.15
    try:
        arguments = [made.source(value) for value in (chosen.input, *chosen.args)]
        keywords = [f"{key}={made.source(value)}" for key, value in chosen.kwargs.items()]
    except Unprintable:
        return None
    name, callee = writer.fresh(), entry_name(op)
    kind = (
        "layout"
        if treated(op, "random")
        else ("pure" if rng.random() < 0.5 and "as_strided" not in op.name else "values")
    )
    path = path_of(op)
    if inplace and isinstance(chosen.input, torch.Tensor):
        method = f"{arguments[0]}.{op.name.split('.')[-1]}_"
        return [
            *made.steps,
            Step(
                f"{name} = {method}({', '.join(arguments[1:] + keywords)})",
                callee + " in place",
                "layout" if kind == "layout" else "values",
            ),
        ]
    if op.supports_out and form > 0.85 and kind != "layout":
        target = _target(writer, chosen)
        return [
            *made.steps,
            Step(f"{name} = {path}({', '.join([*arguments, *keywords, f'out={target}'])})", callee + " out="),
        ]
    text = f"{name} = {path}({', '.join(arguments + keywords)})"
    if kind == "layout":
        text = f"torch.manual_seed(5)\nwith torch.no_grad():\n    {text}"
    steps = [*made.steps, Step(text, callee, kind)]
    wanted = [n for s in made.steps if s.callee == "requires_grad_" for n in s.uses]
    if gradients and wanted and kind != "layout":
        steps.append(Step(
            f"{writer.fresh()} = torch.autograd.grad(sum(torch.view_as_real(v).sum() if v.is_complex() else (v * v).sum() for v in torch.utils._pytree.tree_flatten({name})[0] if isinstance(v, torch.Tensor) and v.requires_grad), "
            f"[{', '.join(wanted)}], allow_unused=True)", f"gradient of {callee}"))  # fmt: skip
    return steps


def _target(writer: Writer, chosen: Any) -> str:
    kind = writer.rng.random()
    first: Tuple[Any, ...] = (chosen.input,)
    dtype = literals.of(first[0].dtype) if isinstance(first[0], torch.Tensor) else "float32"
    if kind < 0.5:
        return f"torch.empty(0, dtype=torch.{dtype}, device=device)"
    if kind < 0.75:
        return str(writer.one()[0]) if writer.tensors() else "torch.empty(0, device=device)"
    return f"torch.empty(0, dtype=torch.{writer.dtype()}, device=device)"
