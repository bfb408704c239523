"""Triton's driver for the simulated device, which answers as CUDA."""

from typing import Any, Dict

from triton.backends.compiler import GPUTarget
from triton.backends.driver import GPUDriver
from triton.backends.nvidia.launcher import CudaLauncher, cpp_type

# What a benchmark clears between two calls: more than the caches of most hosts hold.
_CACHE_BYTES = 32 << 20


class CudaDriver(GPUDriver):
    """The driver of the device that torch.cuda speaks of."""

    def __init__(self) -> None:
        from triton.backends.nvidia.native import CudaUtils

        self.utils = CudaUtils()
        self.launcher_cls = CudaLauncher
        self._targets: Dict[int, GPUTarget] = {}
        super().__init__()

    def get_current_target(self) -> GPUTarget:
        """Return the target of the current device: CUDA, its capability, its warps of 32 threads."""
        device = self.get_current_device()
        # Every launch asks, and a device does not change.
        target = self._targets.get(device)
        if target is None:
            major, minor = self.get_device_capability(device)
            target = self._targets[device] = GPUTarget("cuda", major * 10 + minor, 32)
        return target

    def get_active_torch_device(self) -> Any:
        """Return the current device as torch writes it."""
        import torch

        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self) -> Any:
        """Return torch's module of the device."""
        import torch

        return torch.cuda

    @staticmethod
    def is_active() -> bool:
        """Return whether there is a device."""
        try:
            import torch
        except ImportError:
            return False
        return torch.cuda.is_available() and torch.version.hip is None

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Return the C++ type of an argument."""
        return cpp_type(ty)

    def get_benchmarker(self) -> Any:
        """Return Triton's own measurement by events."""
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """Return a tensor that a benchmark writes to push others out of the caches."""
        import torch

        return torch.empty(_CACHE_BYTES // 4, dtype=torch.int, device="cuda")

    def clear_cache(self, cache: Any) -> None:
        """Write that tensor."""
        cache.zero_()
