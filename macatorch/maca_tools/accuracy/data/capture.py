"""Copies of what an operator read or wrote: tensors anywhere in nested Python data, as plain tensors and plain data.

What is stored must load with weights_only=True in every release of torch, so containers become list, tuple and dict,
a sparse, quantised or nested tensor becomes a dict of its dense parts, and any other object a text that names its type.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch

from maca_tools.accuracy.data import buffers, host_memory, tensor_file

KIND = "__tensor_kind__"
_MAX_DEPTH = 12
_MAX_TEXT = 2000


class Copied:
    """A CPU copy of a tensor (or the tensor, see copy_values), with what the copy does not show of the original."""

    __slots__ = ("tensor", "dtype", "stride", "device", "requires_grad", "buffer", "place", "owner")

    def __init__(
        self,
        tensor: Any,
        dtype: str,
        stride: List[int],
        device: str,
        requires_grad: bool,
        buffer: Any = None,
        place: Any = None,
        owner: Any = None,
    ) -> None:
        self.tensor, self.dtype, self.stride, self.device = tensor, dtype, stride, device
        self.requires_grad, self.buffer, self.place = requires_grad, buffer, place
        # What holds the memory of a tensor that is not a copy.
        self.owner = owner


def _dense(tensor: Any, device: str, live: bool) -> Copied:
    plain = tensor.detach()
    if type(plain) is not torch.Tensor:
        plain = plain.as_subclass(torch.Tensor)
    there = host_memory.seen_from_host(plain)
    copy, buffer = (there, None) if live else buffers.copy(there)
    dtype = str(tensor.dtype).replace("torch.", "")
    owner = plain if live else None
    return Copied(copy, dtype, list(tensor.stride()), device, bool(tensor.requires_grad), buffer, _place(plain), owner)


def _place(tensor: Any) -> Any:
    """Address and version of a tensor, None where it counts no versions. See summary.Seen."""
    try:
        return tensor.data_ptr(), int(tensor._version)
    except (RuntimeError, NotImplementedError):
        return None


_functorch = getattr(torch._C, "_functorch", None)
_is_wrapped = getattr(_functorch, "is_functorch_wrapped_tensor", lambda _tensor: False)
_transform = getattr(_functorch, "peek_interpreter_stack", lambda: None)


def has_values(tensor: Any) -> bool:
    """False for what stands for a tensor: a fake one, and any inside of vmap and the other torch.func transforms.

    There whatever is computed of a tensor is wrapped, too, and cannot be read.
    """
    return not (type(tensor).__module__.startswith("torch._subclasses") or _is_wrapped(tensor) or _transform())


def _tensor(tensor: Any, live: bool) -> Any:
    if not has_values(tensor):
        return {KIND: "unreadable", "type": type(tensor).__name__, "why": "it has no values of its own"}
    try:
        device = str(tensor.device)
        if tensor.device.type == "meta":
            return {KIND: "meta", "dtype": str(tensor.dtype), "shape": list(tensor.shape)}
        if getattr(tensor, "is_nested", False):
            return {KIND: "nested", "parts": [_tensor(part, live) for part in tensor.detach().unbind()]}
        if tensor.is_quantized:
            plain: Dict[str, Any] = {
                KIND: "quantized",
                "qscheme": str(tensor.qscheme()),
                "int": _dense(tensor.detach().int_repr(), device, live),
            }
            if "channel" in str(tensor.qscheme()):
                plain.update(
                    scale=_dense(tensor.q_per_channel_scales(), device, live),
                    zero_point=_dense(tensor.q_per_channel_zero_points(), device, live),
                )
            else:
                plain.update(scale=tensor.q_scale(), zero_point=tensor.q_zero_point())
            return plain
        if tensor.layout == torch.sparse_coo:
            whole = tensor.detach().coalesce()
            return {
                KIND: "sparse_coo",
                "shape": list(tensor.shape),
                "indices": _dense(whole.indices(), device, live),
                "values": _dense(whole.values(), device, live),
            }
        if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            return {
                KIND: "sparse_csr",
                "shape": list(tensor.shape),
                "crow": _dense(tensor.crow_indices(), device, live),
                "col": _dense(tensor.col_indices(), device, live),
                "values": _dense(tensor.detach().values(), device, live),
            }
        if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            return {
                KIND: "sparse_csc",
                "shape": list(tensor.shape),
                "ccol": _dense(tensor.ccol_indices(), device, live),
                "row": _dense(tensor.row_indices(), device, live),
                "values": _dense(tensor.detach().values(), device, live),
            }
        if tensor.layout != torch.strided:
            return {KIND: "mkldnn", "dense": _dense(tensor.detach().to_dense(), device, live)}
        return _dense(tensor, device, live)
    except (RuntimeError, NotImplementedError, TypeError, AttributeError) as error:
        # A fake, functorch or otherwise wrapped tensor has no values of its own to copy.
        return {KIND: "unreadable", "type": type(tensor).__name__, "why": str(error).split("\n")[0][:200]}


class Summaries(NamedTuple):
    """Plain data with the summary of each tensor in its place, and dtype and shape of each in the same order."""

    values: Any
    signature: List[Any]


def copy_values(value: Any, live: bool = False) -> Any:
    """A copy in which every tensor is a Copied; nothing of it shares memory with the original.

    With live, the tensors are the originals: for what is written before anything can change it.
    """
    return _plain(value, lambda tensor: _tensor(tensor, live), 0)


def summaries(value: Any, seen: Any) -> Summaries:
    """The same with a summary for every tensor and every Copied, by way of seen; nothing is copied for it.

    Parts that are Summaries already stay what they are.
    """
    signature: List[Any] = []

    def summary_of(tensor: Any) -> Any:
        if isinstance(tensor, Summaries):
            signature.extend(tensor.signature)
            return tensor.values
        if isinstance(tensor, Copied):
            found = stored(tensor, 1, [], seen)
            release(tensor)
        else:
            found = seen.of_plain(tensor) if has_values(tensor) else None
            if found is None:
                found = stored(_tensor(tensor, True), 1, [], seen)
        _sign(found, signature)
        return found

    return Summaries(_plain(value, summary_of, 0), signature)


def _sign(value: Dict[str, Any], signature: List[Any]) -> None:
    """Append dtype and shape of what stands for a tensor, or of each of its dense parts."""
    if value.get(KIND) == "summary":
        signature.append([value["dtype"], value["shape"]])
        return
    for part in value.values():
        for entry in part if isinstance(part, list) else [part]:
            if isinstance(entry, dict):
                _sign(entry, signature)


def _plain(value: Any, leaf: Callable[[Any], Any], depth: int) -> Any:
    """Nested data with leaf(part) for each tensor, Copied and Summaries; what needs more than plain data is text."""
    if isinstance(value, (torch.Tensor, Copied, Summaries)):
        return leaf(value)
    if value is None or isinstance(value, (bool, int, float, complex)):
        # Subclasses (numpy scalars, enums) would need more than plain data to load.
        for plain in (bool, int, float, complex):
            if isinstance(value, plain):
                return plain(value)  # type: ignore[arg-type]
        return None
    if isinstance(value, str):
        return str(value)[:_MAX_TEXT]
    if depth >= _MAX_DEPTH:
        return f"<{type(value).__name__}>"
    if isinstance(value, (list, torch.Size)):
        return [_plain(part, leaf, depth + 1) for part in value]
    if isinstance(value, tuple):
        return tuple(_plain(part, leaf, depth + 1) for part in value)
    if isinstance(value, dict):
        return {str(key): _plain(part, leaf, depth + 1) for key, part in value.items()}
    if isinstance(value, slice):
        return {"__slice__": [_plain(part, leaf, depth + 1) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, torch.dtype):
        return {"__dtype__": str(value)}
    if isinstance(value, torch.device):
        return {"__device__": str(value)}
    if value is Ellipsis:
        return {"__ellipsis__": True}
    return f"<{type(value).__module__}.{type(value).__name__}>"


def release(value: Any) -> None:
    """Give the memory of a copy back; it must not be read again."""
    if isinstance(value, Copied):
        buffer, value.tensor, value.buffer, value.owner = value.buffer, None, None, None
        buffers.give(buffer)
    elif isinstance(value, dict):
        for part in value.values():
            release(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            release(part)


def size(value: Any) -> int:
    """Bytes of the tensors in a copy."""
    if isinstance(value, Copied):
        return int(value.tensor.numel() * value.tensor.element_size())
    if isinstance(value, dict):
        return sum(size(part) for part in value.values())
    if isinstance(value, (list, tuple)):
        return sum(size(part) for part in value)
    return 0


def tensor_bytes(tensors: List[Any]) -> int:
    """Bytes of dense copies of tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors if not getattr(tensor, "is_nested", False))


