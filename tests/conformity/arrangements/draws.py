"""Random sizes, and tensors in random arrangements."""

from __future__ import annotations

import random
from typing import List, Optional, Sequence, Tuple, TypeVar

import torch

T = TypeVar("T")
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 100)
FEW = (1, 2, 3, 4, 5, 8)
ARRANGEMENTS = ("as it arrives", "as it arrives", "permuted", "part", "behind others", "every second", "channels last")
ADDED = 3  # elements at most that a part leaves out along each dimension
FILL = (30, 100, 1000, 5000, 20000)


def gap(dtype: torch.dtype) -> float:
    """What lies where no element is."""
    return float("nan") if dtype.is_floating_point else 1


def dirty(dtype: torch.dtype) -> None:
    """Leave memory that is free again, and full of NaN, for what the device allocates next."""
    kept = [torch.full((size,), gap(dtype), dtype=dtype, device="cuda") for size in FILL for _ in range(8)]
    del kept


class Argument:
    """An argument on both devices."""

    def __init__(self, values: torch.Tensor, arranged: torch.Tensor, arrangement: str, differentiable: bool) -> None:
        self.exact = values.double() if values.is_floating_point() else values
        self.arranged = arranged
        self.arrangement = arrangement
        self.differentiable = differentiable and values.is_floating_point()

    def __str__(self) -> str:
        shape, dtype = tuple(self.arranged.shape), str(self.arranged.dtype)[6:]
        return f"{dtype}{shape} strides {self.arranged.stride()} ({self.arrangement})"


class Draw:
    """Random choices of one case, whose floating-point tensors have one dtype."""

    def __init__(self, number: int, dtypes: Sequence[torch.dtype]) -> None:
        self.rng = random.Random(number)
        self.dtype = self.rng.choice(dtypes)
        torch.manual_seed(number)

    def of(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)

    def between(self, first: int, last: int) -> int:
        return self.rng.randint(first, last)

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    def size(self) -> int:
        return self.of(SIZES)

    def few(self) -> int:
        return self.of(FEW)

    def shape(self, least: int = 1, most: int = 4) -> List[int]:
        dims = self.between(least, most)
        return [self.size() if dims < 3 else self.few() for _ in range(dims)]

    def partner(self, shape: Sequence[int]) -> List[int]:
        """A shape that broadcasts with `shape`."""
        kept = [size if self.rng.random() < 0.75 else 1 for size in shape]
        return kept[self.between(0, len(kept)) if self.rng.random() < 0.3 else 0 :]

    def numbers(self, *shape: int, dtype: Optional[torch.dtype] = None, positive: bool = False) -> Argument:
        values = torch.rand(shape) + 0.5 if positive else torch.randn(shape)
        return self.argument(values.to(dtype or self.dtype))

    def constants(self, *shape: int, positive: bool = False) -> Argument:
        """Numbers for which no gradient is asked."""
        values = torch.rand(shape) + 0.5 if positive else torch.randn(shape)
        return self.argument(values.to(self.dtype), differentiable=False)

    def places(self, below: int, *shape: int) -> Argument:
        return self.argument(torch.randint(0, below, shape))

    def argument(self, values: torch.Tensor, differentiable: bool = True) -> Argument:
        arranged, arrangement = self.arrange(values)
        return Argument(values, arranged, arrangement, differentiable)

    def arrange(self, values: torch.Tensor) -> Tuple[torch.Tensor, str]:
        """The values on the device, in a random arrangement, and its name."""
        arrangement = self.of(ARRANGEMENTS)
        dims, dtype = values.dim(), values.dtype
        if dims == 0 or (arrangement == "channels last" and dims not in (4, 5)):
            arrangement = ARRANGEMENTS[0]
        if arrangement == "channels last":
            order = torch.channels_last if dims == 4 else torch.channels_last_3d
            return values.cuda().contiguous(memory_format=order), arrangement
        if arrangement == "permuted":
            order_of = self.rng.sample(range(dims), dims)
            back = [order_of.index(dim) for dim in range(dims)]
            return values.permute(order_of).contiguous().cuda().permute(back), arrangement
        view = self.room(values.shape, dtype, arrangement)
        return (values.cuda(), arrangement) if view is None else (view.copy_(values.cuda()), arrangement)

    def room(self, shape: Sequence[int], dtype: torch.dtype, arrangement: str) -> Optional[torch.Tensor]:
        """A view of more memory."""
        if arrangement == "part":
            left_out = [self.between(0, ADDED) for _ in shape]
            whole = torch.full([s + o for s, o in zip(shape, left_out)], gap(dtype), dtype=dtype, device="cuda")
            first = [self.between(0, o) for o in left_out]
            return whole[tuple(slice(f, f + s) for f, s in zip(first, shape))]
        if arrangement == "behind others":
            count, before = int(torch.Size(shape).numel()), self.between(1, ADDED)
            whole = torch.full((count + before,), gap(dtype), dtype=dtype, device="cuda")
            return whole[before:].view(*shape)
        if arrangement == "every second":
            dim = self.between(0, len(shape) - 1)
            wide = [2 * s if d == dim else s for d, s in enumerate(shape)]
            whole = torch.full(wide, gap(dtype), dtype=dtype, device="cuda")
            return whole[(slice(None),) * dim + (slice(None, None, 2),)]
        return None
