"""CUPTI's callbacks: who subscribes to calls is told of each when it begins and when it is over."""

import pathlib
from typing import Callable

CODE = """
import ctypes, struct, time
cupti, rt = ctypes.CDLL({cupti!r}), ctypes.CDLL({runtime!r})
class Data(ctypes.Structure):
    _fields_ = [("site", ctypes.c_uint), ("function", ctypes.c_char_p), ("parameters", ctypes.c_void_p),
                ("result", ctypes.POINTER(ctypes.c_int)), ("symbol", ctypes.c_char_p), ("context", ctypes.c_void_p),
                ("uid", ctypes.c_uint), ("own", ctypes.POINTER(ctypes.c_uint64)), ("correlation", ctypes.c_uint)]
calls, contexts = [], set()
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(Data))
def callback(user, domain, number, data):
    data = data[0]
    contexts.add(data.context)
    assert user == 7
    layout = LAYOUTS[number] if domain == 2 else DRIVER[number]
    parameters = struct.unpack(layout, ctypes.string_at(data.parameters, struct.calcsize(layout))) if layout else ()
    if data.site == 0:
        assert data.own[0] == 0 and not data.result
        data.own[0] = 1000 + len(calls)
        calls.append([number, data.function.decode(), parameters, data.correlation, data.symbol])
    else:
        call = calls[data.own[0] - 1000]
        assert call[:5] == [number, data.function.decode(), parameters, data.correlation, data.symbol]
        call.append(data.result[0])
LAYOUTS = {20: "PQ", 22: "P", 31: "PPQi", 41: "PPQi4xP", 49: "Pi4xQ", 51: "Pi4xQP", 131: "P", 135: "PP", 137: "P",
           147: "PPI", 165: "", 211: "P6IPQP", 284: "PPP", 311: "PP", 373: "PQP", 375: "PP"}
DRIVER = {497: "PP", 539: "Pi",
          17: "", 38: "P", 39: "PQI", 119: "PP", 121: "P", 126: "P", 220: "PI4xQP", 243: "PQ", 245: "P", 249: "PB7xQ",
          250: "PH6xQ", 277: "PPQP", 278: "PPQ", 295: "PPI", 306: "PPQP", 307: "P7I4xPPP", 514: "PP", 527: "PPP",
          598: "PQP", 600: "PP"}
def made(library, name, *arguments):
    out = ctypes.c_void_p()
    assert library[name](ctypes.byref(out), *arguments) == 0, name
    return out
subscriber = made(cupti, "cuptiSubscribe", callback, ctypes.c_void_p(7))
stream, event = made(rt, "cudaStreamCreate"), made(rt, "cudaEventCreate")
def enabled(number):
    out = ctypes.c_uint(9)
    assert cupti.cuptiGetCallbackState(ctypes.byref(out), subscriber, 2, number) == 0
    return out.value
# Only what is done can be asked for; to end anything is right.
for domain, number in ((1, 2), (2, 5), (1, 100000), (2, 100000), (3, 6), (4, 1), (5, 1), (6, 1)):
    assert cupti.cuptiEnableCallback(1, subscriber, domain, number) == 27, (domain, number)
    assert cupti.cuptiEnableCallback(0, subscriber, domain, number) == 0
for domain, number in ((3, 1), (3, 2), (1, 442), (2, 214)):  # never, as docs/runtime.md says
    assert cupti.cuptiEnableCallback(1, subscriber, domain, number) == 0
assert cupti.cuptiEnableDomain(1, subscriber, 4) == 27 and cupti.cuptiEnableDomain(1, subscriber, 7) == 1

def listed(domain, number):
    name = ctypes.c_char_p()
    assert cupti.cuptiGetCallbackName(domain, number, ctypes.byref(name)) == 0, (domain, number)
    return name.value.decode()
assert {number: listed(2, number) for number in (20, 211, 373, 375, 430)} == {
    20: "cudaMalloc_v3020", 211: "cudaLaunchKernel_v7000", 373: "cudaMallocAsync_v11020", 375: "cudaFreeAsync_v11020",
    430: "cudaLaunchKernelExC_v11060"}
assert listed(1, 243) == "cuMemAlloc_v2" and listed(1, 307) == "cuLaunchKernel"

def timestamp():
    now = ctypes.c_uint64()
    assert cupti.cuptiGetTimestamp(ctypes.byref(now)) == 0
    return now.value
# The records' clock is the system's.
earlier, first, second, later = time.time_ns(), timestamp(), timestamp(), time.time_ns()
assert earlier <= first <= second <= later

assert enabled(20) == 0 and cupti.cuptiEnableCallback(1, subscriber, 2, 20) == 0 and enabled(20) == 1
target = ctypes.c_void_p()
assert rt.cudaMalloc(ctypes.byref(target), ctypes.c_size_t(4096)) == 0
assert rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 60)) == 2
assert rt.cudaMemset(target, 1, ctypes.c_size_t(16)) == 0  # nobody has asked for it
assert [(call[0], call[1], call[2][1], call[-1]) for call in calls] == [
    (20, "cudaMalloc", 4096, 0), (20, "cudaMalloc", 1 << 60, 2)]
assert calls[0][2][0] == ctypes.addressof(target) and calls[0][3] != calls[1][3]
# The program's own last error is not touched by what a later call returns, nor that by it.
assert rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64)) == 0 and calls[2][-1] == 0
assert rt.cudaGetLastError() == 2 and rt.cudaGetLastError() == 0

del calls[:]
assert cupti.cuptiEnableDomain(1, subscriber, 2) == 0 and enabled(211) == 1
host = ctypes.create_string_buffer(64)
address = ctypes.addressof(host)
size = ctypes.c_size_t(64)
assert rt.cudaMemcpy(target, host, size, 1) == 0
assert rt.cudaMemcpyAsync(host, target, size, 2, stream) == 0
assert rt.cudaMemset(target, 3, size) == 0 and rt.cudaMemsetAsync(target, 4, size, stream) == 0
more = ctypes.c_void_p()
assert rt.cudaMallocAsync(ctypes.byref(more), size, stream) == 0 and rt.cudaFreeAsync(more, stream) == 0
assert rt.cudaEventRecord(event, stream) == 0 and rt.cudaStreamWaitEvent(None, event, 0) == 0
assert rt.cudaEventSynchronize(event) == 0 and rt.cudaStreamSynchronize(stream) == 0
assert rt.cudaDeviceSynchronize() == 0
assert [call[:3] + call[5:] for call in calls] == [
    [31, "cudaMemcpy", (target.value, address, 64, 1), 0],
    [41, "cudaMemcpyAsync", (address, target.value, 64, 2, stream.value), 0],
    [49, "cudaMemset", (target.value, 3, 64), 0],
    [51, "cudaMemsetAsync", (target.value, 4, 64, stream.value), 0],
    [373, "cudaMallocAsync", (ctypes.addressof(more), 64, stream.value), 0],
    [375, "cudaFreeAsync", (more.value, stream.value), 0],
    [135, "cudaEventRecord", (event.value, stream.value), 0],
    [147, "cudaStreamWaitEvent", (0, event.value, 0), 0],
    [137, "cudaEventSynchronize", (event.value,), 0],
    [131, "cudaStreamSynchronize", (stream.value,), 0],
    [165, "cudaDeviceSynchronize", (), 0]]
# A kernel's launch.
@ffi.callback("void(mcDim3, mcDim3, void **, size_t, mcStream_t)")
def kernel(grid, block, arguments, shared, stream):
    pass
runtime.check(lib.mcKernelImplement(ffi.cast("void *", address), kernel))
class Dim(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]
rt.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim, Dim, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
del calls[:]
assert rt.cudaLaunchKernel(address, Dim(2, 3, 4), Dim(5, 1, 1), None, 16, stream) == 0
assert [call[:3] + call[5:] for call in calls] == [
    [211, "cudaLaunchKernel", (address, 2, 3, 4, 5, 1, 1, 0, 16, stream.value), 0]]

# The end: of one function, of a subscription, of all. Then no call is told of, and a program may begin again.
del calls[:]
assert cupti.cuptiEnableCallback(0, subscriber, 2, 165) == 0 and rt.cudaDeviceSynchronize() == 0 and calls == []
assert cupti.cuptiUnsubscribe(subscriber) == 0 and rt.cudaFree(target) == 0 and calls == []
assert cupti.cuptiUnsubscribe(subscriber) == 1 and cupti.cuptiEnableDomain(1, subscriber, 2) == 1
again = made(cupti, "cuptiSubscribe", callback, ctypes.c_void_p(7))
assert cupti.cuptiEnableDomain(1, again, 2) == 0 and rt.cudaDeviceSynchronize() == 0 and len(calls) == 1
assert cupti.cuptiFinalize() == 0 and rt.cudaDeviceSynchronize() == 0 and len(calls) == 1
assert cupti.cuptiUnsubscribe(again) == 1 and cupti.cuptiSubscribe(ctypes.byref(ctypes.c_void_p()), None, None) == 1
"""

