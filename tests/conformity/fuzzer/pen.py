"""What every step is written with: fresh names, choices among the tensors there are, leaves, the three forms of a call."""

from __future__ import annotations

from random import Random
from typing import Callable, List, Optional, Sequence, Tuple

import torch

from . import literals
from .literals import DTYPES, SCALARS, numel
from .program import Side, Step

Named = Tuple[str, torch.Tensor]
LARGEST = 4096


class Pen:
    """Writes the steps of one program."""

    def __init__(self, rng: Random, side: Side) -> None:
        self.rng, self.side, self.count = rng, side, 0
        self.base = literals.random_shape(rng)
        self.favourite = rng.choice(DTYPES) if rng.random() < 0.6 else None

    # Names and choices

    def fresh(self, prefix: str = "t") -> str:
        self.count += 1
        return f"{prefix}{self.count - 1}"

    def tensors(self, wanted: Callable[[torch.Tensor], bool] = lambda t: True) -> List[Named]:
        return [
            (e, v)
            for e, v in self.side.pool().items()
            if isinstance(v, torch.Tensor)
            and v.layout == torch.strided
            and v.numel() <= LARGEST
            and not e.startswith(("m", "h"))
            and not e.endswith(".grad")
            and wanted(v)
        ]

    def one(self, wanted: Callable[[torch.Tensor], bool] = lambda t: True) -> Named:
        """A tensor of the pool, the younger ones more often; any where none is wanted."""
        found = self.tensors(wanted) or self.tensors()
        if self.rng.random() < 0.5:
            found = found[-4:]
        return self.rng.choice(found)

    def partner(self, tensor: torch.Tensor) -> Named:
        """A tensor that broadcasts with another one, most of the time."""
        if self.rng.random() < 0.06:
            return self.one()
        return self.one(lambda t: broadcasts(t.shape, tensor.shape))

    def scalar(self) -> str:
        return self.rng.choice(SCALARS)

    def small(self) -> str:
        return self.rng.choice(SCALARS[:13])

    def dim(self, tensor: torch.Tensor) -> int:
        rank = max(tensor.dim(), 1)
        return self.rng.randint(-rank, rank - 1)

    def dtype(self) -> str:
        return self.rng.choice(DTYPES)

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    # Leaves

    def leaf(
        self,
        shape: Optional[Sequence[int]] = None,
        dtype: Optional[str] = None,
        plain: bool = False,
        tame: bool = False,
    ) -> List[Step]:
        """A new tensor; often a view whose memory has gaps, repeats, an offset or another order."""
        rng = self.rng
        shape = tuple(shape) if shape is not None else literals.shape_near(rng, self.base)
        dtype = dtype or (self.favourite if self.favourite and self.maybe(0.5) else self.dtype())
        kind = 1.0 if plain else rng.random()
        if kind < 0.45 and shape and numel(shape):
            return self._laid_out(shape, dtype, tame)
        name = self.fresh()
        text = (
            f"{name} = {literals.tensor(literals.values(rng, dtype, numel(shape), tame), numel(shape), dtype, shape)}"
        )
        steps = [Step(text, "tensor", "exact")]
        if not plain and dtype in (*literals.FLOATING, *literals.COMPLEX) and self.maybe(0.2):
            steps.append(Step(f"{name}.requires_grad_()", "requires_grad_"))
        return steps

    def _laid_out(self, shape: Tuple[int, ...], dtype: str, tame: bool) -> List[Step]:
        rng, name, base = self.rng, self.fresh(), self.fresh()
        name, base = base, name
        rank = len(shape)
        choice = rng.choice(
            ("transposed", "gaps", "expanded", "offset", "bits", "overlapping", "permuted", "channels_last")
        )
        stored: Tuple[int, ...] = shape
        view = ""
        if choice == "gaps":
            at = rng.randrange(rank)
            stored = tuple(n * 2 if i == at else n for i, n in enumerate(shape))
            view = "[" + ", ".join(f"{rng.randint(0, 1)}::2" if i == at else ":" for i in range(rank)) + "]"
        elif choice == "expanded":
            stored = tuple(1 if rng.random() < 0.6 else n for n in shape)
            view = f".expand({list(shape)})"
        elif choice == "offset":
            stored = (shape[0] + 2, *shape[1:])
            view = "[1:-1]"
        elif choice == "overlapping":
            strides = [rng.choice((1, 1, 2, s)) for s in literals.contiguous_strides(shape)]
            needed = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
            stored = (needed + 1,)
            view = f".as_strided({list(shape)}, {strides}, {rng.randint(0, 1)})"
        elif choice == "bits" and dtype in literals.COMPLEX:
            view = rng.choice((".conj()", ".conj()", ".mH" if rank == 2 else ".conj()"))
            stored = shape[::-1] if view == ".mH" else shape
        elif choice == "bits" and dtype in ("float32", "float64", "float16"):
            wide = {"float32": "complex64", "float64": "complex128", "float16": "complex32"}[dtype]
            dtype, view = wide, rng.choice((".imag", ".real", ".conj().imag", ".conj().imag"))
        elif choice == "channels_last" and rank in (4, 5):
            format_ = "channels_last" if rank == 4 else "channels_last_3d"
            view = f".contiguous(memory_format=torch.{format_})"
        else:
            order = list(range(rank))
            rng.shuffle(order)
            stored = tuple(shape[i] for i in order)
            view = f".permute({[order.index(i) for i in range(rank)]})"
        flat = literals.values(rng, dtype, numel(stored), tame)
        return [
            Step(f"{base} = {literals.tensor(flat, numel(stored), dtype, stored)}", "tensor", "exact"),
            Step(f"{name} = {base}{view}", "view", "exact"),
        ]

    def long(self, shape: Sequence[int], below: int, low: int = 0) -> Tuple[str, List[Step]]:
        """Indices."""
        name = self.fresh()
        flat = [self.rng.randint(low, max(below - 1, low)) for _ in range(numel(shape))]
        dtype = "int64" if self.maybe(0.93) else "int32"
        return name, [
            Step(f"{name} = {literals.tensor(repr(flat), len(flat), dtype, tuple(shape))}", "tensor", "exact")
        ]

    # out=, functional, in place

    def call(
        self, function: str, arguments: str, like: torch.Tensor, out: bool = True, kind: str = "pure"
    ) -> List[Step]:
        """A call with or without ``out=``."""
        name = self.fresh()
        short = function.replace("torch.", "")
        if out and self.maybe(0.2):
            return self._with_out(function, arguments, like, name)
        return [Step(f"{name} = {function}({arguments})", short, kind)]

    def _with_out(self, function: str, arguments: str, like: torch.Tensor, name: str) -> List[Step]:
        rng, steps = self.rng, []
        kind = rng.random()
        if kind < 0.2:
            target = f"torch.empty(0, dtype=torch.{self.dtype() if self.maybe(0.4) else literals.of(like.dtype)}, device=device)"
        elif kind < 0.45:
            target = self.one(lambda t: t.shape == like.shape)[0]
        elif kind < 0.7:
            target = self.one()[0]
        else:
            dtype = self.dtype() if self.maybe(0.3) else literals.of(like.dtype)
            steps = self.leaf(like.shape, dtype)
            target = [n for s in steps for n in s.binds][-1]
        return [
            *steps,
            Step(f"{name} = {function}({arguments}, out={target})", function.replace("torch.", "") + " out="),
        ]


def moderate(tensor: torch.Tensor) -> bool:
    """No products of its elements overflow."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return True
    return bool(tensor.detach().abs().max() < 100)


def broadcasts(first: Sequence[int], second: Sequence[int]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(first), reversed(second)))


def needed(steps: List[Step]) -> List[Step]:
    """The last step and those whose names it uses."""
    wanted = set(steps[-1].uses)
    kept = [steps[-1]]
    for step in reversed(steps[:-1]):
        if wanted & set(step.binds) or (wanted & set(step.uses) and not step.binds):
            wanted |= set(step.uses)
            kept.append(step)
    return kept[::-1]
