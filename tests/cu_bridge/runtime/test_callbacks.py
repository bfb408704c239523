"""CUPTI's callbacks: who subscribes to calls is told of each when it begins and when it is over."""

import pathlib
from typing import Callable

CODE = """
import ctypes, struct
cupti, rt = ctypes.CDLL({cupti!r}), ctypes.CDLL({runtime!r})
class Data(ctypes.Structure):
    _fields_ = [("site", ctypes.c_uint), ("function", ctypes.c_char_p), ("parameters", ctypes.c_void_p),
                ("result", ctypes.POINTER(ctypes.c_int)), ("symbol", ctypes.c_char_p), ("context", ctypes.c_void_p),
                ("uid", ctypes.c_uint), ("own", ctypes.POINTER(ctypes.c_uint64)), ("correlation", ctypes.c_uint)]
calls = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(Data))
def callback(user, domain, number, data):
    data = data[0]
    assert domain == 2 and user == 7
    layout = LAYOUTS[number]
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
           147: "PPI", 165: "", 211: "P6IPQP"}
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
for domain, number in ((1, 307), (2, 311), (2, 5), (2, 100000), (3, 3), (4, 1), (5, 1), (6, 1)):
    assert cupti.cuptiEnableCallback(1, subscriber, domain, number) == 27, (domain, number)
    assert cupti.cuptiEnableCallback(0, subscriber, domain, number) == 0
for context in 1, 2:  # is made and ends: never, while the process lives
    assert cupti.cuptiEnableCallback(1, subscriber, 3, context) == 0
assert cupti.cuptiEnableDomain(1, subscriber, 1) == 27 and cupti.cuptiEnableDomain(1, subscriber, 7) == 1

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
assert rt.cudaEventRecord(event, stream) == 0 and rt.cudaStreamWaitEvent(None, event, 0) == 0
assert rt.cudaEventSynchronize(event) == 0 and rt.cudaStreamSynchronize(stream) == 0
assert rt.cudaDeviceSynchronize() == 0
assert [call[:3] + call[5:] for call in calls] == [
    [31, "cudaMemcpy", (target.value, address, 64, 1), 0],
    [41, "cudaMemcpyAsync", (address, target.value, 64, 2, stream.value), 0],
    [49, "cudaMemset", (target.value, 3, 64), 0],
    [51, "cudaMemsetAsync", (target.value, 4, 64, stream.value), 0],
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


def test_calls_are_told_of_with_their_arguments_and_results(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    folder = sdk / "lib" / f"cuda{major}"
    code = CODE.replace("{cupti!r}", repr(str(next(folder.glob("libcupti.so.*")))))
    code = code.replace("{runtime!r}", repr(str(next(folder.glob("libcudart.so.*")))))
    run_python(code)