DRIVER_CODE = (
    CODE[: CODE.index("# Only what is done")]
    + """
cu = ctypes.CDLL({driver!r})
context = ctypes.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cu.cuCtxSetCurrent(context) == 0
assert cupti.cuptiEnableDomain(1, subscriber, 1) == 0 and enabled(211) == 0
size = ctypes.c_size_t(64)
target, pinned, more = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuMemAlloc_v2(ctypes.byref(target), size) == 0
assert cu.cuMemAlloc_v2(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(0)) == 1  # fails before anything is done
assert cu.cuMemHostAlloc(ctypes.byref(pinned), size, 0) == 0
assert cu.cuMemcpyHtoDAsync_v2(target, pinned, size, stream) == 0
assert cu.cuMemsetD32Async(target, 9, ctypes.c_size_t(16), stream) == 0
assert cu.cuMemsetD8_v2(target, ctypes.c_ubyte(200), size) == 0
assert cu.cuMemsetD16_v2(target, ctypes.c_ushort(65000), ctypes.c_size_t(32)) == 0
assert cu.cuEventRecord(event, stream) == 0 and cu.cuStreamWaitEvent(None, event, 0) == 0
assert cu.cuEventSynchronize(event) == 0 and cu.cuStreamSynchronize(stream) == 0 and cu.cuCtxSynchronize() == 0
assert cu.cuMemcpyDtoH_v2(pinned, target, size) == 0
assert rt.cudaMemset(target, 3, size) == 0  # of the other interface
assert cu.cuMemAllocAsync(ctypes.byref(more), size, stream) == 0 and cu.cuMemFreeAsync(more, stream) == 0
assert cu.cuMemFreeHost(pinned) == 0 and cu.cuMemFree_v2(target) == 0
assert [call[:3] + call[5:] for call in calls] == [
    [243, "cuMemAlloc_v2", (ctypes.addressof(target), 64), 0], [243, "cuMemAlloc_v2", (calls[1][2][0], 0), 1],
    [39, "cuMemHostAlloc", (ctypes.addressof(pinned), 64, 0), 0],
    [277, "cuMemcpyHtoDAsync_v2", (target.value, pinned.value, 64, stream.value), 0],
    [220, "cuMemsetD32Async", (target.value, 9, 16, stream.value), 0],
    [249, "cuMemsetD8_v2", (target.value, 200, 64), 0], [250, "cuMemsetD16_v2", (target.value, 65000, 32), 0],
    [119, "cuEventRecord", (event.value, stream.value), 0], [295, "cuStreamWaitEvent", (0, event.value, 0), 0],
    [121, "cuEventSynchronize", (event.value,), 0], [126, "cuStreamSynchronize", (stream.value,), 0],
    [17, "cuCtxSynchronize", (), 0], [278, "cuMemcpyDtoH_v2", (pinned.value, target.value, 64), 0],
    [598, "cuMemAllocAsync", (ctypes.addressof(more), 64, stream.value), 0],
    [600, "cuMemFreeAsync", (more.value, stream.value), 0], [38, "cuMemFreeHost", (pinned.value,), 0],
    [245, "cuMemFree_v2", (target.value,), 0]]
assert len({call[3] for call in calls}) == len(calls) and contexts == {context.value}
# A graph's launch by the runtime interface is one by the driver's too, with one number.
del calls[:]
graph, executable = made(rt, "cudaGraphCreate", 0), ctypes.c_void_p()
assert rt.cudaGraphAddEmptyNode(ctypes.byref(ctypes.c_void_p()), graph, None, ctypes.c_size_t(0)) == 0
assert rt.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)) == 0
assert cupti.cuptiEnableCallback(1, subscriber, 2, 311) == 0 and rt.cudaGraphLaunch(executable, stream) == 0
assert [call[:3] + call[5:] for call in calls] == [
    [311, "cudaGraphLaunch", (executable.value, stream.value), 0],
    [514, "cuGraphLaunch", (executable.value, stream.value), 0]] and calls[0][3] == calls[1][3]
del calls[:]
assert cu.cuGraphLaunch(executable, stream) == 0 and [call[0] for call in calls] == [514]
# So is a launch, with the driver's arguments; and the begin and the end of a capture.
@ffi.callback("void(mcDim3, mcDim3, void **, size_t, mcStream_t)")
def kernel(grid, block, arguments, shared, stream):
    pass
runtime.check(lib.mcKernelImplement(ffi.cast("void *", ctypes.addressof(target)), kernel))
class Dim(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]
rt.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim, Dim, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
del calls[:]
assert cupti.cuptiEnableCallback(1, subscriber, 2, 211) == 0
at = ctypes.addressof(target)
assert rt.cudaLaunchKernel(at, Dim(2, 3, 4), Dim(5, 6, 1), None, 16, stream) == 0
assert [call[:3] + call[5:] for call in calls] == [
    [211, "cudaLaunchKernel", (at, 2, 3, 4, 5, 6, 1, 0, 16, stream.value), 0],
    [307, "cuLaunchKernel", (at, 2, 3, 4, 5, 6, 1, 16, stream.value, 0, 0), 0]] and calls[0][3] == calls[1][3]
del calls[:]
captured = ctypes.c_void_p()
assert rt.cudaStreamBeginCapture(stream, 0) == 0 and rt.cudaStreamEndCapture(stream, ctypes.byref(captured)) == 0
assert [call[:3] + call[5:] for call in calls] == [
    [539, "cuStreamBeginCapture_v2", (stream.value, 0), 0],
    [497, "cuStreamEndCapture", (stream.value, ctypes.addressof(captured)), 0]]
# NVTX's ranges of the default domain.
class Range(ctypes.Structure):
    _fields_ = [("function", ctypes.c_char_p), ("message", ctypes.POINTER(ctypes.c_char_p)),
                ("result", ctypes.c_void_p)]
ranges = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(Range))
def of_range(user, domain, number, data):
    message = data[0].message[0] if data[0].message else None
    ranges.append((domain, number, data[0].function, message, data[0].result))
assert cupti.cuptiUnsubscribe(subscriber) == 0
marks = made(cupti, "cuptiSubscribe", of_range, None)
assert cupti.cuptiEnableDomain(1, marks, 5) == 0
MARK, PUSH, POP = 1, 2, 3
for kind, domain, name in ((PUSH, ffi.NULL, b"outer"), (PUSH, b"other", b"elsewhere"), (PUSH, ffi.NULL, b"inner"),
                           (MARK, ffi.NULL, b"instant"), (POP, ffi.NULL, ffi.NULL), (POP, b"other", ffi.NULL)):
    lib.mcProfileMark(kind, domain, name, 0)
assert ranges == [(5, 8, b"nvtxRangePushA", b"outer", None), (5, 8, b"nvtxRangePushA", b"inner", None),
                  (5, 11, b"nvtxRangePop", None, None)], ranges
number, other = ctypes.c_uint(), ctypes.c_uint()
assert cupti.cuptiGetGraphExecId(executable, ctypes.byref(number)) == 0
assert cupti.cuptiGetGraphId(graph, ctypes.byref(other)) == 0 and 0 != number.value != other.value != 0
assert cupti.cuptiGetGraphId(executable, ctypes.byref(other)) == 1 and rt.cudaGetLastError() == 0
"""
)

