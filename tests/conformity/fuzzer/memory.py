"""Tensors' memory, read and written without a call of torch's device operators: they are what is under test."""

from __future__ import annotations

import ctypes
from typing import Any

import torch


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether there is memory of its own; a tensor that has left a transform has none."""
    try:
        tensor.untyped_storage().data_ptr()
    except RuntimeError:
        return False
    return True


def storage_bytes(tensor: torch.Tensor) -> bytes:
    """The whole storage; none of a transform's tensor. Memory of the simulated device is the host's."""
    storage = tensor.untyped_storage()
    if not has_memory(tensor):
        return b""
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""


def element_bytes(tensor: torch.Tensor) -> bytes:
    """The elements as they are stored, one after the other; a storage may have more."""
    if not has_memory(tensor):
        return b""
    storage = tensor.untyped_storage()
    stored = over(tensor, storage.data_ptr(), storage.nbytes(), bits=False)
    return storage_bytes(stored.reshape(-1).clone())


def host_view(tensor: torch.Tensor) -> torch.Tensor:
    """A device's tensor as one on the host over the same memory."""
    storage = tensor.untyped_storage()
    return over(tensor, storage.data_ptr(), storage.nbytes())


def over(tensor: torch.Tensor, address: int, size: int, bits: bool = True) -> torch.Tensor:
    """A host tensor with the geometry and bits of ``tensor`` over other memory, which must outlive it."""
    if tensor.numel() == 0:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    block: Any = (ctypes.c_char * size).from_address(address)
    whole = torch.frombuffer(block, dtype=torch.uint8)[: size // tensor.element_size() * tensor.element_size()]
    view = whole.view(tensor.dtype).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    if bits and tensor.is_conj():
        view = view.conj()
    return torch._neg_view(view) if bits and tensor.is_neg() else view


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements of a small tensor lie at one place."""
    if tensor.layout != torch.strided or tensor.is_contiguous():
        return False
    places = torch.tensor([0])
    for size, stride in zip(tensor.shape, tensor.stride()):
        places = (places[:, None] + torch.arange(size)[None] * stride).flatten()
    return places.unique().numel() < places.numel()


def from_bytes(tensor: torch.Tensor, content: bytes) -> torch.Tensor:
    """A host tensor with the geometry and bits of ``tensor``, whose storage held ``content``; a copy of its own."""
    if tensor.numel() == 0:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    size = len(content) // tensor.element_size() * tensor.element_size()
    whole = torch.frombuffer(bytearray(content[:size]), dtype=tensor.dtype)
    view = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    if tensor.is_conj():
        view = view.conj()
    return torch._neg_view(view) if tensor.is_neg() else view


def overwrite(target: torch.Tensor, source: torch.Tensor) -> None:
    """Give a storage the content of another one, without a trace in versions or graphs."""
    if not (has_memory(target) and has_memory(source)):
        return
    to, from_ = target.untyped_storage(), source.untyped_storage()
    size = min(to.nbytes(), from_.nbytes())
    if size:
        ctypes.memmove(to.data_ptr(), from_.data_ptr(), size)
