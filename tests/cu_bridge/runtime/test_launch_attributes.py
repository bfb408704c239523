"""Attributes of launches, external events, flags: what is taken is done, what is right is taken."""

import pathlib
from typing import Callable

PROLOGUE = """
import ctypes, struct
rt = ctypes.CDLL({library!r})
count = 0
@ffi.callback("void(mcDim3, mcDim3, void **, size_t, mcStream_t)")
def kernel(grid, block, arguments, shared, stream):
    global count
    count += 1
host = ctypes.create_string_buffer(64)
function = ctypes.c_void_p(ctypes.addressof(host))
runtime.check(lib.mcKernelImplement(ffi.cast("void *", function.value), kernel))
def made(name, *arguments):
    out = ctypes.c_void_p()
    assert rt[name](ctypes.byref(out), *arguments) == 0, name
    return out
stream = made("cudaStreamCreate")
def launch(attribute, *values, grid=(4, 1, 1)):
    # An attribute: its id, then the value from the eighth byte on, in 64 bytes.
    packed = ctypes.create_string_buffer(struct.pack("i4x", attribute) + struct.pack(*values).ljust(64, b"\\0"))
    config = ctypes.create_string_buffer(
        struct.pack("6IQQPI", *grid, 1, 1, 1, 0, stream.value, ctypes.addressof(packed), 1))
    return rt.cudaLaunchKernelExC(config, function, None)
"""

ATTRIBUTES = """
right = [(0, "i", 0), (1, "PQfii", 0, 0, 0.5, 0, 0), (2, "i", 0), (2, "i", 1), (3, "i", 4), (4, "III", 1, 1, 1),
         (5, "i", 2), (6, "i", 1), (8, "i", -5), (9, "bb", 0, 1), (10, "i", 1), (11, "III", 1, 1, 1), (13, "i", 0),
         (14, "i", 100), (14, "i", -1), (15, "i", 1)]
for number, attribute in enumerate(right, 1):
    assert launch(*attribute) == 0, attribute
    assert count == number, attribute
# One that is refused runs nothing.
assert launch(4, "III", 2, 1, 1) == 801 and launch(99, "i", 0) == 1 and count == len(right)
for attribute in 7, 12:
    first, event, after = made("cudaEventCreate"), made("cudaEventCreate"), made("cudaEventCreate")
    assert rt.cudaEventRecord(first, stream) == 0
    assert launch(attribute, "Qii", event.value, 0, 0) == 0
    assert rt.cudaEventRecord(after, stream) == 0
    ms, rest = ctypes.c_float(-1), ctypes.c_float(-1)
    assert rt.cudaEventElapsedTime(ctypes.byref(ms), first, event) == 0 and ms.value >= 0  # it was recorded
    assert rt.cudaEventElapsedTime(ctypes.byref(rest), event, after) == 0 and rest.value >= 0
"""

EXTERNAL = """
event, start = made("cudaEventCreate"), made("cudaEventCreate")
assert rt.cudaEventRecord(start, stream) == 0
assert rt.cudaStreamBeginCapture(stream, 0) == 0
assert rt.cudaStreamWaitEvent(stream, start, 1) == 0  # an event of outside: allowed as an external one
assert rt.cudaEventRecordWithFlags(event, stream, 1) == 0
graph = ctypes.c_void_p()
assert rt.cudaStreamEndCapture(stream, ctypes.byref(graph)) == 0
nodes = ctypes.c_size_t()
assert rt.cudaGraphGetNodes(graph, None, ctypes.byref(nodes)) == 0 and nodes.value == 2
ms = ctypes.c_float()
assert rt.cudaEventElapsedTime(ctypes.byref(ms), start, event) == 400  # not recorded before a launch
execution = made("cudaGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(1))
assert rt.cudaGraphLaunch(execution, stream) == 0 and rt.cudaStreamSynchronize(stream) == 0
assert rt.cudaEventElapsedTime(ctypes.byref(ms), start, event) == 0 and ms.value > 0
once = ms.value
assert rt.cudaGraphLaunch(execution, stream) == 0 and rt.cudaStreamSynchronize(stream) == 0
assert rt.cudaEventElapsedTime(ctypes.byref(ms), start, event) == 0 and ms.value > once  # by each launch
assert rt.cudaEventQuery(event) == 0
# An event that has gone is an error where the graph has run, not a fault.
assert rt.cudaEventDestroy(event) == 0
assert rt.cudaGraphLaunch(execution, stream) == 0 and rt.cudaStreamSynchronize(stream) == 400
"""