RESOURCE_CODE = """
import ctypes
cupti, rt = ctypes.CDLL({cupti!r}), ctypes.CDLL({runtime!r})
def handle():
    return ctypes.c_void_p()
class Graphs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("graph", "original_graph", "node", "original_node")] + [
        ("type", ctypes.c_int), ("dependency", ctypes.c_void_p), ("exec", ctypes.c_void_p)]
class Data(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("stream", ctypes.c_void_p), ("graphs", ctypes.POINTER(Graphs))]
def number(name, of, kind=ctypes.c_uint):
    to = kind()
    assert getattr(cupti, name)(ctypes.c_void_p(of), ctypes.byref(to)) == 0, name
    return to.value
told = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(Data))
def callback(user, domain, event, data):
    assert domain == 3
    if event in (3, 4):
        assert not data[0].graphs
        return told.append((event, data[0].stream))
    about = data[0].graphs[0]
    # As a profiler does: handles are asked for their numbers in the callback, where those of copies live.
    row = {"event": event, "type": about.type}
    for name in ("graph", "original_graph"):
        if getattr(about, name):
            row[name] = number("cuptiGetGraphId", getattr(about, name))
    for name in ("node", "original_node", "dependency"):
        if getattr(about, name):
            row[name] = number("cuptiGetGraphNodeId", getattr(about, name), ctypes.c_uint64)
    if about.exec:
        row["exec"] = number("cuptiGetGraphExecId", about.exec)
    told.append(row)
def events():
    seen = [row[0] if isinstance(row, tuple) else row["event"] for row in told]
    return seen
subscriber = handle()
assert cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None) == 0
assert cupti.cuptiEnableDomain(1, subscriber, 3) == 0
stream = handle()
assert rt.cudaStreamCreate(ctypes.byref(stream)) == 0 and told == [(3, stream.value)]
# A capture: its graph, and its nodes as they are made.
del told[:]
memory, graph, executable = handle(), handle(), handle()
size = ctypes.c_size_t(64)
assert rt.cudaMalloc(ctypes.byref(memory), size) == 0
assert rt.cudaStreamBeginCapture(stream, 0) == 0 and events() == [9]
assert rt.cudaMemsetAsync(memory, 1, size, stream) == 0
assert rt.cudaMemsetAsync(memory, 2, size, stream) == 0
assert rt.cudaStreamEndCapture(stream, ctypes.byref(graph)) == 0
one = number("cuptiGetGraphId", graph.value)
assert events() == [9, 12, 13, 12, 13, 15] and all(row["graph"] == one for row in told)
assert [row.get("type") for row in told] == [0, 2, 2, 2, 2, 2] and "node" not in told[1]
first, second = told[2]["node"], told[4]["node"]
assert told[5]["node"] == first and told[5]["dependency"] == second and first != second
# An executable graph: copies of the nodes, under the number that launches have.
del told[:]
assert rt.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)) == 0
launched = number("cuptiGetGraphExecId", executable.value)
assert events() == [12, 13, 20, 12, 13, 20, 15, 18], events()
copies = [row for row in told if row["event"] == 20]
assert [row["original_node"] for row in copies] == [first, second]
assert all((row["graph"], row["original_graph"]) == (launched, one) for row in copies)
assert {row["node"] for row in copies}.isdisjoint({first, second})
assert [told[-1][name] for name in ("graph", "original_graph", "exec")] == [launched, one, launched]
# Records of its launches carry these numbers.
buffers = []
@ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                  ctypes.POINTER(ctypes.c_size_t))
def request(buffer, bytes, most):
    buffers.append(ctypes.create_string_buffer(1 << 16))
    buffer[0], bytes[0], most[0] = ctypes.addressof(buffers[-1]), 1 << 16, 0
records = []
class Memset(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint), ("value", ctypes.c_uint), ("bytes", ctypes.c_uint64),
                ("times", ctypes.c_uint64 * 2), ("places", ctypes.c_uint * 4), ("flags", ctypes.c_uint * 2),
                ("reserved", ctypes.c_void_p), ("node", ctypes.c_uint64), ("graph", ctypes.c_uint)]
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
def complete(context, number, buffer, bytes, valid):
    record = ctypes.c_void_p()
    while cupti.cuptiActivityGetNextRecord(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)) == 0:
        record = ctypes.cast(record, ctypes.POINTER(Memset))
        if record[0].kind == 2:
            records.append((record[0].value, record[0].bytes, record[0].node, record[0].graph))
        record = ctypes.cast(record, ctypes.c_void_p)
assert cupti.cuptiActivityRegisterCallbacks(request, complete) == 0 and cupti.cuptiActivityEnable(2) == 0
assert rt.cudaGraphLaunch(executable, stream) == 0 and rt.cudaStreamSynchronize(stream) == 0
assert cupti.cuptiActivityFlushAll(1) == 0
assert [row[1:] for row in records] == [(64, row["node"], launched) for row in copies], records
# A graph that is built: dependencies, a clone, what goes.
del told[:]
built, clone = handle(), handle()
nodes = [handle(), handle()]
assert rt.cudaGraphCreate(ctypes.byref(built), 0) == 0
assert rt.cudaGraphAddEmptyNode(ctypes.byref(nodes[0]), built, None, ctypes.c_size_t(0)) == 0
assert rt.cudaGraphAddEmptyNode(ctypes.byref(nodes[1]), built, None, ctypes.c_size_t(0)) == 0
def edge(name):
    begin, end = (ctypes.c_void_p * 1)(nodes[0].value), (ctypes.c_void_p * 1)(nodes[1].value)
    return getattr(rt, name)(built, begin, end, *((None,) if {major} >= 13 else ()), ctypes.c_size_t(1))
assert edge("cudaGraphAddDependencies") == 0
assert events() == [9, 12, 13, 12, 13, 15] and told[1]["type"] == 5
del told[:]
assert rt.cudaGraphClone(ctypes.byref(clone), built) == 0
assert events() == [9, 11, 12, 13, 20, 12, 13, 20, 15] and told[1]["original_graph"] == number("cuptiGetGraphId",
                                                                                                built.value)
del told[:]
assert edge("cudaGraphRemoveDependencies") == 0 and rt.cudaGraphDestroyNode(nodes[1]) == 0
assert rt.cudaGraphDestroy(built) == 0 and rt.cudaGraphExecDestroy(executable) == 0
assert rt.cudaStreamDestroy(stream) == 0
assert events() == [16, 14, 10, 19, 4] and told[3]["exec"] == launched and told[4] == (4, stream.value)
# A capture that fails takes its graph along.
del told[:]
assert rt.cudaStreamCreate(ctypes.byref(stream)) == 0 and rt.cudaStreamBeginCapture(stream, 0) == 0
assert rt.cudaStreamSynchronize(stream) != 0 and rt.cudaStreamEndCapture(stream, ctypes.byref(graph)) != 0
assert events() == [3, 9, 10], events()
# The end: one of them, then all.
del told[:]
assert cupti.cuptiEnableCallback(0, subscriber, 3, 3) == 0 and rt.cudaStreamCreate(ctypes.byref(handle())) == 0
assert told == [] and rt.cudaStreamDestroy(stream) == 0 and events() == [4]
assert cupti.cuptiUnsubscribe(subscriber) == 0 and rt.cudaGraphCreate(ctypes.byref(graph), 0) == 0 and events() == [4]
"""


def paths(sdk: pathlib.Path, major: int, code: str) -> str:
    folder = sdk / "lib" / f"cuda{major}"
    for name, library in (("cupti", "cupti"), ("runtime", "cudart"), ("driver", "cuda")):
        code = code.replace(f"{{{name}!r}}", repr(str(next(folder.glob(f"lib{library}.so.*")))))
    return code.replace("{major}", str(major))


def test_calls_are_told_of_with_their_arguments_and_results(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    run_python(paths(sdk, major, CODE))


def test_calls_of_the_driver_interface_are_told_of_by_its_names(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    run_python(paths(sdk, major, DRIVER_CODE))


def test_streams_graphs_and_nodes_are_told_of(sdk: pathlib.Path, major: int, run_python: Callable[..., str]) -> None:
    run_python(paths(sdk, major, RESOURCE_CODE))
