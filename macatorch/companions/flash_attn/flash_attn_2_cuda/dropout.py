"""Places in the device's random stream, and the numbers that dropout draws from there.

A pass takes a place (seed, offset) once and returns it as ``rng_state``; the backward pass draws the same numbers from
it. Numbers are drawn block by block, so both passes must divide their work alike.
"""

from typing import Optional

import torch
from torch import Tensor

# Upstream's kernels advance the stream by this for each head of each sequence.
PER_HEAD = 32


def draw_place(device: torch.device, heads: int, generator: Optional[torch.Generator]) -> Tensor:
    """Take a place and move the generator on. Returns (seed, offset), int64, on the device."""
    if generator is None:
        index = torch.cuda.current_device() if device.index is None else device.index
        generator = torch.cuda.default_generators[index]
    state = generator.get_state()
    place = state.view(torch.int64).clone()
    # CUDA's generators count in fours.
    state.view(torch.int64)[1] += (heads * PER_HEAD + 3) // 4 * 4
    generator.set_state(state)
    return place.to(device)


def no_place(device: torch.device) -> Tensor:
    return torch.zeros(2, dtype=torch.int64, device=device)


class Dropout:
    """The numbers of one pass, from the place on where it starts."""

    def __init__(self, probability: float, place: Tensor) -> None:
        self.probability = probability
        self._generator = torch.Generator(device=place.device)
        self._generator.set_state(place.to(device="cpu", dtype=torch.int64).contiguous().view(torch.uint8))

    def kept(self, like: Tensor) -> Tensor:
        """Which elements of the next block stay: bool, of the shape of ``like``."""
        numbers = torch.rand(like.shape, generator=self._generator, device=like.device, dtype=torch.float32)
        return numbers >= self.probability

    @property
    def scale(self) -> float:
        return 1 / (1 - self.probability)
