"""What the two devices must agree about after a step."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

import torch
from opinfo_checks import far

from .memory import host_view, overwrite, storage_bytes
from .program import Side, Step, is_leaf

Raised = Optional[Tuple[str, str]]
GRADIENTS = ("grad", "double backward", "backward")
LOW = (torch.float16, torch.bfloat16, torch.complex32)


@dataclass
class Difference:
    """``kind``: raises, text, missing, type, device, dtype, shape, strides, offset, bits, grad, version, aliasing, identity,
    values, value, layout (values that depend on the arguments' layout), untouched (a tensor that the step did not name),
    replay, crash."""

    kind: str
    step: Step
    where: str
    cpu: str
    cuda: str
    dtypes: str = ""
    # Of each tensor that the step uses: dimensions, and contiguous, strided or overlapping, as in "2d-strided".
    layouts: str = ""

    @property
    def signature(self) -> Tuple[str, str, str]:
        return self.kind, self.step.callee, self.dtypes

    def words(self) -> str:
        of = f" ({self.dtypes})" if self.dtypes else ""
        return f"{self.kind}: {self.step.callee}{of}: {self.where}: {short(self.cuda)}, not {short(self.cpu)}"


def short(text: str, limit: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[:limit] + " …"


def root(expression: str) -> str:
    """The name that an expression begins with."""
    return re.split(r"[.\[]", expression, maxsplit=1)[0]


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


# What an exception's words may have of the device: its name, kernels, types.
DEVICE_WORDS = (
    (re.compile(r'"[\w:]+" not implemented for'), '"kernel" not implemented for'),
    (re.compile(r"\b(CPU|CUDA|torch\.cuda\.|torch\.)(\w+)(Type|Tensor)\b"), r"\2"),
    (re.compile(r" or input should be a MKLDNN tensor and weight is a dense tensor"), ""),
    (re.compile(r"cuda:0|cuda|cpu", re.I), "device"),
    (re.compile(r"0x[0-9a-f]+"), "address"),
    (re.compile(r"\s+"), " "),
)


def plain(words: str) -> str:
    """An exception's words without what a device calls its own."""
    words = words.split("Exception raised from")[0]
    for pattern, instead in DEVICE_WORDS:
        words = pattern.sub(instead, words)
    return words.strip()


def metadata(value: torch.Tensor, names: bool = True) -> List[Tuple[str, Any]]:
    """Attributes in the order in which they are compared."""
    rows: List[Tuple[str, Any]] = [
        ("dtype", value.dtype), ("shape", tuple(value.shape)), ("layout", value.layout),
        ("grad", (value.requires_grad, is_leaf(value), function_of(value, names))),
    ]  # fmt: skip
    if value.layout == torch.strided:
        rows[2:2] = [
            ("strides", meaningful_strides(value)),
            ("offset", value.storage_offset()),
            ("bits", (value.is_conj(), value.is_neg())),
        ]
    return rows


def function_of(value: torch.Tensor, names: bool) -> Any:
    """The name of the function that made it, or whether there is one."""
    try:
        function = value.grad_fn
    except RuntimeError as error:  # a view whose base was written
        return str(error)
    return type(function).__name__ if names else function is not None


def meaningful_strides(value: torch.Tensor) -> Tuple[int, ...]:
    """Strides of dimensions with more than one element."""
    if value.numel() == 0:
        return ()
    return tuple(stride for stride, size in zip(value.stride(), value.shape) if size > 1)


@dataclass
class Comparison:
    """The two pools after a step; ``unequal`` are expressions whose bytes differ, but not by too much."""

    step: Step
    cpu: Dict[str, Any]
    cuda: Dict[str, Any]
    before: Dict[str, Any]
    dtypes: str
    factor: float = 1.0
    unequal: List[str] = field(default_factory=list)
    # Versions before the step: of the CPU's and the device's tensors.
    versions: Tuple[Dict[str, int], Dict[str, int]] = field(default_factory=lambda: ({}, {}))

    # Expressions whose memory is new and was not written, since the step raised.
    undefined: FrozenSet[str] = frozenset()

    def difference(self, kind: str, where: str, cpu: Any, cuda: Any) -> Difference:
        return Difference(kind, self.step, where, str(cpu), str(cuda), self.dtypes)

    def all(self) -> List[Difference]:
        """Everything that differs, at most one thing of each expression."""
        found = []
        if list(self.cpu) != list(self.cuda):
            only = [n for n in self.cpu if n not in self.cuda] + [n for n in self.cuda if n not in self.cpu]
            found.append(
                self.difference("missing", only[0] if only else "order", list(self.cpu)[-8:], list(self.cuda)[-8:])
            )
        memory: Dict[Tuple[int, int], bool] = {}
        for expression in self.cpu:
            if expression in self.cuda:
                one = self._one(expression, self.cpu[expression], self.cuda[expression], memory)
                if one is not None:
                    found.append(one)
        return found or self._relations()

    def _one(self, where: str, cpu: Any, cuda: Any, memory: Dict[Tuple[int, int], bool]) -> Optional[Difference]:
        if type(cpu) is not type(cuda):
            return self.difference("type", where, type(cpu).__name__, type(cuda).__name__)
        if not is_tensor(cpu):
            return self._value(where, cpu, cuda)
        on_host = where.startswith("h")
        if cuda.is_cuda == on_host:
            return self.difference("device", where, "cpu" if on_host else "cuda", cuda.device)
        # Formulas of gradients choose by device, too.
        names = self.step.callee not in GRADIENTS and ".grad" not in where
        for (kind, mine), (_, other) in zip(metadata(cpu, names), metadata(cuda, names)):
            if mine != other and not (kind == "dtype" and self.step.kind == "loose"):
                return self.difference(kind, where, mine, other)
        if where in self.versions[0] and where in self.versions[1]:
            # How often a write counts is the kernels' own affair; that it counts is not.
            moved = cpu._version > self.versions[0][where], cuda._version > self.versions[1][where]
            if moved[0] != moved[1]:
                return self.difference(
                    "version", where, *("a new version" if new else "the version before" for new in moved)
                )
        if where in self.undefined:
            self.unequal.append(where)
            return None
        if cpu.layout != torch.strided:
            return self._values(where, cpu.to_dense(), cuda.to_dense().cpu())
        key = (cpu.untyped_storage()._cdata, cuda.untyped_storage()._cdata)
        if key not in memory:
            memory[key] = cpu.dtype == cuda.dtype and storage_bytes(cpu) == storage_bytes(cuda)
        if memory[key]:
            return None
        return self._values(where, cpu.detach(), host_view(cuda.detach()))

    def _value(self, where: str, cpu: Any, cuda: Any) -> Optional[Difference]:
        if isinstance(cpu, (float, complex)):
            got, want = torch.tensor(cuda), torch.tensor(cpu)
            wrong = far(got, want, 64.0 * self.factor, 64.0)
            return self.difference("value", where, cpu, cuda) if wrong is not None and bool(wrong) else None
        if isinstance(cpu, torch.device):
            return None
        if isinstance(cpu, (bool, int, str, bytes, torch.dtype, torch.Size, type(None))) and cpu != cuda:
            return self.difference("value", where, cpu, cuda)
        return None

    def _values(self, where: str, cpu: torch.Tensor, cuda: torch.Tensor) -> Optional[Difference]:
        named = root(where) in (*self.step.binds, *self.step.uses) or self._shared(where)
        if self.step.kind == "layout" and named:
            self.unequal.append(where)
            return None
        wrong = wrong_elements(cuda, cpu, self.step.kind, self.factor)
        if wrong is None:
            return None
        if bool(wrong.any()):
            index = tuple(wrong.nonzero()[0].tolist())
            said = f"{int(wrong.sum())} of {wrong.numel()}, at {index} "
            kind = "values" if named or ".grad" in where else "untouched"
            return self.difference(kind, where, said + str(cpu[index].item()), said + str(cuda[index].item()))
        self.unequal.append(where)
        return None

    def _shared(self, where: str) -> bool:
        """Whether it shares memory with something that the step names."""
        memory = self.cpu[where].untyped_storage()._cdata
        names = (*self.step.binds, *self.step.uses)
        return any(
            is_tensor(v) and v.layout == torch.strided and v.untyped_storage()._cdata == memory
            for e, v in self.cpu.items() if root(e) in names
        )  # fmt: skip

    def _relations(self) -> List[Difference]:
        """Which tensors share memory, and which are the same object."""
        found = []
        names = [e for e, v in self.cpu.items() if is_tensor(v) and v.layout == torch.strided]
        gradients = self.step.callee in GRADIENTS
        for kind, of in (("aliasing", lambda t: t.untyped_storage()._cdata), ("identity", id)):
            groups: List[Dict[Any, str]] = [{}, {}]
            for name in names:
                mine, other = of(self.cpu[name]), of(self.cuda[name])
                first, second = groups[0].setdefault(mine, name), groups[1].setdefault(other, name)
                if first != second and not (self.cpu[name].numel() == 0 if kind == "aliasing" else gradients):
                    found.append(self.difference(kind, name, f"with {first}", f"with {second}"))
                    break
        return found


def versions(pool: Dict[str, Any]) -> Dict[str, int]:
    return {e: v._version for e, v in pool.items() if is_tensor(v) and not v.is_inference()}


def wrong_elements(got: torch.Tensor, want: torch.Tensor, kind: str, factor: float) -> Optional[torch.Tensor]:
    """Which elements of two host tensors differ too much; None where all bytes that count agree."""
    got, want = got.resolve_conj().resolve_neg(), want.resolve_conj().resolve_neg()
    if kind == "loose":
        got = got.to(torch.promote_types(got.dtype, want.dtype))
        want = want.to(got.dtype)
        low = torch.complex32 if got.is_complex() else torch.bfloat16
        if got.dtype.is_floating_point or got.is_complex():
            return far(got.to(low), want.to(low), 4.0, 4.0)
    if kind != "exact" and got.is_complex():
        # An infinite or undefined part leaves the other part to the formula of a product or quotient.
        want = want.to(got.dtype)
        lost = ~got.isfinite() & ~want.isfinite()
        got, want = got.masked_fill(lost, 0), want.masked_fill(lost, 0)
    if got.dtype in (torch.float16, torch.bfloat16) or not (got.is_floating_point() or got.is_complex()):
        same = torch.ne(got, want) & ~(torch.ne(got, got) & torch.ne(want, want))
        if not bool(same.any()):
            return None
        if kind == "exact":
            return same
    if kind == "exact":
        return far(got, want, 0.0, 0.0)
    return far(got, want, factor, 4.0 if factor > 1 else 0.0)


def reconcile(cpu: Side, cuda: Side, keep: bool = True) -> None:
    """Give the device the CPU's values, so that a difference within the tolerance does not grow; what cannot be made the
    same is forgotten on both."""
    mine, other = cpu.pool(), cuda.pool()
    gone = set(mine) ^ set(other)
    for expression, value in mine.items():
        if expression in gone or not is_tensor(value):
            continue
        twin = other[expression]
        same = is_tensor(twin) and metadata(value) == metadata(twin) and value.layout == torch.strided
        if same and twin.device.type in ("cuda", "cpu"):
            overwrite(twin, value)
        else:
            gone.add(expression)
    for expression in gone:
        name = re.match(r"[tmfh]\d+", expression)
        assert name is not None
        for side in (cpu, cuda):
            side.names.pop(name.group(), None)