FLAGS = """
for flags in 0, 1, 2, 4, 8, 0x10, 0x80, 0x9c:
    assert rt.cudaSetDeviceFlags(flags) == 0, flags
    read = ctypes.c_uint()
    assert rt.cudaGetDeviceFlags(ctypes.byref(read)) == 0 and read.value == flags | 8
assert rt.cudaSetDeviceFlags(3) == 1 and rt.cudaGetDeviceFlags(ctypes.byref(read)) == 0 and read.value == 0x9c
for config in range(4):
    assert rt.cudaDeviceSetCacheConfig(config) == 0
for flags in range(16):
    page = ctypes.create_string_buffer(8192)
    assert rt.cudaHostRegister(page, ctypes.c_size_t(8192), flags) == 0, flags
    assert rt.cudaHostUnregister(page) == 0
managed = made("cudaMallocManaged", ctypes.c_size_t(1 << 20), 1)
middle = ctypes.c_void_p(managed.value + 4096)
size = ctypes.c_size_t((1 << 20) - 4096)
if {major} == 12:
    for place in -1, 0:
        assert rt.cudaMemPrefetchAsync(middle, size, place, stream) == 0
        assert all(rt.cudaMemAdvise(middle, size, advice, place) == 0 for advice in range(1, 7))
    assert rt.cudaMemAdvise(middle, size, 1, 77) == 0  # this advice has no place
else:
    class Place(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]
    for place in Place(1, 0), Place(2, 0), Place(3, 0), Place(4, 0):
        assert rt.cudaMemPrefetchAsync(middle, size, place, 0, stream) == 0
        assert all(rt.cudaMemAdvise(middle, size, advice, place) == 0 for advice in range(1, 7))
    assert rt.cudaMemAdvise(middle, size, 1, Place(0, 77)) == 0  # this advice has no place
assert rt.cudaStreamAttachMemAsync(stream, managed, ctypes.c_size_t(0), 4) == 0
assert rt.cudaStreamAttachMemAsync(None, managed, ctypes.c_size_t(1 << 20), 1) == 0
"""

STREAMS = """
def value(kind, *fields):
    return ctypes.create_string_buffer(struct.pack(kind, *fields).ljust(64, b"\\0"), 64)
def read(stream, attribute, kind):
    out = value("i", -9)
    assert rt.cudaStreamGetAttribute(stream, attribute, out) == 0
    return struct.unpack_from(kind, out.raw)
assert read(stream, 3, "i") == (1,) and read(stream, 8, "i") == (0,) and read(stream, 9, "bb") == (0, 1)
for attribute, kind, fields in ((1, "PQfii", (0, 0, 0.5, 2, 1)), (3, "i", (4,)), (8, "i", (-1,)), (9, "bb", (1, 0)),
                                (10, "i", (1,))):
    assert rt.cudaStreamSetAttribute(stream, attribute, value(kind, *fields)) == 0, attribute
    assert read(stream, attribute, kind) == fields
other = made("cudaStreamCreate")
assert read(other, 3, "i") == (1,)
assert rt.cudaStreamSetAttribute(other, 10, value("i", 1)) == 0
assert rt.cudaStreamCopyAttributes(other, stream) == 0
assert read(other, 3, "i") == (4,) and read(other, 9, "bb") == (1, 0)
fresh = made("cudaStreamCreate")
assert rt.cudaStreamCopyAttributes(other, fresh) == 0
assert read(other, 3, "i") == (1,) and read(other, 10, "i") == (0,)
# A stream that gets the handle of a destroyed one has nothing of it.
assert rt.cudaStreamDestroy(stream) == 0 and read(made("cudaStreamCreate"), 3, "i") == (1,)
assert rt.cudaCtxResetPersistingL2Cache() == 0
"""


def script(sdk: pathlib.Path, major: int, code: str) -> str:
    """A test's code behind the prologue, for a CUDA major."""
    library = next((sdk / "lib" / f"cuda{major}").glob("libcudart.so.*"))
    return (PROLOGUE.replace("{library!r}", repr(str(library))) + code).replace("{major}", str(major))


def test_attributes_of_a_launch_are_done_or_refused(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    run_python(script(sdk, major, ATTRIBUTES))


def test_external_events_are_nodes_that_each_launch_runs(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    run_python(script(sdk, major, EXTERNAL))


def test_every_documented_flag_and_place_is_taken(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    run_python(script(sdk, major, FLAGS))


def test_attributes_of_a_stream_are_kept_and_copied(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    run_python(script(sdk, major, STREAMS))
