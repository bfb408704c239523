"""Device memory read where it lies.

The memory of the simulated device is the host's, and work on it is done when its launch returns (docs/runtime.md). So
the recorder looks at its tensors as at those of the CPU: nothing is copied, and there is nothing to wait for. The
memory of any other device is copied.
"""

import ctypes
from typing import Any

import torch

# The version of the simulated device that this torch was built for.
_SIMULATED = getattr(torch.version, "maca", None) is not None


def lies_there(tensor: Any) -> bool:
    """Whether the bytes at a tensor's address are the host's."""
    return bool(tensor.is_cpu or (_SIMULATED and tensor.is_cuda))


def seen_from_host(tensor: Any) -> Any:
    """A tensor of the CPU over the same bytes, or the tensor itself where there is no such.

    It does not keep the memory: whoever reads it must hold the tensor.
    """
    if not _SIMULATED or tensor.device.type != "cuda" or tensor.layout != torch.strided or tensor.is_quantized:
        return tensor
    if tensor.is_conj() or tensor.is_neg():
        return tensor
    shape, strides = tensor.shape, tensor.stride()
    if tensor.numel() == 0:
        return torch.empty_strided(shape, strides, dtype=tensor.dtype, device="cpu")
    span = 1 + sum((length - 1) * stride for length, stride in zip(shape, strides))
    memory = (ctypes.c_char * (span * tensor.element_size())).from_address(tensor.data_ptr())
    try:
        return torch.frombuffer(memory, dtype=tensor.dtype, count=span).as_strided(shape, strides)
    except (RuntimeError, TypeError, ValueError):
        # A dtype that this torch makes of no buffer.
        return tensor
