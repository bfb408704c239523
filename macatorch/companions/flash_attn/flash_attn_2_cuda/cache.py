"""Caches of keys and values: pages, new entries, rotary embedding.

Everything that depends on lengths which lie on the device is computed there. So a step of decoding can be captured in
a graph, and a launch of it reads the lengths of that time.
"""

from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor


class Cache(NamedTuple):
    """Keys and values, (sequences or pages, positions, K, E), and where each sequence of the batch lies in them.

    ``table``: its pages, (B, pages); ``sequence``: its sequence, (B). With neither it is the one of the same number.
    """

    key: Tensor
    value: Tensor
    table: Optional[Tensor] = None
    sequence: Optional[Tensor] = None

    @property
    def capacity(self) -> int:
        return int(self.key.size(1) * (1 if self.table is None else self.table.size(1)))

    def append(self, key: Tensor, value: Tensor, positions: Tensor) -> None:
        """Write new entries, (B, n, K, E), to those positions of each sequence, (B, n)."""
        if self.table is not None:
            size = self.key.size(1)
            first = self.table.long().gather(1, positions // size)
            positions = positions % size
        elif self.sequence is not None:
            first = self.sequence.long().unsqueeze(1).expand_as(positions)
        else:
            first = torch.arange(positions.size(0), device=positions.device).unsqueeze(1).expand_as(positions)
        self.key.index_put_((first, positions), key)
        self.value.index_put_((first, positions), value)

    def read(self, longest: int, ends: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        """Keys and values of the batch, (B, at least ``longest``, K, E).

        ``ends``: how far each sequence reaches, (B); a page behind that may have any number in the table.
        """
        if self.table is not None:
            return _pages(self.key, self.table, longest, ends), _pages(self.value, self.table, longest, ends)
        key, value = self.key[:, :longest], self.value[:, :longest]
        if self.sequence is not None:
            return key.index_select(0, self.sequence), value.index_select(0, self.sequence)
        return key, value


def _pages(pages: Tensor, table: Tensor, longest: int, ends: Optional[Tensor]) -> Tensor:
    size = pages.size(1)
    table = table[:, : max(1, (longest + size - 1) // size)].long()
    if ends is not None:
        used = torch.arange(table.size(1), device=table.device) * size < ends.unsqueeze(1)
        table = table.where(used, torch.zeros_like(table))
    return pages[table].flatten(1, 2)


class Rotary(NamedTuple):
    """Cosines and sines, (positions, half of what is turned). ``interleaved``: pairs are neighbours, not halves."""

    cos: Tensor
    sin: Tensor
    interleaved: bool

    def turned(self, tensor: Tensor, positions: Tensor) -> Tensor:
        """``tensor`` (B, n, heads, E), turned by its positions, (B, n), in float32 and rounded."""
        cos, sin = (table[positions].unsqueeze(2).float() for table in (self.cos, self.sin))
        half = cos.size(-1)
        turning, rest = tensor[..., : 2 * half].float(), tensor[..., 2 * half :]
        if self.interleaved:
            first, second = turning.unflatten(-1, (half, 2)).unbind(-1)
        else:
            first, second = turning.chunk(2, -1)
        results = (first * cos - second * sin, first * sin + second * cos)
        turned = torch.stack(results, -1).flatten(-2) if self.interleaved else torch.cat(results, -1)
        return torch.cat((turned.to(tensor.dtype), rest), -1)
