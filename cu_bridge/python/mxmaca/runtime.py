"""The simulated runtime from Python: libmcruntime through cffi, declared by its own header.

    >>> from mxmaca import runtime
    >>> runtime.physical_devices()[0].name
    'MXC500'

`ffi()` and `lib()` give the whole `mc*` interface. Nothing is loaded before the first call.
"""

import functools
import re
from typing import Any, List, NamedTuple

from mxmaca import include_dir, root

__all__ = ["Device", "MacaError", "ProcessUse", "check", "ffi", "lib", "physical_devices"]


class MacaError(RuntimeError):
    """A call of the runtime failed. `code` is its mcError_t."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ProcessUse(NamedTuple):
    """A process that holds memory of a device, and how much, in bytes."""

    pid: int
    memory: int


class Device(NamedTuple):
    """A simulated device, before CUDA_VISIBLE_DEVICES chooses among them. Sizes are in bytes."""

    ordinal: int
    name: str
    uuid: str
    pci_bus_id: str
    capability: str
    multiprocessors: int
    memory_total: int
    memory_used: int
    processes: List[ProcessUse]


def _declarations(name: str) -> str:
    """Return what a header declares, in the form that cffi reads: without preprocessor lines and attributes."""
    text = (include_dir() / name).read_text(encoding="utf-8")
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#[^\n]*$", "", text, flags=re.MULTILINE)
    return text.replace("MC_API ", "")


@functools.lru_cache(maxsize=None)
def ffi() -> Any:
    """Return the cffi interface that knows the runtime's types.

    Raises:
        ImportError: cffi is not installed.
    """
    import cffi

    interface = cffi.FFI()
    for name in ("mc_error_codes.h", "mc_runtime.h"):
        interface.cdef(_declarations(name))
    return interface


@functools.lru_cache(maxsize=None)
def lib() -> Any:
    """Return the loaded runtime library.

    Raises:
        OSError: the SDK has no libmcruntime.so.
    """
    return ffi().dlopen(str(root() / "lib" / "libmcruntime.so"))


def check(code: int) -> None:
    """Raise MacaError, with the runtime's message, unless `code` is mcSuccess."""
    if code != 0:
        raise MacaError(code, ffi().string(lib().mcGetErrorString(code)).decode())


def _uuid_text(data: bytes) -> str:
    digits = data.hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _processes(index: int) -> List[ProcessUse]:
    room = 64
    while True:
        found = ffi().new("mcProcessUse[]", room)
        count = ffi().new("unsigned int *", room)
        code = lib().mcDeviceProcesses(index, found, count)
        if code != lib().mcErrorMemoryValueTooLarge:
            check(code)
            return [ProcessUse(found[i].pid, found[i].bytes) for i in range(count[0])]
        room = count[0] * 2


def physical_devices() -> List[Device]:
    """Describe all devices of this machine, with what the processes of this user hold of them now.

    Raises:
        MacaError: a MACA_* variable has a value that makes no sense.
    """
    devices = []
    count = lib().mcPhysicalDeviceCount()
    if count == 0:  # none wanted, or the environment is wrong: then this says how
        code = lib().mcGetDeviceCount(ffi().new("int *"))
        check(0 if code == lib().mcErrorNoDevice else code)
    for index in range(count):
        properties = ffi().new("mcDeviceProperties *")
        free = ffi().new("size_t *")
        total = ffi().new("size_t *")
        check(lib().mcGetPhysicalDeviceProperties(properties, index))
        check(lib().mcDeviceMemoryInfo(index, free, total))
        devices.append(
            Device(
                ordinal=index,
                name=ffi().string(properties.name).decode(),
                uuid=_uuid_text(bytes(ffi().buffer(properties.uuid))),
                pci_bus_id=f"{properties.pciDomain:08X}:{properties.pciBus:02X}:{properties.pciDevice:02X}.0",
                capability=f"{properties.major}.{properties.minor}",
                multiprocessors=properties.multiprocessors,
                memory_total=total[0],
                memory_used=total[0] - free[0],
                processes=_processes(index),
            )
        )
    return devices
