"""API names of operators, and full names: API name, running number, direction.

A number may have two additions. `17_2` is the second function that module 17 called inside, recorded because op_list
asked for it: it must not shift the numbers of the operators after it. `17#2` is the second pass backward over 17.
"""

import json
import os
import re
from typing import Any, Dict, FrozenSet, NamedTuple, Optional

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "operators.json"), encoding="utf-8") as _file:
    _TABLE: Dict[str, Any] = json.load(_file)

NOT_OPERATORS: FrozenSet[str] = frozenset(_TABLE["not_operators"])
ATTRIBUTES: FrozenSet[str] = frozenset(_TABLE["attributes"])
READ_NUMBERS: FrozenSet[str] = frozenset(_TABLE["read_numbers"])
RANDOM: FrozenSet[str] = frozenset(_TABLE["random"])
RANDOM_WHILE_TRAINING: FrozenSet[str] = frozenset(_TABLE["random_while_training"])
ARRANGES: FrozenSet[str] = frozenset(_TABLE["arranges"])
ELEMENTWISE_OPTIMIZERS: FrozenSet[str] = frozenset(_TABLE["elementwise_optimizers"])
UNINITIALISED: FrozenSet[str] = frozenset(_TABLE["uninitialised"])
WITHOUT_PROTOCOL = tuple(_TABLE["without_protocol"])
COLLECTIVES = tuple(_TABLE["collectives"])
# What DistributedDataParallel does in C++. See exchange.py.
EXCHANGE = "torch.nn.parallel.DistributedDataParallel.all_reduce"
_MODULES_OF_PARTS: FrozenSet[str] = frozenset(_TABLE["modules_of_parts"])
_MODULE_NAMESPACES: Dict[str, str] = _TABLE["module_namespaces"]
_FUNCTION_NAMESPACES: Dict[str, str] = _TABLE["function_namespaces"]
_FUNCTION_PREFIXES: Dict[str, str] = _TABLE["function_prefixes"]

_FULL = re.compile(r"^(?P<api>[A-Za-z_][\w.]*?)\.(?P<number>\d+)(?P<inner>_\d+)?(?P<again>#\d+)?\.(?P<way>fwd|bwd)$")
_REVERSED = re.compile(r"^__[ri](add|sub|mul|div|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__$")


class FullName(NamedTuple):
    """`torch.nn.Conv1d.6.fwd` in its parts; inner and again are 0 for almost every operator."""

    api: str
    number: int
    way: str
    inner: int = 0
    again: int = 0

    def __str__(self) -> str:
        inner = f"_{self.inner}" if self.inner else ""
        again = f"#{self.again}" if self.again else ""
        return f"{self.api}.{self.number}{inner}{again}.{self.way}"


def parse(text: str) -> Optional[FullName]:
    """The parts of a full name, None for text that is none."""
    found = _FULL.match(text)
    if found is None:
        return None
    return FullName(
        found["api"],
        int(found["number"]),
        found["way"],
        int((found["inner"] or "_0")[1:]),
        int((found["again"] or "#0")[1:]),
    )


def last(api: str) -> str:
    return api.rpartition(".")[2]


def api_class(api: str) -> str:
    """`torch.nn.ReLU`, `torch.relu_` and `relu` are all of the class `relu`; `__iadd__` is of the class `add`."""
    name = last(api)
    found = _REVERSED.match(name)
    return (found[1] if found else name.strip("_")).lower()


_function_names: Dict[Any, str] = {}


def function_name(func: Any) -> str:
    """The public name of what a torch function mode is called with."""
    try:
        known = _function_names.get(func)
    except TypeError:
        return _name_function(func)
    if known is None:
        known = _function_names[func] = _name_function(func)
    return known


def _name_function(func: Any) -> str:
    name = getattr(func, "__name__", None) or type(func).__name__
    owner: Any = getattr(func, "__self__", None)
    if name in ("__get__", "__set__", "__delete__") and owner is not None:
        # An attribute: the descriptor is what the slot wrapper is bound to.
        attribute = getattr(owner, "__name__", None) or getattr(getattr(owner, "fget", None), "__name__", "attribute")
        return f"torch.Tensor.{attribute}" if name == "__get__" else f"torch.Tensor.{attribute}.{name}"
    kind = getattr(func, "__objclass__", None)
    if kind is not None:
        namespace = f"{kind.__module__}.{kind.__qualname__}"
    elif hasattr(func, "__code__") or not hasattr(owner, "__name__"):
        namespace = getattr(func, "__module__", None) or "torch"
        qualified = getattr(func, "__qualname__", name)
        if "." in qualified and "<locals>" not in qualified:
            namespace += "." + qualified.rpartition(".")[0]
    else:
        namespace = getattr(func, "__module__", None) or f"{getattr(owner, '__module__', '')}.{owner.__name__}".lstrip(
            "."
        )
    if namespace.endswith(("_VariableFunctionsClass", "_VariableFunctions")):
        namespace = "torch"
    namespace = _FUNCTION_NAMESPACES.get(namespace, namespace)
    prefix = _FUNCTION_PREFIXES.get(namespace)
    if prefix and name.startswith(prefix):
        name = name[len(prefix) :]
    for candidate, public in _FUNCTION_PREFIXES.items():
        # torch.linalg's builtins live in the namespace of torch under a prefixed name.
        if namespace == "torch" and name.startswith(public) and name != public:
            return f"{candidate}.{name[len(public) :]}"
    return f"{namespace}.{name}"


_module_names: Dict[type, Optional[str]] = {}


def is_collective(api: str) -> bool:
    return api == EXCHANGE or api.startswith("torch.distributed.") and last(api) in COLLECTIVES


def module_name(kind: type) -> Optional[str]:
    """`torch.nn.Conv1d` for a module that is one operator; None for containers and for modules of the user."""
    if kind not in _module_names:
        _module_names[kind] = _name_module(kind)
    return _module_names[kind]


def _name_module(kind: type) -> Optional[str]:
    name = kind.__name__
    if name in _MODULES_OF_PARTS:
        return None
    if name == "OptimizedModule" and kind.__module__.startswith("torch._dynamo"):
        return "torch.compile.OptimizedModule"
    if name in ("RecursiveScriptModule", "ScriptModule", "TopLevelTracedModule", "TracedModule"):
        return "torch.jit.ScriptModule"
    for namespace, public in _MODULE_NAMESPACES.items():
        if kind.__module__ == namespace or kind.__module__.startswith(namespace + "."):
            return f"{public}.{name}"
    return None
