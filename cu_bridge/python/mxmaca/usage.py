"""How the simulated devices are used, as a table: what mx-smi and nvidia-smi show."""

import os
from typing import List

from mxmaca import __version__
from mxmaca.runtime import Device
from mxmaca.sensors import readings

WIDTH = 79
DEVICE_ROW = "{:<3} {:<10} {:<16} {:>4} {:>9} {:>19} {:>8}"
PROCESS_ROW = "{:<4} {:>10}   {:<38} {:>14}"


def _mebibytes(size: int) -> str:
    return f"{size >> 20}MiB"


def process_name(pid: int) -> str:
    """Return the path of a process's program, or "?"."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return "?"


def _row(text: str) -> str:
    return f"| {text[: WIDTH - 4]:<{WIDTH - 4}} |"


def table(devices: List[Device]) -> str:
    """Format devices and their processes as a table."""
    line = "+" + "-" * (WIDTH - 2) + "+"
    double = line.replace("-", "=")
    rows = [line, _row(f"mx-smi {__version__}        simulated MXMACA devices: {len(devices)}"), line]
    rows += [_row(DEVICE_ROW.format("GPU", "Name", "Bus-Id", "Temp", "Power", "Memory-Usage", "GPU-Util")), double]
    for device in devices:
        memory = f"{_mebibytes(device.memory_used)} / {_mebibytes(device.memory_total)}"
        now = readings(device.ordinal)
        heat, power, share = ("N/A",) * 3
        if now is not None:
            heat, power, share = f"{now.temperature}C", f"{now.power:.0f}/{now.power_limit:.0f}W", f"{now.utilization}%"
        rows.append(_row(DEVICE_ROW.format(device.ordinal, device.name, device.pci_bus_id, heat, power, memory, share)))
    rows += [line, _row(PROCESS_ROW.format("GPU", "PID", "Process", "Memory")), double]
    uses = [(device, use) for device in devices for use in device.processes]
    for device, use in uses:
        name = process_name(use.pid)
        rows.append(_row(PROCESS_ROW.format(device.ordinal, use.pid, name[-38:], _mebibytes(use.memory))))
    if not uses:
        rows.append(_row("No running processes found"))
    return "\n".join([*rows, line])
