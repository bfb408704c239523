"""What a step may be. A writer looks at the CPU's pool of tensors and writes the next step as source.

Most steps are meant to be valid, some are not: what both devices refuse belongs to the program as well.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

import torch

from . import literals
from .literals import numel
from .pen import Pen, broadcasts, moderate, needed
from .program import Step, is_leaf
from .vocabulary import (
    ACTIVATIONS,
    BINARY,
    BINARY_INPLACE,
    COMMON,
    DTYPE_ARGUMENT,
    KEEPDIM,
    LISTS_OF_DIMS,
    LOSSES,
    NEED_DIM,
    NO_OUT,
    OPERATORS,
    REDUCTIONS,
    TENSOR_METHODS_INPLACE,
    UNARY,
    WITHOUT_DIM,
)


class Writer(Pen):
    """A writer looks at the CPU's pool of tensors; each family is a method."""

    # Families

    def unary(self) -> List[Step]:
        operand, tensor = self.one()
        function = self.rng.choice(UNARY)
        return self.call(f"torch.{function}", operand, tensor, function not in NO_OUT)

    def activation(self) -> List[Step]:
        operand, tensor = self.one(lambda t: t.is_floating_point())
        return self.call(self.rng.choice(ACTIVATIONS), operand, tensor, False)

    def binary(self) -> List[Step]:
        left, tensor = self.one()
        function = self.rng.choice(BINARY if self.maybe(0.6) else COMMON)
        kind = self.rng.random()
        if kind < 0.7:
            arguments = f"{left}, {self.partner(tensor)[0]}"
        elif kind < 0.93:
            arguments = f"{left}, {self.scalar()}"
        else:
            arguments = f"{self.scalar()}, {left}"
        if function in ("add", "sub") and self.maybe(0.15):
            arguments += f", alpha={self.small()}"
        if function == "div" and self.maybe(0.4):
            arguments += f", rounding_mode={self.rng.choice(('trunc', 'floor'))!r}"
        return self.call(f"torch.{function}", arguments, tensor, function not in NO_OUT)

    def operator(self) -> List[Step]:
        left, tensor = self.one()
        other = self.scalar() if self.maybe(0.4) else self.partner(tensor)[0]
        sides = (left, other) if self.maybe(0.75) else (other, left)
        symbol = self.rng.choice(OPERATORS[:7] if self.maybe(0.7) else OPERATORS)
        name = self.fresh()
        return [Step(f"{name} = {sides[0]} {symbol} {sides[1]}", f"operator {symbol}", "pure")]

    def inplace(self) -> List[Step]:
        target, tensor = self.one()
        name = self.fresh()
        kind = self.rng.random()
        if kind < 0.3:
            method, arguments = self.rng.choice(TENSOR_METHODS_INPLACE), ""
        elif kind < 0.75:
            method = self.rng.choice(BINARY_INPLACE)
            arguments = self.partner(tensor)[0] if self.maybe(0.65) else self.scalar()
        else:
            low = self.one(lambda t: broadcasts(t.shape, tensor.shape))[0]
            method, arguments = self.rng.choice((
                ("clamp_", f"{self.small()}, {self.small()}"), ("clamp_min_", self.small()), ("fill_", self.scalar()),
                ("masked_fill_", f"{low} > 0, {self.scalar()}"), ("lerp_", f"{self.partner(tensor)[0]}, {self.small()}"),
                ("addcmul_", f"{self.partner(tensor)[0]}, {low}"), ("addcdiv_", f"{self.partner(tensor)[0]}, {low}"),
                ("cumsum_", str(self.dim(tensor))), ("tril_", ""), ("triu_", "1"), ("clamp_", f"min={low}"),
                ("transpose_", f"{self.dim(tensor)}, {self.dim(tensor)}"), ("renorm_", "2, 0, 1.0"), ("swapaxes_", "0, -1"),
                ("put_", f"torch.tensor([0], device=device), {target}.reshape(-1)[:1]"), ("fill_", self.one(lambda t: t.dim() == 0)[0]),
                ("set_", low), ("unsqueeze_", str(self.dim(tensor))), ("copy_", low), ("fill_diagonal_", self.small()),
            ))  # fmt: skip
        return [Step(f"{name} = {target}.{method}({arguments})", method)]

    def augmented(self) -> List[Step]:
        """``a[i] += b`` and assignments to a place."""
        target, tensor = self.one(lambda t: t.dim() > 0)
        place = self.place(tensor)
        value = self.one(lambda t: t.dim() == 0 or t.shape == tensor.shape)[0] if self.maybe(0.4) else self.scalar()
        symbol = self.rng.choice(("=", "=", "=", "+=", "*=", "/="))
        if self.maybe(0.25):
            return [
                Step(
                    f"{target} {symbol if symbol != '=' else '+='} {value}"
                    if "[" not in target
                    else f"{target}.add_({value})",
                    "augmented",
                )
            ]
        return [Step(f"{target}[{place}] {symbol} {value}", f"setitem {symbol}")]

    def place(self, tensor: torch.Tensor) -> str:
        """What stands in brackets."""
        parts, rng = [], self.rng
        for size in tensor.shape[: rng.randint(1, max(tensor.dim(), 1))]:
            kind = rng.random()
            if kind < 0.3:
                parts.append(
                    f"{rng.choice(('', '1', '0', '-2'))}:{rng.choice(('', '2', '-1', str(size)))}{rng.choice(('', ':2', ':3'))}"
                )
            elif kind < 0.5 and size:
                parts.append(str(rng.randint(-size, size - 1)))
            elif kind < 0.6:
                parts.append("None")
                parts.append(":")
            elif kind < 0.75 and size:
                parts.append(
                    f"torch.tensor({[rng.randint(-size, size - 1) for _ in range(rng.choice((1, 2, 2, 3)))]}, device=device)"
                )
            elif kind < 0.8 and size:
                parts.append(repr([rng.randint(-size, size - 1) for _ in range(2)]))
            elif kind < 0.86 and size:
                parts.append(f"torch.tensor({[rng.random() < 0.5 for _ in range(size)]}, device=device)")
            else:
                parts.append(":")
        if rng.random() < 0.1:
            parts.insert(0, "...")
        return ", ".join(parts) or "..."

    def getitem(self) -> List[Step]:
        operand, tensor = self.one(lambda t: t.dim() > 0)
        name = self.fresh()
        if self.maybe(0.15):
            mask = self.one(lambda t: t.shape == tensor.shape)[0]
            return [Step(f"{name} = {operand}[{mask} > 0]", "getitem mask", "exact")]
        return [Step(f"{name} = {operand}[{self.place(tensor)}]", "getitem", "exact")]

    def view(self) -> List[Step]:
        operand, tensor = self.one()
        rng, rank, name = self.rng, tensor.dim(), self.fresh()
        size = list(tensor.shape)
        some = self.dim(tensor)
        other = self.dim(tensor)
        order = list(range(rank))
        rng.shuffle(order)
        step = rng.randint(1, 3)
        extent = size[some] if rank else 1
        choices = [
            ".t()", ".mT", ".T", f".transpose({some}, {other})", f".permute({order})", ".flatten()", ".view(-1)", ".reshape(-1)",
            f".unsqueeze({some})", ".squeeze()", f".squeeze({some})", f".select({some}, 0)", f".narrow({some}, 0, {max(extent - 1, 0)})",
            f".unfold({some}, {max(1, min(2, extent))}, {step})", ".diagonal()", f".movedim({some}, {other})", ".conj()", ".imag",
            ".real", ".detach()", f".expand({[2, *size]})", ".view_as_real()" if False else ".mH", f".chunk(2, {some})", f".split(1, {some})",
            f".unbind({some})", f".view({self.reshaped(size)})", f".reshape({self.reshaped(size)})", f".view(torch.{self.dtype()})",
            f".as_strided({size}, {literals.contiguous_strides(size)})", ".ravel()", f".swapaxes({some}, {other})", f".tensor_split(2, {some})",
            ".diagonal_copy()" if False else ".adjoint()", f".unflatten({some}, (-1, 1))", f".expand_as({operand})", ".resolve_neg()",
        ]  # fmt: skip
        text = f"{operand}{rng.choice(choices)}"
        if self.maybe(0.08):
            text = rng.choice((f"torch._neg_view({operand})", f"torch.view_as_real({operand})", f"torch.view_as_complex({operand})",
                               f"torch.broadcast_to({operand}, {[2, *size]})", f"torch.block_diag({operand})"))  # fmt: skip
        return [Step(f"{name} = {text}", "view", "exact")]

    def reshaped(self, size: Sequence[int]) -> List[int]:
        total = numel(size)
        if self.maybe(0.3):
            return [total, 1]
        for first in self.rng.sample((2, 3, 4, 5), 4):
            if total % first == 0:
                return [first, total // first]
        return [-1, 1]

    def ternary(self) -> List[Step]:
        first, tensor = self.one()
        second, third = self.partner(tensor)[0], self.partner(tensor)[0]
        function, arguments = self.rng.choice((
            ("addcmul", f"{first}, {second}, {third}, value={self.small()}"), ("addcdiv", f"{first}, {second}, {third}"),
            ("lerp", f"{first}, {second}, {self.small()}"), ("lerp", f"{first}, {second}, {third}"),
            ("where", f"{first} > 0, {second}, {third}"), ("where", f"{first} != 0, {second}, {self.scalar()}"),
            ("where", f"{first} == {second}, {self.scalar()}, {self.scalar()}"),
            ("clamp", f"{first}, {self.small()}, {self.small()}"), ("clamp", f"{first}, {second}, {third}"),
            ("clamp", f"{first}, max={self.scalar()}"), ("clamp", f"{first}, min={second}"), ("clip", f"{first}, {self.scalar()}"),
            ("nan_to_num", f"{first}, 1.0, 2.0"), ("masked_fill", f"{first}, {second} > 0, {self.scalar()}"),
            ("isin", f"{first}, {second}"), ("addcmul", f"{first}, {second}, {third}"), ("allclose", f"{first}, {first}"),
        ))  # fmt: skip
        return self.call(
            f"torch.{function}",
            arguments,
            tensor,
            function not in ("masked_fill", "allclose", "where") or self.maybe(0.3),
        )

    def reduction(self) -> List[Step]:
        operand, tensor = self.one()
        rng = self.rng
        function = rng.choice(REDUCTIONS)
        arguments = [operand]
        if function in NEED_DIM or (function not in WITHOUT_DIM and self.maybe(0.65)):
            several = function in LISTS_OF_DIMS and tensor.dim() > 1 and self.maybe(0.35)
            if several:
                arguments.append(f"dim={rng.sample(range(tensor.dim()), rng.randint(1, tensor.dim()))}")
            else:
                arguments.append(f"dim={self.dim(tensor)}")
            if function in KEEPDIM and self.maybe(0.3):
                arguments.append("keepdim=True")
        if function in DTYPE_ARGUMENT and self.maybe(0.2):
            arguments.append(f"dtype=torch.{self.dtype()}")
        if function in ("norm", "linalg.vector_norm") and self.maybe(0.5):
            arguments.insert(1, rng.choice(("1", "2", "inf", "-inf", "0", "3", "0.5")))
        if function in ("std", "var") and self.maybe(0.3):
            arguments.append(f"correction={rng.randint(0, 2)}")
        if function == "sort":
            arguments.append(f"descending={self.maybe(0.5)}, stable=True")
        if function == "argsort":
            arguments.append("stable=True")
        if function == "unique":
            arguments.append("return_inverse=True, return_counts=True")
        out = function in (
            "sum",
            "mean",
            "prod",
            "amax",
            "amin",
            "any",
            "all",
            "nansum",
            "std",
            "var",
            "logsumexp",
            "norm",
            "cumsum",
            "cumprod",
            "argmax",
            "logcumsumexp",
        )
        return self.call(
            f"torch.{function}", ", ".join(arguments), tensor, out, "pure" if function != "mode" else "pure"
        )

    def ordering(self) -> List[Step]:
        operand, tensor = self.one(lambda t: t.dim() > 0 and t.numel() > 0)
        dim, size = self.dim(tensor), max(1, tensor.shape[-1] if tensor.dim() else 1)
        along = tensor.shape[dim] if tensor.dim() else 1
        rng = self.rng
        text, callee = rng.choice((
            (f"torch.topk({operand}, {rng.randint(0, along)}, {dim}, {self.maybe(0.5)})[0]", "topk"),
            (f"torch.kthvalue({operand}, {rng.randint(1, max(along, 1))}, {dim})[0]", "kthvalue"),
            (f"torch.median({operand}, {dim})[0]", "median"), (f"torch.nanmedian({operand}, {dim})[0]", "nanmedian"),
            (f"torch.median({operand})", "median"), (f"torch.mode({operand}, {dim})[0]", "mode"),
            (f"torch.sort({operand}, {dim})[0]", "sort"), (f"torch.searchsorted(torch.arange({size}, device=device), {operand})", "searchsorted"),
            (f"torch.bucketize({operand}, torch.tensor([0.0, 1.0, 2.0], device=device))", "bucketize"),
            (f"torch.histc({operand}, 4, -2, 2)", "histc"), (f"torch.quantile({operand}, 0.3)", "quantile"),
            (f"torch.nanquantile({operand}, 0.6, {dim})", "nanquantile"), (f"torch.unique_consecutive({operand})", "unique_consecutive"),
            (f"torch.unique({operand}, dim={dim})", "unique"), (f"torch.nonzero({operand})", "nonzero"), (f"torch.argwhere({operand})", "argwhere"),
            (f"torch.bincount({operand})", "bincount"), (f"torch.count_nonzero({operand}, {dim})", "count_nonzero"),
            (f"torch.cdist({operand}, {operand})", "cdist"), (f"torch.trapezoid({operand})", "trapezoid"), (f"torch.cov({operand})", "cov"),
        ))  # fmt: skip
        return [Step(f"{self.fresh()} = {text}", callee, "pure")]

    def indexing(self) -> List[Step]:
        operand, tensor = self.one(lambda t: t.dim() > 0 and t.numel() > 0)
        if tensor.dim() == 0 or tensor.numel() == 0:
            return self.leaf()
        rng, dim = self.rng, self.dim(tensor)
        along = tensor.shape[dim]
        count = rng.randint(1, along)
        flat, steps = self.long((count,), along)
        slab = list(tensor.shape)
        slab[dim] = count
        source = self.leaf(slab, literals.of(tensor.dtype) if self.maybe(0.9) else None)
        values = [n for s in source for n in s.binds][-1]
        full, more = self.long(slab, along)
        reduce = rng.choice(("sum", "prod", "mean", "amax", "amin"))
        scalar = self.small()
        name = self.fresh()
        under = "_" if self.maybe(0.45) else ""
        texts = [
            (f"{operand}.index_select({dim}, {flat})", "index_select"), (f"{operand}.gather({dim}, {full})", "gather"),
            (f"{operand}.scatter{under}({dim}, {full}, {values})", "scatter"), (f"{operand}.scatter{under}({dim}, {full}, {scalar})", "scatter"),
            (f"{operand}.scatter_add{under}({dim}, {full}, {values})", "scatter_add"),
            (f"{operand}.scatter_reduce{under}({dim}, {full}, {values}, {reduce!r}, include_self={self.maybe(0.5)})", f"scatter_reduce {reduce}"),
            (f"{operand}.index_add{under}({dim}, {flat}, {values})", "index_add"), (f"{operand}.index_copy{under}({dim}, {flat}, {values})", "index_copy"),
            (f"{operand}.index_fill{under}({dim}, {flat}, {scalar})", "index_fill"),
            (f"{operand}.index_reduce{under}({dim}, {flat}, {values}, {rng.choice(('prod', 'mean', 'amax', 'amin'))!r})", "index_reduce"),
            (f"{operand}.take({flat})", "take"), (f"{operand}.index_put{under}(({flat},), {values}[:1], accumulate={self.maybe(0.6)})", "index_put"),
            (f"torch.take_along_dim({operand}, {full}, {dim})", "take_along_dim"), (f"{operand}.masked_select({operand} != 0)", "masked_select"),
            (f"{operand}.masked_scatter{under}({operand} != 0, {operand})", "masked_scatter"), (f"{operand}.put{under}({flat}, {flat}.to({operand}.dtype))", "put"),
            (f"torch.index_select({operand}, {dim}, {flat}, out={operand})", "index_select out="),
            (f"torch.gather({operand}, {dim}, {full}, out=torch.empty(0, dtype={operand}.dtype, device=device))", "gather out="),
            (f"F.embedding({flat}, {operand})", "embedding"), (f"F.one_hot({flat})", "one_hot"), (f"{operand}.select_scatter({values}.select({dim}, 0), {dim}, 0)", "select_scatter"),
            (f"{operand}.slice_scatter({values}, {dim}, 0, {count})", "slice_scatter"), (f"torch.diagonal_scatter({operand}, {operand}.diagonal())", "diagonal_scatter"),
            (f"torch.repeat_interleave({operand}, 2, {dim})", "repeat_interleave"), (f"torch.repeat_interleave({operand}, {flat}[:1], {dim})", "repeat_interleave"),
        ]  # fmt: skip
        text, callee = rng.choice(texts)
        everything = [
            *steps,
            *source,
            *more,
            Step(f"{name} = {text}", callee + ("" if "_(" not in text else " in place")),
        ]
        return needed(everything)

    def rearranged(self) -> List[Step]:
        operand, tensor = self.one()
        other = self.one(lambda t: t.shape == tensor.shape)[0]
        dim, rng = self.dim(tensor), self.rng
        any_one = self.one()[0]
        # A result that is resized while it is an argument has no defined content.
        memory = {value.untyped_storage()._cdata for value in (tensor, self.side.pool()[other])}
        apart = self.tensors(lambda t: t.untyped_storage()._cdata not in memory)
        elsewhere = rng.choice(apart)[0] if apart else "torch.empty(0, device=device)"
        text, callee = rng.choice((
            (f"torch.cat([{operand}, {other}], {dim})", "cat"), (f"torch.stack([{operand}, {other}, {operand}], {dim})", "stack"),
            (f"torch.cat([{operand}, {any_one}], {dim})", "cat"), (f"F.pad({operand}, (1, 2))", "pad"), (f"F.pad({operand}, (1, -1), value=2)", "pad"),
            (f"F.pad({operand}, (1, 1), mode={rng.choice(('reflect', 'replicate', 'circular'))!r})", "pad mode"),
            (f"torch.roll({operand}, 1, {dim})", "roll"), (f"torch.flip({operand}, [{dim}])", "flip"), (f"torch.rot90({operand})", "rot90"),
            (f"{operand}.repeat({[2] * max(tensor.dim(), 1)})", "repeat"), (f"torch.tile({operand}, (2,))", "tile"), (f"torch.tril({operand})", "tril"),
            (f"torch.triu({operand}, -1)", "triu"), (f"torch.diag_embed({operand})", "diag_embed"), (f"torch.diag({operand})", "diag"),
            (f"torch.meshgrid({operand}, {any_one}, indexing='ij')", "meshgrid"), (f"torch.kron({operand}, {other})", "kron"), (f"torch.hstack([{operand}, {other}])", "hstack"),
            (f"torch.vander({operand}, 3)", "vander"), (f"torch.combinations({operand})", "combinations"), (f"torch.cartesian_prod({operand}, {any_one})", "cartesian_prod"),
            (f"torch.broadcast_tensors({operand}, {any_one})", "broadcast_tensors"), (f"torch.constant_pad_nd({operand}, (1, 0), {self.scalar()})", "constant_pad_nd"),
            (f"torch.cat([{operand}, {other}], {dim}, out={elsewhere})", "cat out="), (f"torch.stack([{operand}, {other}], out={elsewhere})", "stack out="),
            (f"torch.full_like({operand}, {self.scalar()})", "full_like"), (f"{operand}.new_full((2, 3), {self.scalar()})", "new_full"),
            (f"torch.arange({self.small()}, 5, device=device, dtype=torch.{self.dtype()})", "arange"), (f"torch.linspace({self.small()}, 4, 5, device=device)", "linspace"),
            (f"torch.full((2, 2), {self.scalar()}, device=device)", "full"), (f"torch.pixel_shuffle({operand}, 2)", "pixel_shuffle"), (f"torch.trace({operand})", "trace"),
        ))  # fmt: skip
        return [Step(f"{self.fresh()} = {text}", callee, "pure" if "out=" not in callee else "values")]

    def copying(self) -> List[Step]:
        operand, tensor = self.one()
        rng, name = self.rng, self.fresh()
        other = self.one(lambda t: broadcasts(t.shape, tensor.shape))[0]
        format_ = rng.choice(("contiguous_format", "preserve_format", "channels_last"))
        to = self.dtype() if self.maybe(0.7) else "float16"
        text, callee, kind = rng.choice((
            (f"{operand}.clone()", "clone", "exact"), (f"{operand}.clone(memory_format=torch.{format_})", "clone", "exact"),
            (f"{operand}.contiguous()", "contiguous", "exact"), (f"{operand}.contiguous(memory_format=torch.{format_})", "contiguous", "exact"),
            (f"{operand}.to(torch.{to})", "to dtype", "exact"), (f"{operand}.to(torch.{to})", "to dtype", "exact"), (f"{operand}.type(torch.{to})", "to dtype", "exact"),
            (f"{operand}.to(torch.{to}, copy=True, memory_format=torch.{format_})", "to dtype", "exact"),
            (f"{operand}.to('cpu', copy=True).to(device, copy=True)", "round trip", "exact"),
            (f"{operand}.to('cpu', non_blocking=True, copy=True).to(device, non_blocking=True, copy=True)", "round trip", "exact"),
            (f"{operand}.to('cpu', copy=True).to(device, torch.{to}, copy=True)", "round trip", "exact"),
            (f"{operand}.to('cpu', torch.{to}, copy=True).to(device, copy=True)", "round trip", "exact"),
            (f"copy.deepcopy({operand})", "deepcopy", "exact"), (f"pickle.loads(pickle.dumps({operand}))", "pickle", "exact"),
            (f"{operand}.copy_({other})", "copy_", "exact"), (f"{operand}.copy_({other}.to('cpu', copy=True), non_blocking=True)", "copy_ from the host", "exact"),
            (f"torch.empty_like({operand}).copy_({other})", "copy_", "exact"), (f"{operand}.new_zeros(({operand}.shape)).copy_({operand})", "copy_", "exact"),
            (f"{operand}.as_subclass(torch.Tensor)", "as_subclass", "exact"), (f"torch.as_tensor({operand})", "as_tensor", "exact"), (f"{operand}.data", "data", "exact"),
            (f"torch.asarray({operand}, copy=True)", "asarray", "exact"), (f"{operand}.half()", "to dtype", "exact"), (f"{operand}.float()", "to dtype", "exact"),
            (f"{operand}.bool()", "to dtype", "exact"), (f"{operand}.byte()", "to dtype", "exact"), (f"{operand}.numpy(force=True).copy()[()] * 1", "numpy", "exact") if False else (f"{operand}.bfloat16()", "to dtype", "exact"),
        ))  # fmt: skip
        if self.maybe(0.15):
            name = self.fresh("h")
            text = rng.choice((f"{operand}.to('cpu', copy=True)", f"{operand}.tolist()", f"{operand}.reshape(-1)[:1].sum().item()", f"{operand}.to('cpu', torch.{to}, copy=True)",
                               f"{operand}.is_contiguous()", f"bool({operand})", f"int({operand})", f"repr({operand}.detach().to('cpu', copy=True))", f"len({operand})",
                               f"{operand}.is_set_to({other})", f"{operand}.is_nonzero()", f"torch.result_type({operand}, {other})", f"{operand}.element_size()"))  # fmt: skip
            callee = "to the host"
        return [Step(f"{name} = {text}", callee, kind)]

    def products(self) -> List[Step]:
        rng = self.rng
        dtype = (
            self.favourite
            if self.favourite and self.maybe(0.7)
            else rng.choice(literals.FLOATING + literals.COMPLEX + ("int64",))
        )
        m, k, n, b = (rng.choice((0, 1, 2, 3, 5)) if self.maybe(0.05) else rng.randint(1, 5) for _ in range(4))
        shapes, text, callee = rng.choice((
            ([(m, k), (k, n)], "torch.mm({0}, {1})", "mm"), ([(m, k), (k, n)], "{0} @ {1}", "matmul"), ([(b, m, k), (b, k, n)], "torch.bmm({0}, {1})", "bmm"),
            ([(b, m, k), (k, n)], "{0} @ {1}", "matmul"), ([(k,), (k,)], "torch.dot({0}, {1})", "dot"), ([(k,), (k,)], "torch.vdot({0}, {1})", "vdot"),
            ([(m, k), (k,)], "torch.mv({0}, {1})", "mv"), ([(m, n), (m, k), (k, n)], "torch.addmm({0}, {1}, {2}, beta={s}, alpha={u})", "addmm"),
            ([(n,), (m, k), (k, n)], "torch.addmm({0}, {1}, {2})", "addmm"), ([(b, m, n), (b, m, k), (b, k, n)], "torch.baddbmm({0}, {1}, {2}, beta={s})", "baddbmm"),
            ([(m,), (m, k), (k,)], "torch.addmv({0}, {1}, {2})", "addmv"), ([(m, n), (m,), (n,)], "torch.addr({0}, {1}, {2})", "addr"),
            ([(m, k), (n, k)], "F.linear({0}, {1})", "linear"), ([(b, m, k), (n, k), (n,)], "F.linear({0}, {1}, {2})", "linear"),
            ([(m,), (n,)], "torch.outer({0}, {1})", "outer"), ([(b, m, k), (b, k, n)], "torch.einsum('bij,bjk->ik', {0}, {1})", "einsum"),
            ([(m, k), (k, n), (n, m)], "torch.linalg.multi_dot([{0}, {1}, {2}])", "multi_dot"), ([(m, k), (n, k)], "torch.inner({0}, {1})", "inner"),
            ([(m, k), (k, n)], "torch.tensordot({0}, {1}, 1)", "tensordot"), ([(m, n), (b, m, k), (b, k, n)], "torch.addbmm({0}, {1}, {2})", "addbmm"),
            ([(m, n), (m, k), (k, n)], "{0}.addmm_({1}, {2})", "addmm_"), ([(b, m, n), (b, m, k), (b, k, n)], "{0}.baddbmm_({1}, {2}, alpha={u})", "baddbmm_"),
            ([(m, n), (m, k), (k, n)], "torch.mm({1}, {2}, out={0})", "mm out="), ([(m, m)], "torch.matrix_power({0}, 3)", "matrix_power"),
            ([(m, 3), (m, 3)], "torch.linalg.cross({0}, {1})", "cross"), ([(b, m, k), (b, m, n)], "{0}.mT @ {1}", "matmul"), ([(m, k), (m, n)], "{0}.t().mm({1})", "mm"),
            ([(m, k), (n, k)], "torch.cdist({0}, {1})", "cdist"), ([(m, n), (m, k), (k, n)], "torch._addmm_activation({0}, {1}, {2})" if False else "torch.addmm({0}, {1}, {2}, beta=0)", "addmm"),
        ))  # fmt: skip
        return self.over(shapes, text, callee, dtype)

    def over(
        self,
        shapes: Sequence[Sequence[int]],
        text: str,
        callee: str,
        dtype: str,
        kind: str = "pure",
        name: Optional[str] = None,
    ) -> List[Step]:
        """A call of tensors of these shapes, from the pool where it has them."""
        steps: List[Step] = []
        names = []
        for shape in shapes:
            there = self.tensors(
                lambda t, s=shape: tuple(t.shape) == tuple(s) and literals.of(t.dtype) == dtype and moderate(t)
            )
            # Of a target whose elements share memory nothing is promised.
            target = callee.endswith("_") and not names
            if there and self.maybe(0.4) and not target:
                names.append(self.rng.choice(there)[0])
            else:
                made = self.leaf(shape, dtype if self.maybe(0.95) else None, plain=target, tame=True)
                steps += made
                names.append([n for s in made for n in s.binds][-1])
        if "out=" in callee or callee.endswith("_"):
            kind = "values"
        name = name or self.fresh()
        return [*steps, Step(f"{name} = {text.format(*names, s=self.small(), u=self.small())}", callee, kind)]

    def network(self) -> List[Step]:
        rng = self.rng
        dtype = (
            self.favourite
            if self.favourite in literals.FLOATING and self.maybe(0.7)
            else rng.choice(("float32", "float32", "float64", "float16", "bfloat16", "complex64"))
        )
        n, c, o, h, w = rng.randint(1, 2), rng.randint(1, 4), rng.randint(1, 4), rng.randint(3, 6), rng.randint(3, 6)
        groups = rng.choice((1, 1, 1, c))
        o = o * groups if groups > 1 else o
        stride = rng.randint(1, 2)
        padding = rng.choice(("0", "1", "2", "'same'" if stride == 1 else "1"))
        weight = (o, c // groups, 3, 3)
        choices: List[Tuple[List[Tuple[int, ...]], str, str]] = [
            ([(n, c, h, w), weight], f"F.conv2d({{0}}, {{1}}, stride={stride}, padding={padding}, groups={groups})", "conv2d"),
            ([(n, c, h, w), weight, (o,)], f"F.conv2d({{0}}, {{1}}, {{2}}, groups={groups}, dilation={rng.choice((1, 1, 2))}, padding=1)", "conv2d"),
            ([(n, c, w), (o, c // groups, 2), (o,)], f"F.conv1d({{0}}, {{1}}, {{2}}, {stride}, groups={groups})", "conv1d"),
            ([(n, c, 3, 4, 3), (o, c // groups, 2, 2, 2)], f"F.conv3d({{0}}, {{1}}, groups={groups})", "conv3d"),
            ([(n, c, h, w), (c, o, 3, 3)], f"F.conv_transpose2d({{0}}, {{1}}, stride={stride}, output_padding={stride - 1})", "conv_transpose2d"),
            ([(n, c, w), (c, o, 2)], f"F.conv_transpose1d({{0}}, {{1}}, stride={stride})", "conv_transpose1d"),
            ([(n, c, h, w)], f"F.max_pool2d({{0}}, 2, {stride})", "max_pool2d"), ([(n, c, h, w)], f"F.avg_pool2d({{0}}, 2, padding={rng.randint(0, 1)}, ceil_mode={self.maybe(0.5)})", "avg_pool2d"),
            ([(n, c, w)], "F.max_pool1d({0}, 2).clone()", "max_pool1d"), ([(n, c, w)], "F.avg_pool1d({0}, 2)", "avg_pool1d"), ([(n, c, h, w)], "F.adaptive_avg_pool2d({0}, 2)", "adaptive_avg_pool2d"),
            ([(n, c, h, w)], "F.adaptive_max_pool2d({0}, (2, 3), return_indices=True)", "adaptive_max_pool2d"), ([(n, c, h, w)], "F.lp_pool2d({0}, 2, 2)", "lp_pool2d"),
            ([(n, c, h, w), (c,), (c,)], "F.batch_norm({0}, None, None, {1}, {2}, training=True)", "batch_norm"), ([(n, c, h), (c,), (c,)], "F.batch_norm({0}, {1}, {2}.abs() + 1, training=False)", "batch_norm"),
            ([(n, c, w), (w,), (w,)], f"F.layer_norm({{0}}, ({w},), {{1}}, {{2}})", "layer_norm"), ([(n, c, h, w)], f"F.group_norm({{0}}, {groups})", "group_norm"),
            ([(n, c, h, w)], "F.instance_norm({0})", "instance_norm"), ([(n, c, w)], f"F.rms_norm({{0}}, ({w},))", "rms_norm"), ([(n, c, h, w)], "F.local_response_norm({0}, 2)", "local_response_norm"),
            ([(n, c, h, w)], f"F.interpolate({{0}}, scale_factor=2, mode={rng.choice(('nearest', 'bilinear', 'bicubic', 'area', 'nearest-exact'))!r})", "interpolate"),
            ([(n, c, h, w), (n, 3, 2, 2)], f"F.grid_sample({{0}}, {{1}}, mode={rng.choice(('bilinear', 'nearest', 'bicubic'))!r}, align_corners={self.maybe(0.5)})", "grid_sample"),
            ([(n, c, h, w)], "F.unfold({0}, 2)", "unfold"), ([(n, c * 4, (h - 1) * (w - 1))], f"F.fold({{0}}, ({h}, {w}), 2)", "fold"), ([(n, 2, 3)], f"F.affine_grid({{0}}, ({n}, {c}, {h}, {w}), align_corners=False)", "affine_grid"),
            ([(n, 2, h, w), (n, 2, h, w), (n, 2, h, w)], f"F.scaled_dot_product_attention({{0}}, {{1}}, {{2}}, is_causal={self.maybe(0.4)})", "scaled_dot_product_attention"),
            ([(n, 2, h, w), (n, 2, c, w), (n, 2, c, w), (h, c)], "F.scaled_dot_product_attention({0}, {1}, {2}, attn_mask={3})", "scaled_dot_product_attention"),
            ([(n, c)], "F.softmax({0}, -1)", "softmax"), ([(n, c, h)], f"F.log_softmax({{0}}, {rng.randint(0, 2)})", "log_softmax"), ([(n, c)], "F.softmin({0}, 0)", "softmin"),
            ([(h, c), (h,)], f"F.cross_entropy({{0}}, {{1}}.abs().nan_to_num(0, 5, 5).clamp(max=99).long() % {c}, label_smoothing={rng.choice((0.0, 0.1))})", "cross_entropy"), ([(h, c), (h,)], f"F.nll_loss({{0}}, {{1}}.abs().nan_to_num(0, 5, 5).clamp(max=99).long() % {c})", "nll_loss"),
            ([(h, c), (h, c)], "F.cross_entropy({0}, F.softmax({1}, 1))", "cross_entropy"), ([(h, c), (h,)], f"F.multi_margin_loss({{0}}, {{1}}.abs().nan_to_num(0, 5, 5).clamp(max=99).long() % {c})", "multi_margin_loss"),
            ([(h, c), (h, c)], f"{rng.choice(LOSSES)}({{0}}, {{1}})", "loss"), ([(h, c), (h, c)], f"F.mse_loss({{0}}, {{1}}, reduction={rng.choice(('sum', 'none'))!r})", "mse_loss"), ([(h, c), (h, c), (h, c)], "F.triplet_margin_loss({0}, {1}, {2})", "triplet_margin_loss"),
            ([(5, c), (h,)], "F.embedding({1}.abs().nan_to_num(0, 5, 5).clamp(max=99).long() % 5, {0}, padding_idx=1)", "embedding"), ([(5, c), (4,)], f"F.embedding_bag({{1}}.abs().nan_to_num(0, 5, 5).clamp(max=99).long() % 5, {{0}}, torch.tensor([0, 2], device=device), mode={rng.choice(('sum', 'mean', 'max'))!r})", "embedding_bag"),
            ([(n, c, h), (o, c, w), (o,)], "F.bilinear({0}, {0}, torch.ones(2, {0}.shape[-1], {0}.shape[-1], dtype={0}.dtype, device=device))", "bilinear"), ([(n, c)], "F.dropout({0}, 0.0, True)", "dropout"), ([(n, c)], "F.gumbel_softmax({0}, hard=False).sum(-1).round()", "gumbel_softmax"),
            ([(n, c, h, w), (c,)], "F.prelu({0}, {1})", "prelu"), ([(n, c, h, w)], "F.channel_shuffle({0}, 1)", "channel_shuffle"), ([(3, n, 4), (n,)], "F.ctc_loss(F.log_softmax({0}, -1), torch.tensor([[1, 2]] * %d, device=device), torch.tensor([3] * %d, device=device), torch.tensor([2] * %d, device=device))" % (n, n, n), "ctc_loss"),
        ]  # fmt: skip
        shapes, text, callee = rng.choice(choices)
        return self.over(shapes, text, callee, dtype)

    def fourier(self) -> List[Step]:
        rng = self.rng
        dtype = rng.choice(("float32", "float64", "complex64", "complex128", "float16", "complex32", "int64"))
        size = rng.choice((2, 4, 4, 8, 3))
        function = rng.choice(
            (
                "fft",
                "ifft",
                "rfft",
                "irfft",
                "hfft",
                "ihfft",
                "fft2",
                "ifft2",
                "rfft2",
                "irfft2",
                "fftn",
                "rfftn",
                "fftshift",
            )
        )
        more = rng.choice(
            (
                "",
                "",
                ", norm='ortho'",
                f", {rng.choice((2, 4, 8))}" if not function.endswith(("2", "n", "shift")) else "",
            )
        )
        return self.over(
            [(rng.randint(1, 3), size, size)], f"torch.fft.{function}({{0}}{more})", f"fft.{function}", dtype
        )

    def linalg(self) -> List[Step]:
        rng = self.rng
        dtype = rng.choice(("float32", "float32", "float64", "complex64", "complex128", "float16"))
        n, b = rng.randint(1, 4), rng.randint(1, 2)
        shape = (n, n) if self.maybe(0.5) else (b, n, n)
        well = "({0} @ {0}.mH + %d * torch.eye(%d, dtype={0}.dtype, device=device))" % (n + 2, n)
        text, callee = rng.choice((
            (f"torch.linalg.det({well})", "det"), (f"torch.linalg.inv({well})", "inv"), (f"torch.linalg.cholesky({well})", "cholesky"), (f"torch.linalg.solve({well}, {{0}})", "solve"),
            (f"torch.linalg.eigvalsh({well})", "eigvalsh"), (f"torch.linalg.svdvals({well})", "svdvals"), (f"torch.linalg.slogdet({well})", "slogdet"), (f"torch.linalg.pinv({well})", "pinv"),
            (f"torch.linalg.qr({well})", "qr"), (f"torch.linalg.lu({well})", "lu"), (f"torch.linalg.matrix_norm({{0}}, {rng.choice(('2', repr('fro'), repr('nuc'), '1', 'inf'))})", "matrix_norm"),
            ("torch.linalg.matrix_exp({0} / 8)", "matrix_exp"), (f"torch.linalg.solve_triangular({well}, {{0}}, upper={self.maybe(0.5)})", "solve_triangular"), (f"torch.linalg.lstsq({well}, {{0}})[0]", "lstsq"),
            (f"torch.linalg.matrix_rank({well})", "matrix_rank"), (f"torch.linalg.cond({well})", "cond"), (f"torch.cholesky_inverse(torch.linalg.cholesky({well}))", "cholesky_inverse"), (f"torch.logdet({well})", "logdet"),
        ))  # fmt: skip
        return self.over([shape], text, callee, dtype)

    def random(self) -> List[Step]:
        operand, tensor = self.one()
        rng = self.rng
        name = self.fresh()
        text, callee = rng.choice((
            (f"torch.rand_like({operand})", "rand_like"), (f"torch.randn_like({operand})", "randn_like"), (f"F.dropout({operand}, 0.5)", "dropout"), (f"torch.bernoulli({operand})", "bernoulli"),
            (f"torch.randint_like({operand}, 5)", "randint_like"), (f"torch.rand((2, 3), device=device, dtype=torch.{self.dtype()})", "rand"), ("torch.randperm(7, device=device)", "randperm"), (f"{operand}.clone().uniform_()", "uniform_"),
            (f"{operand}.clone().normal_()", "normal_"), (f"{operand}.clone().exponential_()", "exponential_"), (f"F.rrelu({operand}, training=True)", "rrelu"), (f"torch.multinomial({operand}, 1)", "multinomial"), (f"{operand}.clone().random_()", "random_"),
            (f"torch.empty_like({operand}).zero_()", "empty_like"), (f"torch.poisson({operand})", "poisson"), (f"F.alpha_dropout({operand}, 0.5, True)", "alpha_dropout"), (f"{operand}.clone().geometric_(0.3)", "geometric_"),
            (f"torch.normal({operand}, 1.0)", "normal"), (f"{operand}.new_empty((2, 3)).fill_(1)", "new_empty"), ("torch.randint(0, 9, (3,), device=device)", "randint"), (f"F.feature_dropout({operand}, 0.5)" if False else f"F.dropout1d({operand}, 0.4)", "dropout1d"),
        ))  # fmt: skip
        return [Step(f"torch.manual_seed(5)\nwith torch.no_grad():\n    {name} = {text}", callee, "layout")]

    def lists(self) -> List[Step]:
        operand, tensor = self.one()
        names = [e for e, _ in self.tensors()]
        some = [operand, *self.rng.choices(names, k=2)]
        text = "[" + ", ".join(some) + "]"
        function, arguments = self.rng.choice((
            ("_foreach_add", f"{text}, {self.scalar()}"), ("_foreach_mul", f"{text}, {text}"), ("_foreach_add", f"{text}, {text}, alpha={self.small()}"), ("_foreach_sqrt", text), ("_foreach_abs", text),
            ("_foreach_div", f"{text}, {self.scalar()}"), ("_foreach_add_", f"{text}, {self.scalar()}"), ("_foreach_mul_", f"{text}, {self.scalar()}"), ("_foreach_lerp", f"{text}, {text}, 0.5"), ("_foreach_norm", text),
            ("_foreach_addcmul", f"{text}, {text}, {text}, 0.5"), ("_foreach_maximum", f"{text}, {text}"), ("_foreach_zero_", text), ("_foreach_copy_", f"{text}, {text}"), ("_foreach_neg", text), ("_foreach_pow", f"{text}, 2"), ("_foreach_clamp_min", f"{text}, 0"),
        ))  # fmt: skip
        return [Step(f"{self.fresh()} = torch.{function}({arguments})", function)]

    # Autograd

    def gradient(self) -> List[Step]:
        """Gradients of a result that has a graph; sometimes those of the gradients."""
        results = self.tensors(lambda t: t.requires_grad and not is_leaf(t))
        sources = self.tensors(lambda t: t.requires_grad)
        if not results or not sources:
            return self.differentiable()
        result, tensor = self.rng.choice(results)
        loss = f"({result} * {result}).sum()" if self.maybe(0.4) else f"{result}.sum()"
        if tensor.is_complex():
            loss = f"{result}.abs().sum()" if self.maybe(0.5) else f"torch.view_as_real({result}).sum()"
        kind = self.rng.random()
        if kind < 0.45:
            return [Step(f"{loss}.backward(retain_graph=True)", "backward")]
        wanted = self.rng.sample([e for e, _ in sources], min(len(sources), self.rng.randint(1, 2)))
        name = self.fresh()
        create = self.maybe(0.5)
        steps = [
            Step(
                f"{name} = torch.autograd.grad({loss}, [{', '.join(wanted)}], allow_unused=True, create_graph={create}, retain_graph=True)",
                "grad",
            )
        ]
        if create and self.maybe(0.6):
            second = self.fresh()
            steps.append(Step(
                f"{second} = torch.autograd.grad(sum(torch.view_as_real(g).sum() if g.is_complex() else g.sum() for g in {name} if g is not None and g.requires_grad), "
                f"[{', '.join(wanted)}], allow_unused=True, retain_graph=True)", "double backward"))  # fmt: skip
        return steps

    def differentiable(self) -> List[Step]:
        """A leaf with a gradient, an operator, maybe a write to a view, then the gradient."""
        found = self.tensors(lambda t: is_leaf(t) and not t.requires_grad and (t.is_floating_point() or t.is_complex()))
        if not found:
            steps = self.leaf(None, self.rng.choice(("float32", "float64", "float16", "complex64")))
            name = [n for s in steps for n in s.binds][-1]
            return [*steps, Step(f"{name}.requires_grad_()", "requires_grad_")]
        return [Step(f"{self.rng.choice(found)[0]}.requires_grad_()", "requires_grad_")]

    def switch(self) -> List[Step]:
        """A call without a graph, or in inference mode."""
        operand, tensor = self.one()
        inner = self.rng.choice(
            (
                f"{operand} * 2",
                f"{operand}.clone()",
                f"{operand}.view(-1)",
                f"torch.sum({operand})",
                f"{operand}.detach().clone().zero_()",
            )
        )
        mode = self.rng.choice(("torch.no_grad()", "torch.enable_grad()", "torch.autograd.graph.save_on_cpu()"))
        return [Step(f"with {mode}:\n    {self.fresh()} = {inner}", "mode")]
