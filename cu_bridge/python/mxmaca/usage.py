"""How the simulated devices are used, as a table: what mx-smi and nvidia-smi show."""

import os
import pathlib
from typing import List, Optional

from mxmaca import __version__, lib_dir
from mxmaca.runtime import Device

WIDTH = 79
DEVICE_ROW = "{:<4} {:<20} {:<18} {:>20} {:>8}"
PROCESS_ROW = "{:<4} {:>10}   {:<38} {:>14}"


def _mebibytes(size: int) -> str:
    return f"{size >> 20}MiB"


def process_name(pid: int) -> str:
    """Return the path of a process's program, or "?"."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return "?"


def utilization(index: int) -> Optional[int]:
    """Return how busy a device is, in percent of the host's processors; None if that cannot be found out.

    Measures for a moment (0.05 s), as the device has no counter of its own.
    """
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(
        """
        typedef struct { unsigned int gpu, memory; } Utilization;
        int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
        int nvmlDeviceGetUtilizationRates(void *device, Utilization *utilization);
        """
    )
    libraries = sorted(pathlib.Path(lib_dir(13)).glob("libnvidia-ml.so.*"))
    if not libraries:
        return None
    nvml = ffi.dlopen(str(libraries[0]))
    device = ffi.new("void **")
    rates = ffi.new("Utilization *")
    if nvml.nvmlDeviceGetHandleByIndex_v2(index, device) or nvml.nvmlDeviceGetUtilizationRates(device[0], rates):
        return None
    return int(rates.gpu)


def _row(text: str) -> str:
    return f"| {text[: WIDTH - 4]:<{WIDTH - 4}} |"


def table(devices: List[Device]) -> str:
    """Format devices and their processes as a table."""
    line = "+" + "-" * (WIDTH - 2) + "+"
    double = line.replace("-", "=")
    rows = [line, _row(f"mx-smi {__version__}        simulated MXMACA devices: {len(devices)}"), line]
    rows += [_row(DEVICE_ROW.format("GPU", "Name", "Bus-Id", "Memory-Usage", "GPU-Util")), double]
    for device in devices:
        busy = utilization(device.ordinal)
        memory = f"{_mebibytes(device.memory_used)} / {_mebibytes(device.memory_total)}"
        share = "N/A" if busy is None else f"{busy}%"
        rows.append(_row(DEVICE_ROW.format(device.ordinal, device.name, device.pci_bus_id, memory, share)))
    rows += [line, _row(PROCESS_ROW.format("GPU", "PID", "Process", "Memory")), double]
    uses = [(device, use) for device in devices for use in device.processes]
    for device, use in uses:
        name = process_name(use.pid)
        rows.append(_row(PROCESS_ROW.format(device.ordinal, use.pid, name[-38:], _mebibytes(use.memory))))
    if not uses:
        rows.append(_row("No running processes found"))
    return "\n".join([*rows, line])
