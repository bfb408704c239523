"""What `nvidia-smi` answers to programs, in the format that they read, about the simulated devices.

`mx-smi --nvidia ARGUMENTS` and the command `nvidia-smi` of the SDK end here. Temperature, power and clocks are what
NVML's simulated sensors show. What a simulated device does not have (fans, a bus, serial numbers) is `[N/A]`, as on
devices that do not tell.
"""

import argparse
import datetime
import sys
import time
from typing import Callable, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

from mxmaca import sensors
from mxmaca.runtime import Device, MacaError, ProcessUse, physical_devices
from mxmaca.usage import process_name, table

NOTHING = "[N/A]"
BAD_ARGUMENT = 2  # the exit status


class Field(NamedTuple):
    """A property that can be asked for: its unit, and its value for a device."""

    unit: str
    value: Callable[[Device], str]


def _mebibytes(size: int) -> str:
    return str(size >> 20)


def _driver_version() -> str:
    return sensors.driver_version() or NOTHING


def _reading(text: Callable[[sensors.Readings], str]) -> Callable[[Device], str]:
    def value(device: Device) -> str:
        now = sensors.readings(device.ordinal)
        return NOTHING if now is None else text(now)

    return value


def _always(text: str) -> Callable[[Device], str]:
    return lambda device: text


FIELDS: Dict[str, Field] = {
    "timestamp": Field("", lambda device: datetime.datetime.now().strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]),
    "driver_version": Field("", lambda device: _driver_version()),
    "count": Field("", lambda device: str(len(physical_devices()))),
    "name": Field("", lambda device: device.name),
    "index": Field("", lambda device: str(device.ordinal)),
    "uuid": Field("", lambda device: device.uuid),
    "pci.bus_id": Field("", lambda device: device.pci_bus_id),
    "compute_cap": Field("", lambda device: device.capability),
    "memory.total": Field("MiB", lambda device: _mebibytes(device.memory_total)),
    "memory.used": Field("MiB", lambda device: _mebibytes(device.memory_used)),
    "memory.free": Field("MiB", lambda device: _mebibytes(device.memory_total - device.memory_used)),
    "memory.reserved": Field("MiB", _always("0")),
    "utilization.gpu": Field("%", _reading(lambda now: str(now.utilization))),
    "utilization.memory": Field("%", _reading(lambda now: str(now.memory_utilization))),
    "temperature.gpu": Field("", _reading(lambda now: str(now.temperature))),
    "power.management": Field("", _always("Enabled")),
    "power.draw": Field("W", _reading(lambda now: f"{now.power:.2f}")),
    "power.limit": Field("W", _reading(lambda now: f"{now.power_limit:.2f}")),
    "pstate": Field("", _reading(lambda now: f"P{now.performance_state}")),
    "clocks.current.sm": Field("MHz", _reading(lambda now: str(now.clock[0]))),
    "clocks.current.memory": Field("MHz", _reading(lambda now: str(now.memory_clock[0]))),
    "clocks.max.sm": Field("MHz", _reading(lambda now: str(now.clock[1]))),
    "clocks.max.memory": Field("MHz", _reading(lambda now: str(now.memory_clock[1]))),
    "display_mode": Field("", _always("Disabled")),
    "display_active": Field("", _always("Disabled")),
    "persistence_mode": Field("", _always("Enabled")),
    "accounting.mode": Field("", _always("Disabled")),
    "mig.mode.current": Field("", _always(NOTHING)),
    "compute_mode": Field("", _always("Default")),
}
# Known to programs, and of nothing that a simulated device has.
for _name, _unit in {
    "serial": "", "gpu_serial": "", "vbios_version": "", "fan.speed": "%", "temperature.memory": "",
    "ecc.mode.current": "", "ecc.errors.uncorrected.volatile.total": "", "pcie.link.gen.current": "",
    "pcie.link.width.current": "", "encoder.stats.sessionCount": "",
}.items():  # fmt: skip
    FIELDS[_name] = Field(_unit, _always(NOTHING))
