"""The call that launches a compiled kernel, made from its signature."""

import re
from typing import Any, Callable, Dict, List, Tuple

from triton.backends.nvidia import native, upstream_order
from triton.backends.nvidia.release import HAS_KNOBS

# The signs of arguments in plans, which the launcher of the SDK reads.
_SIGNS = {
    "i1": "b" if HAS_KNOBS else "i",
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "l",
    "u1": "B" if HAS_KNOBS else "I",
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "L",
    "fp16": "e",
    "bf16": "t",
    "fp32": "f",
    "f32": "f",
    "fp64": "d",
}
_CPP = {
    "i1": "int8_t" if HAS_KNOBS else "int32_t",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u1": "uint8_t" if HAS_KNOBS else "uint32_t",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "fp16": "double" if HAS_KNOBS else "float",
    "bf16": "double" if HAS_KNOBS else "float",
    "fp32": "double" if HAS_KNOBS else "float",
    "f32": "double" if HAS_KNOBS else "float",
    "fp64": "double",
    "nvTmaDesc": "CUtensorMap",
}
_DESCRIPTOR = re.compile(r"tensordesc<([^\[>]*)\[([^\]]*)\]")


def cpp_type(kind: str) -> str:
    """Return the C++ type that carries an argument of a Triton type, as ahead-of-time wrappers spell it."""
    if kind.startswith("*"):
        return "CUdeviceptr"
    return "CUtensorMap" if kind.startswith("tensordesc") else _CPP[kind]


def _sign(kind: Any) -> str:
    if isinstance(kind, tuple):
        return "(" + "".join(_sign(member) for member in kind) + ")"
    if kind == "constexpr":
        return "_"
    if kind.startswith("*"):
        return "*"
    if kind.startswith("tensordesc"):
        return _descriptor_plan(kind)
    if kind not in _SIGNS:
        raise NotImplementedError(f"a kernel's argument of type {kind}: capability 8.0 does not have it")
    return _SIGNS[kind]


def _descriptor_plan(kind: str) -> str:
    """Return the plan of a tensor descriptor made on the host: what the compiler has taken it apart into.

    Base, shape, strides and two flags are the descriptor's; shape and strides follow once more for the kernel.
    """
    match = _DESCRIPTOR.match(kind)
    if match is None:
        raise NotImplementedError(f"a kernel's argument of type {kind}")
    dimensions = match.group(2).count(",") + 1
    return "(*" + "l" * (2 * dimensions) + "bb" + "i" * dimensions + "l" * dimensions + ")"


def _has_descriptor(kind: Any) -> bool:
    if isinstance(kind, tuple):
        return any(_has_descriptor(member) for member in kind)
    return kind[:10] == "tensordesc"  # type: ignore[no-any-return]


def _has_memory(kind: Any) -> bool:
    if isinstance(kind, tuple):
        return any(_has_memory(member) for member in kind)
    return kind[0] == "*" or _has_descriptor(kind)


def _unpacked(kind: Any, value: Any) -> Any:
    """Return the argument with what stands for each tensor descriptor in it."""
    if isinstance(kind, tuple):
        return tuple(_unpacked(member, each) for member, each in zip(kind, value))
    if not _has_descriptor(kind):
        return value
    shape, strides = value.shape, value.strides
    nan, rounded = value.padding == "nan", value.round_f32_to_tf32
    return (value.base, *shape, *strides, nan, rounded, *shape, *strides)


def _plan(signature: Dict[Any, Any], constants: Dict[Any, Any], names: List[str]) -> Tuple[str, Tuple[int, ...]]:
    """Return the plan, and for releases whose messages name arguments, the number of each."""
    if HAS_KNOBS:
        return "".join(_sign(kind) for kind in signature.values()), ()

    def number(key: Any) -> int:
        return names.index(key) if isinstance(key, str) else key

    constant = {number(key) for key in constants}
    positions = tuple(number(key) for key in signature)
    signs = ["_" if at in constant else _sign(kind) for at, kind in zip(positions, signature.values())]
    return "".join(signs), positions


class CudaLauncher:
    """Launches kernels of one signature: called with grid, stream, function, metadata, hooks and arguments."""

    def __init__(self, src: Any, metadata: Any) -> None:
        constants = getattr(src, "constants", {})
        names = src.fn.arg_names if hasattr(src, "fn") else []
        plan, positions = _plan(src.signature, constants, names)
        self.launch_cooperative_grid = bool(getattr(metadata, "launch_cooperative_grid", False))
        self.launch_pdl = bool(getattr(metadata, "launch_pdl", False))
        self.global_scratch_size = self.profile_scratch_size = 0
        self.launch: Callable[..., None] = native.make_launcher(
            plan, not HAS_KNOBS, positions, self.launch_cooperative_grid
        )
        kinds = list(src.signature.values())
        self._descriptors = [at for at, kind in enumerate(kinds) if _has_descriptor(kind)]
        self._kinds = kinds
        # Where memory is named, if it may have to be reordered (upstream_order).
        self._order = upstream_order.applies(getattr(src, "fn", None))
        self._memory = [
            upstream_order.LEADING + at for at, kind in enumerate(kinds) if self._order and _has_memory(kind)
        ]
        self._constants = [value for value in constants.values() if isinstance(value, int)]

    def __call__(self, *arguments: Any) -> None:
        if self._descriptors:
            values = list(arguments)
            for at in self._descriptors:
                place = upstream_order.LEADING + at
                values[place] = _unpacked(self._kinds[at], values[place])
            arguments = tuple(values)
        if self._memory:
            images = upstream_order.images(arguments, self._memory)
            if images:
                upstream_order.launch(self.launch, arguments, images, self._order, self._constants)
                return
        self.launch(*arguments)
