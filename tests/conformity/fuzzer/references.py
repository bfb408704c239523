"""The same step computed otherwise on the CPU: in wider dtypes, or on contiguous copies of its arguments."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Optional

import torch
from opinfo_checks import WIDE
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

from .memory import from_bytes, storage_bytes
from .program import NUMBERED, Side, Step

WORDS = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"torch\.(b?float16|float32)\b", "torch.float64"), (r"torch\.(complex32|complex64)\b", "torch.complex128"),
        (r"\.(half|bfloat16|float)\(\)", ".double()"), (r"(\w+)\.dtype\b", r"\1.dtype"),
    )
)  # fmt: skip


def plain(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, int, float, complex, str, torch.Size, type(None), torch.dtype))


class Snapshot:
    """The names of a side as they are now; memory is copied, geometry is kept."""

    def __init__(self, side: Side) -> None:
        self.values: Dict[str, Any] = {}
        self.content: Dict[int, bytes] = {}
        self.shapes = {e: tuple(v.shape) for e, v in side.pool().items() if isinstance(v, torch.Tensor)}
        for name, value in side.names.items():
            if NUMBERED.fullmatch(name):
                self.values[name] = (
                    tree_map(self._keep, value) if isinstance(value, (torch.Tensor, tuple, list, dict)) else value
                )
                if isinstance(value, torch.nn.Module):
                    for one in (*value.parameters(), *value.buffers()):
                        self._keep(one)

    def _keep(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return value
        kept = value.detach()
        key = kept.untyped_storage()._cdata
        if key not in self.content:
            self.content[key] = storage_bytes(kept)
        return kept

    def tensor(self, kept: torch.Tensor) -> torch.Tensor:
        """A copy with its geometry and what it held."""
        return from_bytes(kept, self.content[kept.untyped_storage()._cdata])

    def side(self, step: Step, change: Callable[[torch.Tensor], torch.Tensor]) -> Optional[Side]:
        """A side on the CPU that knows what a step needs, each tensor changed; None where it cannot be copied."""
        made = Side("cpu")
        for name in step.uses:
            if name not in self.values:
                return None
            value = self.values[name]
            if name.startswith("f"):
                made.names[name] = value
            elif isinstance(value, torch.nn.Module) or not _tree_of_plain(value):
                return None
            else:
                made.names[name] = tree_map(
                    lambda v: (
                        change(self.tensor(v)) if isinstance(v, torch.Tensor) and v.layout == torch.strided else v
                    ),
                    value,
                )
        return made


def _tree_of_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_tree_of_plain(each) for each in value)
    return plain(value)


def widened(step: Step) -> Step:
    text = step.text
    for pattern, instead in WORDS:
        text = pattern.sub(instead, text)
    return Step(text, step.callee, step.kind)


def wide(step: Step, before: Snapshot) -> Optional[Side]:
    """The step in double precision, after it; None where that is not possible."""
    side = before.side(step, lambda t: t.to(WIDE[t.dtype]) if t.dtype in WIDE else t)
    if side is None or side.run(widened(step)) is not None:
        return None
    return side


def contiguous(step: Step, before: Snapshot) -> Optional[Side]:
    """The step on contiguous copies, after it."""
    side = before.side(step, lambda t: t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format))
    if side is None or side.run(step) is not None:
        return None
    return side


def fake_agrees(step: Step, before: Snapshot, where: str, pool: Dict[str, Any]) -> bool:
    """Whether FakeTensor, which knows upstream's device, gives a result the layout that it has here."""
    mode = FakeTensorMode()
    made = Side("cuda")

    def fake(kept: Any) -> Any:
        if not isinstance(kept, torch.Tensor) or kept.layout != torch.strided:
            return kept
        needed = kept.untyped_storage().nbytes() // kept.element_size()
        one = torch.empty(needed, dtype=kept.dtype, device="cuda").as_strided(
            kept.shape, kept.stride(), kept.storage_offset()
        )
        one = one.conj() if kept.is_conj() else one
        return torch._neg_view(one) if kept.is_neg() else one

    with mode:
        for name in step.uses:
            value = before.values.get(name)
            if isinstance(value, torch.nn.Module) or not _tree_of_plain(value):
                return False
            made.names[name] = tree_map(fake, value)
        if made.run(step) is not None:
            return False
    got, want = pool.get(where), made.pool().get(where)
    if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor):
        return False
    same = got.dtype == want.dtype and got.shape == want.shape and got.storage_offset() == want.storage_offset()
    return same and all(a == b for a, b, n in zip(got.stride(), want.stride(), got.shape) if n > 1)


def has_layout(step: Step, before: Snapshot) -> bool:
    """Whether an argument is anything but contiguous."""
    for name in step.uses:
        value = before.values.get(name)
        for one in value if isinstance(value, (tuple, list)) else [value]:
            if (
                isinstance(one, torch.Tensor)
                and one.layout == torch.strided
                and (not one.is_contiguous() or one.is_conj() or one.is_neg())
            ):
                return True
    return False
