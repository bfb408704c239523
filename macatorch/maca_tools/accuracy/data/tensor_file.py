"""Files that torch.load reads, written tensor by tensor.

torch.save would need all tensors of a file at once, and copies each of them twice on its way. Here a tensor is fetched
when its turn comes, goes straight from its memory to the disk, and is let go.

The format is torch's own (PyTorch: torch/serialization.py, "zipfile-based file format"): an uncompressed zip archive
with a pickle of protocol 2 in which a storage is a persistent id, and the bytes of each storage in a member of its own.
"""

import collections
import contextlib
import ctypes
import io
import os
import pickle
import struct
import sys
from typing import Any, Iterable, Iterator, List, Optional, Tuple

import torch

from maca_tools.accuracy.data import buffers, checksum
from maca_tools.accuracy.data.direct_file import DirectFile

_zipfile = checksum.zipfile_module()
# A part that stays in the processor's cache between the checksum and the copy.
_CHUNK = 1 << 19
# What comes from a device at a time.
_PIECE = 4 << 20
# Files of fewer bytes of tensors are written through the page cache.
_PAST_THE_CACHE = 1 << 20
_ALIGNMENT = 64
_LOCAL_HEADER = 30
_ZIP64_HEADER = 20
_STORAGES = {
    torch.float64: "DoubleStorage", torch.float32: "FloatStorage", torch.float16: "HalfStorage",
    torch.bfloat16: "BFloat16Storage", torch.int64: "LongStorage", torch.int32: "IntStorage",
    torch.int16: "ShortStorage", torch.int8: "CharStorage", torch.uint8: "ByteStorage", torch.bool: "BoolStorage",
    torch.complex64: "ComplexFloatStorage", torch.complex128: "ComplexDoubleStorage",
}  # fmt: skip


class Tensor:
    """A tensor to be written: on any device, of any strides. Files have those strides only if no element lies twice."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


class _Storage:
    __slots__ = ("key", "kind", "elements")

    def __init__(self, key: int, kind: Any, elements: int) -> None:
        self.key, self.kind, self.elements = key, kind, elements


class _Pickler(pickle.Pickler):
    """Notes each tensor that it meets; its bytes follow in a member of their own."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=2)
        # No memory of what was written: a half of the opcodes, and so of the time that loading takes.
        self.fast = True
        self.tensors: List[Any] = []

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return NotImplemented
        tensor = value.tensor
        kind = getattr(torch, _STORAGES[tensor.dtype])
        self.tensors.append(tensor)
        storage = _Storage(len(self.tensors) - 1, kind, tensor.numel())
        strides = tuple(tensor.stride()) if buffers.dense(tensor) else _row_major(tensor.shape)
        arguments: Tuple[Any, ...] = (storage, 0, tuple(tensor.shape), strides, False, collections.OrderedDict())
        return torch._utils._rebuild_tensor_v2, arguments

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, _Storage):
            return ("storage", value.kind, str(value.key), "cpu", value.elements)
        return None


