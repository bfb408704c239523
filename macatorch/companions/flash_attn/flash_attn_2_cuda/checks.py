"""What an argument must be, said in upstream's words, and the sizes that a call is about."""

from typing import NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

DTYPES = (torch.float16, torch.bfloat16)
LARGEST_HEAD = 256
# A page of a cache holds a multiple of this many positions, and a rotary embedding turns a multiple of this many
# elements of a head.
PAGE, ROTARY = 256, 16


def require(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def tensor(name: str, value: object) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    return value


def on_device(name: str, value: Tensor) -> None:
    require(value.is_cuda, f"{name} must be on CUDA")


def shape(name: str, value: Tensor, wanted: Sequence[int], words: str) -> None:
    """``words``: the sizes as upstream names them."""
    require(tuple(value.shape) == tuple(wanted), f"{name} must have shape ({words})")


def contiguous(name: str, value: Tensor) -> None:
    require(value.is_contiguous(), f"{name} must be contiguous")


def rows(value: Tensor, whose: str = "Input tensor") -> None:
    require(value.stride(-1) == 1, f"{whose} must have contiguous last dimension")


def operands(query: Tensor, key: Tensor, value: Tensor) -> None:
    """dtype and device of what every call has."""
    dtype = query.dtype
    require(dtype in DTYPES, "FlashAttention only support fp16 and bf16 data type")
    require(key.dtype == dtype, "query and key must have the same dtype")
    require(value.dtype == dtype, "query and value must have the same dtype")
    for name, each in (("q", query), ("k", key), ("v", value)):
        tensor(name, each)
        on_device(name, each)
        rows(each)


def dropout(probability: float, softcap: float, return_softmax: bool = False) -> None:
    require(0 <= probability < 1, "p_dropout < 1.f")
    require(softcap <= 0 or probability == 0, "Softcapping does not support dropout for now")
    require(not return_softmax or probability > 0, "return_softmax is only supported when p_dropout > 0.0")


def heads(batch: int, head: int, query_heads: int, key_heads: int, way: str) -> None:
    """``way``: forward or backward."""
    require(batch > 0, "batch size must be positive")
    require(head <= LARGEST_HEAD, f"FlashAttention {way} only supports head dimension at most {LARGEST_HEAD}")
    require(
        key_heads > 0 and query_heads % key_heads == 0,
        "Number of heads in key/value must divide number of heads in query",
    )


def integers(name: str, value: Tensor, length: int, words: str, device_first: bool = True) -> None:
    """A vector of lengths or indices on the device: int32, dense."""
    require(value.dtype == torch.int32, f"{name} must have dtype int32")
    require(value.is_cuda, f"{name} must be on CUDA" if device_first else f"{name} must be on CUDA device")
    contiguous(name, value)
    shape(name, value, (length,), words)


def table(value: Optional[Tensor], batch: int) -> Optional[Tensor]:
    """A table of pages: (batch, pages of a sequence), int32."""
    if value is None:
        return None
    on_device("block_table", value)
    require(value.dtype == torch.int32, "block_table must have dtype torch.int32")
    require(value.stride(-1) == 1, "block_table must have contiguous last dimension")
    if value.dim() != 2 or value.size(0) != batch:
        raise RuntimeError("block_table must have shape (batch_size, max_num_blocks_per_seq)")
    return value


def slopes(value: Optional[Tensor], batch: int, query_heads: int) -> Optional[Tensor]:
    """ALiBi's slopes: (heads) or (batch, heads), float32."""
    if value is None:
        return None
    require(value.dtype == torch.float32, "ALiBi slopes must have dtype fp32")
    on_device("alibi_slopes", value)
    require(value.stride(-1) == 1, "ALiBi slopes tensor must have contiguous last dimension")
    require(
        tuple(value.shape) in ((query_heads,), (batch, query_heads)),
        f"alibi_slopes must have shape ({query_heads}) or ({batch}, {query_heads}), got {tuple(value.shape)}",
    )
    return value


def result(name: str, given: Optional[Tensor], like: Tensor, words: str, said: str, titles: Tuple[str, str]) -> Tensor:
    """The tensor to write to: the one that was given, or a new one laid out like ``like``.

    ``titles``: how upstream calls it where its dtype (before ``said``) and where its strides are wrong.
    """
    if given is None:
        return torch.empty_like(like)
    require(given.dtype == like.dtype, f"{titles[0]} must have the same dtype as {said}")
    on_device(name, given)
    require(given.stride(-1) == 1, f"{titles[1]} must have contiguous last dimension")
    shape(name, given, like.shape, words)
    return given


class Window(NamedTuple):
    """What a query sees, counted from its own place: so many keys to the left and right; -1: all of them."""

    left: int
    right: int

    @property
    def causal(self) -> bool:
        return self.left < 0 and self.right == 0

    @property
    def open(self) -> bool:
        return self.left < 0 and self.right < 0


def window(left: int, right: int, causal: bool, longest_key: int) -> Window:
    """A limit that reaches over all keys is none."""
    left = -1 if left >= longest_key else left
    right = 0 if causal else -1 if right >= longest_key else right
    return Window(max(left, -1), max(right, -1))