SAME = {
    "gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "clocks.sm": "clocks.current.sm",
    "clocks.gr": "clocks.current.sm", "clocks.current.graphics": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory", "clocks.max.mem": "clocks.max.memory", "clocks.max.gr": "clocks.max.sm",
    "clocks.max.graphics": "clocks.max.sm", "clocks.applications.graphics": "clocks.max.sm",
    "clocks.applications.memory": "clocks.max.memory", "clocks.default_applications.graphics": "clocks.max.sm",
    "clocks.default_applications.memory": "clocks.max.memory", "enforced.power.limit": "power.limit",
    "power.default_limit": "power.limit", "power.min_limit": "power.limit", "power.max_limit": "power.limit",
    "power.draw.average": "power.draw", "power.draw.instant": "power.draw",
}  # fmt: skip

Use = Tuple[Device, ProcessUse]
PROCESS_FIELDS: Dict[str, Tuple[str, Callable[[Use], str]]] = {
    "timestamp": ("", lambda use: FIELDS["timestamp"].value(use[0])),
    "gpu_name": ("", lambda use: use[0].name),
    "gpu_bus_id": ("", lambda use: use[0].pci_bus_id),
    "gpu_uuid": ("", lambda use: use[0].uuid),
    "pid": ("", lambda use: str(use[1].pid)),
    "process_name": ("", lambda use: process_name(use[1].pid)),
    "name": ("", lambda use: process_name(use[1].pid)),
    "used_gpu_memory": ("MiB", lambda use: _mebibytes(use[1].memory)),
    "used_memory": ("MiB", lambda use: _mebibytes(use[1].memory)),
}


