"""The SDK's functions for Triton: loading and launching kernels, attributes of devices."""

import ctypes
from typing import Any, Dict, Tuple

import mxmaca
from triton.backends.nvidia.release import HAS_KNOBS

# CUDA's numbers of the attributes, by the names that Triton gives them.
_ATTRIBUTES = {
    "max_shared_mem": 97,
    "max_num_regs": 12,
    "multiprocessor_count": 16,
    "warpSize": 10,
    "sm_clock_rate": 13,
    "mem_clock_rate": 36,
    "mem_bus_width": 37,
}


def _load() -> Tuple[Any, Any, Any, Any]:
    # Kept alive by its own handle: the functions are of that library.
    library = ctypes.PyDLL(str(mxmaca.root() / "lib" / "libmctriton.so"))
    functions = library.mcTritonFunctions
    functions.argtypes = []
    functions.restype = ctypes.py_object
    return functions()


make_launcher, _load_binary, _device_attribute, _unload_module = _load()


class CudaUtils:
    """What Triton and Inductor ask of a driver."""

    def get_device_properties(self, device: int) -> Dict[str, int]:
        """Return the facts of a device that compilation and benchmarks go by."""
        return {name: _device_attribute(device, number) for name, number in _ATTRIBUTES.items()}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> Tuple[int, ...]:
        """Load a compiled kernel: module, function, registers, spilled words and, in newer releases, most threads.

        Raises:
            RuntimeError: CUDA's error.
        """
        loaded = _load_binary(name, kernel, shared, device)
        return loaded if HAS_KNOBS else loaded[:4]

    def unload_module(self, module: int) -> None:
        """Give the memory of a loaded kernel back, once the device has done what it has to do.

        Raises:
            RuntimeError: CUDA's error; also one that work before has left.
        """
        _unload_module(module)

    def set_printf_fifo_size(self, size: int) -> None:
        """Take the size of a buffer that does not exist here: what kernels print goes out at once."""
        if size <= 0:
            raise RuntimeError("Triton Error [CUDA]: invalid argument")

    def __getattr__(self, name: str) -> Any:
        known = ("cuOccupancyMaxActiveClusters", "fill_1d_tma_descriptor", "fill_2d_tma_descriptor")
        if name in known or name.startswith("fill_tma_descriptor"):
            raise NotImplementedError(f"{name}: a device of capability 8.0 has neither clusters nor tensor maps")
        raise AttributeError(name)
