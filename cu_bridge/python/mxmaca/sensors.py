"""What NVML says of a simulated device: how busy it is, and the readings that follow from that."""

import functools
import pathlib
from typing import Any, NamedTuple, Optional, Tuple

from mxmaca import lib_dir

DECLARATIONS = """
typedef struct { unsigned int gpu, memory; } Utilization;
int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *version, unsigned int length);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
int nvmlDeviceGetUtilizationRates(void *device, Utilization *utilization);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *milliwatts);
int nvmlDeviceGetPerformanceState(void *device, int *state);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned int *megahertz);
int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned int *megahertz);
"""
GRAPHICS, MULTIPROCESSORS, MEMORY = range(3)  # types of clocks


class Readings(NamedTuple):
    """A device's readings at one moment. All but the first two follow from them and the device's profile.

    Utilizations are in percent, temperatures in degrees Celsius, power in watts, clocks in MHz (now, and the largest).
    """

    utilization: int
    memory_utilization: int
    temperature: int
    power: float
    power_limit: float
    performance_state: int
    clock: Tuple[int, int]
    memory_clock: Tuple[int, int]


@functools.lru_cache(maxsize=None)
def _nvml() -> Optional[Tuple[Any, Any]]:
    """Return the cffi interface and the initialised library, or None where there is none."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS)
    libraries = sorted(pathlib.Path(lib_dir(13)).glob("libnvidia-ml.so.*"))
    if not libraries:
        return None
    library = ffi.dlopen(str(libraries[0]))
    return None if library.nvmlInit_v2() else (ffi, library)


def driver_version() -> Optional[str]:
    """Return the version that the driver has for NVML's callers, or None if that cannot be found out."""
    loaded = _nvml()
    if loaded is None:
        return None
    ffi, library = loaded
    text = ffi.new("char[80]")
    return None if library.nvmlSystemGetDriverVersion(text, 80) else str(ffi.string(text).decode())


def readings(index: int) -> Optional[Readings]:
    """Return what the device of this number (before CUDA_VISIBLE_DEVICES) shows, or None if it cannot be asked.

    Measures for a moment (0.05 s), as the device has no counter of its own.
    """
    loaded = _nvml()
    if loaded is None:
        return None
    ffi, library = loaded
    device = ffi.new("void **")
    rates = ffi.new("Utilization *")
    if library.nvmlDeviceGetHandleByIndex_v2(index, device):
        return None
    if library.nvmlDeviceGetUtilizationRates(device[0], rates):
        return None

    def ask(function: str, *arguments: int, kind: str = "unsigned int *") -> int:
        target = ffi.new(kind)
        status = getattr(library, function)(device[0], *arguments, target)
        if status:
            raise OSError(f"{function} of device {index} failed with status {status}")
        return int(target[0])

    def clocks(kind: int) -> Tuple[int, int]:
        return ask("nvmlDeviceGetClockInfo", kind), ask("nvmlDeviceGetMaxClockInfo", kind)

    return Readings(
        utilization=int(rates.gpu),
        memory_utilization=int(rates.memory),
        temperature=ask("nvmlDeviceGetTemperature", 0),
        power=ask("nvmlDeviceGetPowerUsage") / 1000,
        power_limit=ask("nvmlDeviceGetEnforcedPowerLimit") / 1000,
        performance_state=ask("nvmlDeviceGetPerformanceState", kind="int *"),
        clock=clocks(MULTIPROCESSORS),
        memory_clock=clocks(MEMORY),
    )