class Refused(Exception):
    """The arguments are wrong; the text says how."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="nvidia-smi", description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("-L", "--list-gpus", action="store_true", help="one line a device")
    parser.add_argument("-q", "--query", action="store_true", help="what is known about each device, line by line")
    parser.add_argument("-i", "--id", help="only these devices: numbers, UUIDs or bus ids, with commas between them")
    parser.add_argument("--query-gpu", metavar="FIELDS", help="these properties of each device; wants --format=csv")
    parser.add_argument("--query-compute-apps", metavar="FIELDS", help="the same of each process that holds memory")
    parser.add_argument("--help-query-gpu", action="store_true", help="the names of the properties")
    parser.add_argument("--format", help="csv, and after commas noheader and nounits")
    parser.add_argument("-l", "--loop", type=float, metavar="SECONDS", help="again and again")
    parser.add_argument("-lms", "--loop-ms", type=float, metavar="MILLISECONDS", help="the same")
    parser.add_argument("-f", "--filename", help="write to this file")
    parser.add_argument("--version", action="store_true", help="the versions of what answers")
    return parser


def _chosen(devices: List[Device], wanted: Optional[str]) -> List[Device]:
    if wanted is None:
        return devices
    found = []
    for one in wanted.split(","):
        name = one.strip().lower()
        matching = [d for d in devices if name in (str(d.ordinal), d.uuid.lower(), d.pci_bus_id.lower())]
        if not matching:
            raise Refused(f"No devices were found for -i {one}.")
        found += matching
    return found


def _format(text: Optional[str]) -> Tuple[bool, bool]:
    """Return whether there is a header, and whether values have units."""
    parts = [] if text is None else [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if part not in ("csv", "noheader", "nounits")]
    if "csv" not in parts or wrong:
        raise Refused("Wrong or missing --format: it is csv, and after commas noheader and nounits.")
    return "noheader" not in parts, "nounits" not in parts


def _fields(text: str, known: Sequence[str], option: str) -> List[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise Refused(f'Field "{name}" is not a valid field to query ({option}).')
    if not names:
        raise Refused(f"{option} names no field.")
    return names


def _csv(header: bool, units: bool, columns: List[Tuple[str, str]], rows: List[List[str]]) -> str:
    # A comma and a space, as programs split the lines; no value has a comma.
    lines = [", ".join(f"{name} [{unit}]" if unit else name for name, unit in columns)] if header else []
    for row in rows:
        cells = zip(row, (unit for _, unit in columns))
        lines.append(
            ", ".join(f"{value} {unit}" if unit and units and value != NOTHING else value for value, unit in cells)
        )
    return "\n".join(lines)


def describe(device: Device) -> str:
    """Return what is known about a device, a line each."""
    facts = [
        ("Product Name", device.name),
        ("GPU UUID", device.uuid),
        ("Bus Id", device.pci_bus_id),
        ("Compute Capability", device.capability),
        ("Multiprocessors", str(device.multiprocessors)),
        ("FB Memory Total", f"{_mebibytes(device.memory_total)} MiB"),
        ("FB Memory Used", f"{_mebibytes(device.memory_used)} MiB"),
        ("FB Memory Free", f"{_mebibytes(device.memory_total - device.memory_used)} MiB"),
    ]
    now = sensors.readings(device.ordinal)
    if now is not None:
        facts += [
            ("Performance State", f"P{now.performance_state}"),
            ("Utilization Gpu", f"{now.utilization} %"),
            ("Utilization Memory", f"{now.memory_utilization} %"),
            ("GPU Current Temp", f"{now.temperature} C"),
            ("Power Draw", f"{now.power:.2f} W"),
            ("Current Power Limit", f"{now.power_limit:.2f} W"),
            ("Clocks SM", f"{now.clock[0]} MHz"),
            ("Clocks Memory", f"{now.memory_clock[0]} MHz"),
            ("Max Clocks SM", f"{now.clock[1]} MHz"),
            ("Max Clocks Memory", f"{now.memory_clock[1]} MHz"),
        ]
    lines = [f"GPU {device.pci_bus_id}"] + [f"    {name:<34}: {value}" for name, value in facts]
    for use in device.processes:
        lines.append(f"    Process ID {use.pid:<23}: {process_name(use.pid)}, {_mebibytes(use.memory)} MiB")
    return "\n".join(lines)


def answer(options: argparse.Namespace) -> str:
    """Return what the options ask for.

    Raises:
        Refused: the options are wrong.
        MacaError: the devices cannot be asked.
    """
    if options.help_query_gpu:
        return "\n".join(f'"{name}"' for name in sorted([*FIELDS, *SAME]))
    devices = _chosen(physical_devices(), options.id)
    if options.version:
        return f"NVIDIA-SMI version  : {_driver_version()}\nDRIVER version      : {_driver_version()}"
    if options.query_gpu is not None:
        header, units = _format(options.format)
        names = _fields(options.query_gpu, [*FIELDS, *SAME], "--query-gpu")
        fields = [FIELDS[SAME.get(name, name)] for name in names]
        columns = [(name, field.unit) for name, field in zip(names, fields)]
        return _csv(header, units, columns, [[field.value(device) for field in fields] for device in devices])
    if options.query_compute_apps is not None:
        header, units = _format(options.format)
        names = _fields(options.query_compute_apps, list(PROCESS_FIELDS), "--query-compute-apps")
        uses = [(device, use) for device in devices for use in device.processes]
        columns = [(name, PROCESS_FIELDS[name][0]) for name in names]
        return _csv(header, units, columns, [[PROCESS_FIELDS[name][1](use) for name in names] for use in uses])
    if options.list_gpus:
        return "\n".join(f"GPU {device.ordinal}: {device.name} (UUID: {device.uuid})" for device in devices)
    if options.query:
        return "\n\n".join(describe(device) for device in devices)
    return table(devices)


def main(arguments: Sequence[str]) -> int:
    """Run the command. Returns its exit status: 0, 2 for wrong arguments, 9 where there is no device to ask."""
    try:
        options = _parser().parse_args(arguments)
        seconds = options.loop_ms / 1000 if options.loop_ms is not None else options.loop
        if seconds is not None and not seconds > 0:
            raise Refused("The time between two answers must be more than 0.")
        while True:
            text = answer(options)
            if options.filename is None:
                print(text, flush=True)
            else:
                with open(options.filename, "a" if seconds else "w", encoding="utf-8") as file:
                    print(text, file=file)
            if seconds is None:
                return 0
            time.sleep(seconds)
    except Refused as error:
        print(f"nvidia-smi: {error}")  # on stdout, where programs look
        return BAD_ARGUMENT
    except (ImportError, MacaError, OSError) as error:
        print(f"nvidia-smi: {error}", file=sys.stderr)
        return 9
    except KeyboardInterrupt:
        return 130
