"""Cases of the differential tests: a name, a kernel with its data, what NumPy expects.

A case runs twice: compiled on the device, and by Triton's own interpreter (TRITON_INTERPRET=1, in another process).
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import numpy as np
import torch
import triton

# Relative tolerance by dtype: a few units in the last place.
TOLERANCE = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIGNED = INTEGERS[:4]
FLOATS = ("float16", "bfloat16", "float32", "float64")


RELEASE = tuple(int(part) for part in triton.__version__.split(".")[:2])
# The language of Triton 3.9 has no block pointers, and its histograms count 32-bit integers alone.
BLOCK_POINTERS = RELEASE < (3, 9)
HISTOGRAM_TYPES = ("uint8", "int16", "int32", "int64") if RELEASE < (3, 9) else ("int32",)
# tl.sort of 3.0 adds elements up, which widens 8 bits, and then wants 8.
SORTED_BYTES = RELEASE > (3, 0)
ATOMIC_ACCESSES = RELEASE >= (3, 9)


class Outcome(NamedTuple):
    """What a kernel left, what NumPy says (None: the interpreter alone is the oracle), the relative tolerance."""

    got: np.ndarray
    expected: Optional[np.ndarray] = None
    tolerance: float = 0.0


CASES: Dict[str, Callable[[str], Outcome]] = {}


def case(*names: Any, there: bool = True) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """Register a function of a device, once for each of `names` (which it then gets as its second argument).

    `there`: whether the release's language has what the case is about.
    """

    def register(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
        if not there:
            return function
        stem = function.__name__
        if not names:
            CASES[stem] = function
        for name in names:
            label = "-".join(map(str, name)) if isinstance(name, tuple) else str(name)
            CASES[f"{stem}[{label}]"] = lambda device, name=name: function(device, name)
        return function

    return register


def pairs(first: Sequence[str], second: Sequence[str]) -> List[Any]:
    """All pairs of two lists."""
    return [(one, other) for one in first for other in second]


def torch_type(name: str) -> torch.dtype:
    """Torch's dtype of a name."""
    return getattr(torch, name)


def data(name: str, count: int, seed: int = 0, special: bool = False) -> torch.Tensor:
    """Numbers of a dtype on the CPU; `special` puts NaN, infinities, zeros and a subnormal number at the front."""
    generator = np.random.RandomState(seed)
    if name.startswith(("int", "uint")):
        limits = np.iinfo(name)
        values = generator.randint(limits.min, limits.max, count, dtype=name)
        return torch.from_numpy(values.view(name.replace("u", "")) if name != "uint8" else values).view(
            torch_type(name)
        )
    values = generator.standard_normal(count) * 4
    if special:
        front = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 1.0, -1.0]
        values[: len(front)] = front
    return torch.from_numpy(values).to(torch_type(name))


def array(tensor: torch.Tensor) -> np.ndarray:
    """The tensor as NumPy has it; bfloat16 as float32."""
    tensor = tensor.cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
