"""A program: steps of Python source over names, run step by step on both devices, or printed as a script.

Tensors are called t0, t1, …, modules m0, m1, …, functions f0, f1, …; a result that lies on the host on both devices h0.
"""

from __future__ import annotations

import copy
import functools
import pickle
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional

NAMES = re.compile(r"\b[tmfh]\d+\b")
NUMBERED = re.compile(r"[tmfh]\d+")
# Names that a step binds at its beginning.
BOUND = re.compile(r"^ *(?:def )?([tmfh]\d+)\b(?: = |\(x\):)", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """``callee``: what is called, for reports. ``kind``: what is compared of its results.

    values   everything, low precision within its tolerance
    exact    everything, bit by bit
    layout   all but the values: random or undefined ones
    loose    all but dtypes, within half precision's tolerance: autocast
    pure     as values; besides, the values do not depend on the layout of the arguments
    """

    text: str
    callee: str
    kind: str = "values"

    @property
    def binds(self) -> List[str]:
        return BOUND.findall(self.text)

    @property
    def uses(self) -> List[str]:
        """Names that the step needs, in order, each once."""
        own = set(self.binds)
        return [name for name in dict.fromkeys(NAMES.findall(self.text)) if name not in own]


# What a stand-alone script has to define for the helpers that steps may call.
HELPERS: Dict[str, str] = {
    "captured": '''
def captured(function, *arguments):
    """The function's result; on the device from the second launch of a CUDA graph."""
    if arguments[0].device.type == "cpu":
        return torch.utils._pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, function(*arguments))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    kept = [a.detach().clone() for a in arguments]
    with torch.cuda.stream(stream):
        function(*[a.detach().clone().requires_grad_(a.requires_grad) for a in arguments])
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(*arguments)
    for argument, content in zip(arguments, kept):
        assert torch.equal(argument.nan_to_num(), content.nan_to_num()), "a capture wrote to its arguments"
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    return torch.utils._pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, result)
''',
    "side_stream": '''
def side_stream(function, *arguments):
    """The function's result, from a stream of its own on the device."""
    if arguments[0].device.type == "cpu":
        return function(*arguments)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = function(*arguments)
    torch.cuda.current_stream().wait_stream(stream)
    return result
''',
    "autocast": '''
def autocast(device, dtype):
    """CUDA's autocast; nothing on the CPU, whose lists of operators differ."""
    return torch.autocast("cuda", dtype=dtype, enabled=device == "cuda")
''',
    "opinfo": '''
@functools.lru_cache(maxsize=None)
def opinfo(name, variant):
    """An entry of upstream's OpInfo."""
    from torch.testing._internal.common_methods_invocations import op_db
    return next(o for o in op_db if o.name == name and o.variant_test_name == variant)
''',
    "kinds": '''
def kinds(graph):
    """The operators of a traced graph."""
    return [node.kind() for node in graph.nodes() if not node.kind().startswith("prim::")]
''',
}  # fmt: skip
PRELUDE = (
    "import copy, functools, pickle\nimport torch\nfrom torch.nn import functional as F\nfrom torch.utils.checkpoint import "
    "checkpoint\n\nnan, inf = float('nan'), float('inf')\n"
)


@functools.lru_cache(maxsize=None)
def _helpers() -> Dict[str, Any]:
    from torch.utils.checkpoint import checkpoint

    names: Dict[str, Any] = {
        "torch": torch, "functools": functools, "copy": copy, "pickle": pickle, "F": torch.nn.functional, "checkpoint": checkpoint,
        "nan": float("nan"), "inf": float("inf"),
    }  # fmt: skip
    for source in HELPERS.values():
        exec(source, names)
    return names


class Side:
    """The names of a program on one device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.names: Dict[str, Any] = {**_helpers(), "device": device}

    def run(self, step: Step) -> Optional[Tuple[str, str]]:
        """Runs a step. Returns the exception's type and words, if there is one."""
        try:
            exec(_compiled(step.text), self.names)
            if step.callee == "def":
                for name in step.binds:
                    self.names[name].source = step.text
        except Exception as error:  # compared with the other device's
            return type(error).__name__, str(error)
        return None

    def pool(self) -> Dict[str, Any]:
        """Every leaf of every result, under the expression that names it, in the order of creation."""
        found: Dict[str, Any] = {}
        for name in [n for n in self.names if NUMBERED.fullmatch(n)]:
            for expression, value in leaves(name, self.names[name]):
                found[expression] = value
        return found

    def knows(self, step: Step) -> bool:
        return all(name in self.names for name in step.uses)


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> Any:
    return compile(text, "<step>", "exec")


def is_leaf(value: torch.Tensor) -> bool:
    """Whether it is a leaf; false for a view that autograd refuses to tell about since its base was written."""
    try:
        return value.is_leaf
    except RuntimeError:
        return False


def leaves(name: str, value: Any) -> Iterator[Tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, value
        if is_leaf(value) and value.requires_grad and value.grad is not None:
            yield f"{name}.grad", value.grad
    elif isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        for position, each in enumerate(value):
            yield from leaves(f"{name}[{position}]", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(f"{name}[{key!r}]", each)
    elif isinstance(value, torch.nn.Module):
        for key, each in (*value.named_parameters(), *value.named_buffers()):
            yield from leaves(f"{name}.{key}", each)
    elif not callable(value):
        yield name, value


@dataclass
class Program:
    """Steps, and which of them raised (on the CPU), for the script."""

    steps: List[Step] = field(default_factory=list)
    number: Optional[int] = None

    def script(self, watched: Sequence[str] = (), said: str = "", raising: Sequence[int] = ()) -> str:
        """A stand-alone script that shows the last step's results on both devices."""
        texts = [step.text for step in self.steps]
        joined = "\n".join(texts)
        helpers = [source.strip("\n") for name, source in HELPERS.items() if f"{name}(" in joined]
        lines = [f"# {line}" for line in said.splitlines()]
        lines += [
            "# PYTORCH_DEFAULT_NCHW=1 OMP_NUM_THREADS=1",
            PRELUDE,
            *[h + "\n" for h in helpers],
            "",
            "def program(device):",
        ]
        for position, text in enumerate(texts):
            body = text.splitlines()
            if position in raising and position < len(texts) - 1:
                lines += [
                    "    try:",
                    *[f"        {line}" for line in body],
                    "    except Exception as error:",
                    "        print(error)",
                ]
            else:
                lines += [f"    {line}" for line in body]
        shown = list(watched) or (self.steps[-1].binds[-1:] or self.steps[-1].uses[:1])
        lines += [f"    return {', '.join(shown) or None}", "", "", SHOW.strip("\n")]
        return "\n".join(lines) + "\n"


SHOW = """
for device in ("cpu", "cuda"):
    try:
        result = program(device)
    except Exception as error:
        print(device, type(error).__name__, error)
        continue
    for value in torch.utils._pytree.tree_flatten(result)[0]:
        print(device, value)
        if isinstance(value, torch.Tensor):
            print("   ", value.device, value.dtype, tuple(value.shape), value.stride(), value.storage_offset(), value._version, value.grad_fn)
"""


def replaced(step: Step, change: Callable[[str], str]) -> Step:
    return Step(change(step.text), step.callee, step.kind)