def _row_major(shape: Any) -> Tuple[int, ...]:
    strides: List[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= max(int(length), 1)
    return tuple(strides)


def fetch(tensor: Any) -> Tuple[Any, Any]:
    """The values on the CPU, the tensor's own memory where it lies there; and a buffer to give back."""
    found = tensor.detach()
    if found.device.type == "cpu" and not _lazy(found):
        return found, None
    return buffers.copy(found)


def _lazy(tensor: Any) -> bool:
    """Whether its memory does not hold its values: a conjugate or negative that is only noted."""
    return any(getattr(tensor, ask, bool)() for ask in ("is_conj", "is_neg"))


def save(content: Any, path: str) -> Tuple[int, Optional[DirectFile]]:
    """Write plain data with Tensor objects in it. Raises OSError.

    Gives the file's size in bytes, and what to wait() for where its end is still on the way to the disk; the tensors
    are not needed for that any more.
    """
    pickled = io.BytesIO()
    pickler = _Pickler(pickled)
    try:
        pickler.dump(content)
    except KeyError:
        # A dtype that has no storage class of its own, such as float8.
        torch.save(_plain(content), path)
        return os.path.getsize(path), None
    size = sum(tensor.numel() * tensor.element_size() for tensor in pickler.tensors)
    if size < _PAST_THE_CACHE:
        return _save_whole(path, pickled.getbuffer(), pickler.tensors), None
    direct = DirectFile(path)
    try:
        _archive(direct, pickled.getbuffer(), pickler.tensors)
        written = direct.tell()
        direct.end()
    except BaseException:
        with contextlib.suppress(OSError):
            direct.close()
        raise
    return written, direct


def save_plain(content: Any, path: str) -> int:
    """save() for data without Tensor objects: nothing of Python is called for each number and text in it."""
    pickled = io.BytesIO()
    pickler = pickle.Pickler(pickled, protocol=2)
    pickler.fast = True
    pickler.dump(content)
    return _save_whole(path, pickled.getbuffer(), [])


def _save_whole(path: str, pickled: memoryview, tensors: List[Any]) -> int:
    """The same archive as _archive's in one write; for what is small, where zipfile takes longer than all the rest."""
    members: List[Tuple[str, Iterable[memoryview]]] = [
        ("archive/data.pkl", [pickled]),
        ("archive/byteorder", [memoryview(sys.byteorder.encode())]),
        *[(f"archive/data/{key}", _bytes(tensor)) for key, tensor in enumerate(tensors)],
        ("archive/version", [memoryview(b"3\n")]),
    ]
    data, directory = bytearray(), bytearray()
    for name, parts in members:
        start, text = len(data), name.encode()
        padding = -(start + _LOCAL_HEADER + len(text) + 4) % _ALIGNMENT
        extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
        data += bytes(_LOCAL_HEADER) + text + extra
        first = len(data)
        for part in parts:
            data += part
        length = len(data) - first
        with memoryview(data) as view:
            crc = checksum.crc32(view[first:])
        # Version 2.0, no flags, stored; 1980-01-01, which is the first day that the format knows.
        common = struct.pack("<5H3L2H", 20, 0, 0, 0, 33, crc, length, length, len(text), len(extra))
        data[start : start + _LOCAL_HEADER] = b"PK\3\4" + common
        directory += b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<3H2L", 0, 0, 0, 0, start) + text + extra
    data += (
        directory + b"PK\5\6" + struct.pack("<4H2LH", 0, 0, len(members), len(members), len(directory), len(data), 0)
    )
    with open(path, "wb", buffering=0) as file:
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]
    return len(data)


def _archive(file: Any, pickled: memoryview, tensors: List[Any]) -> None:
    with _zipfile.ZipFile(file, "w", _zipfile.ZIP_STORED) as archive:
        _member(archive, file, "archive/data.pkl", len(pickled), [pickled])
        _member(archive, file, "archive/byteorder", len(sys.byteorder), [memoryview(sys.byteorder.encode())])
        for key, tensor in enumerate(tensors):
            _member(archive, file, f"archive/data/{key}", tensor.numel() * tensor.element_size(), _bytes(tensor))
        _member(archive, file, "archive/version", 2, [memoryview(b"3\n")])


def _bytes(tensor: Any) -> Iterator[memoryview]:
    """The bytes of a tensor in the order of its memory; from a device they come in pieces, through the same memory."""
    found = tensor.detach()
    size = found.element_size()
    if found.device.type == "cpu" or _lazy(found) or not buffers.dense(found):
        values, buffer = fetch(found)
        yield _memory(values if buffers.dense(values) else values.contiguous())
        del values
        buffers.give(buffer)
        return
    flat = found.as_strided((found.numel(),), (1,), found.storage_offset())
    room, buffer = buffers.scratch(_PIECE)
    for at in range(0, found.numel(), _PIECE // size):
        piece = flat[at : at + _PIECE // size]
        values = room[: piece.numel() * size].view(found.dtype)
        values.copy_(piece)
        yield _memory(values)
    buffers.give(buffer)


def _memory(values: Any) -> memoryview:
    size = values.numel() * values.element_size()
    return memoryview((ctypes.c_char * size).from_address(values.data_ptr())).cast("B") if size else memoryview(b"")


def _member(archive: Any, file: Any, name: str, size: int, parts: Iterable[memoryview]) -> None:
    entry = _zipfile.ZipInfo(name)
    entry.file_size = size
    large = size * 1.05 > _zipfile.ZIP64_LIMIT
    # Padding, so that a file that is mapped has each storage at an address that processors like.
    start = file.tell() + _LOCAL_HEADER + len(name) + 4 + (_ZIP64_HEADER if large else 0)
    padding = -start % _ALIGNMENT
    entry.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    with archive.open(entry, "w", force_zip64=large) as member:
        for data in parts:
            for at in range(0, len(data), _CHUNK):
                member.write(data[at : at + _CHUNK])


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tensor.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(part) for part in value)
    return value