def stored(value: Any, level: int, layout: List[Dict[str, Any]], seen: Any, path: str = "") -> Any:
    """What the file gets: at level 2 tensors, with a line of layout for each; at level 1 summaries, by way of seen."""
    if isinstance(value, Copied):
        if level >= 2:
            layout.append(
                {
                    "path": path,
                    "dtype": value.dtype,
                    "shape": list(value.tensor.shape),
                    "stride": value.stride,
                    "device": value.device,
                    "requires_grad": value.requires_grad,
                }
            )
            return tensor_file.Tensor(value.tensor)
        # What is in one piece comes from the device piece by piece.
        whole, buffer = (value.tensor, None) if value.tensor.is_contiguous() else tensor_file.fetch(value.tensor)
        found = seen.summary(whole, value.dtype, value.stride, value.device, value.place)
        del whole
        buffers.give(buffer)
        return found
    if isinstance(value, dict):
        return {key: stored(part, level, layout, seen, f"{path}.{key}" if path else key) for key, part in value.items()}
    if isinstance(value, list):
        return [stored(part, level, layout, seen, f"{path}[{index}]") for index, part in enumerate(value)]
    if isinstance(value, tuple):
        return tuple(stored(part, level, layout, seen, f"{path}[{index}]") for index, part in enumerate(value))
    return value


def tensors_in(value: Any, depth: int = 0) -> List[Any]:
    """The tensors in nested data, in a fixed order."""
    if isinstance(value, torch.Tensor):
        return [value]
    found: List[Any] = []
    if depth < _MAX_DEPTH:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for part in value:
                if isinstance(part, torch.Tensor):
                    found.append(part)
                elif isinstance(part, (list, tuple, dict)):
                    found.extend(tensors_in(part, depth + 1))
    return found


def paths_of_tensors(value: Any, path: str = "", depth: int = 0) -> List[Tuple[str, Any]]:
    """Like tensors_in, with the path of each."""
    if isinstance(value, torch.Tensor):
        return [(path, value)]
    found: List[Tuple[str, Any]] = []
    if depth >= _MAX_DEPTH:
        return found
    if isinstance(value, dict):
        for key, part in value.items():
            found.extend(paths_of_tensors(part, f"{path}.{key}" if path else str(key), depth + 1))
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            found.extend(paths_of_tensors(part, f"{path}[{index}]", depth + 1))
    return found
