"""The driver's context stack is each thread's own, and the runtime interface and it see each other."""

import pathlib
from typing import Callable

CODE = """
import ctypes, threading
dr, rt = ctypes.CDLL({driver!r}), ctypes.CDLL({runtime!r})
def made(library, name, *arguments):
    out = ctypes.c_void_p()
    assert library[name](ctypes.byref(out), *arguments) == 0, name
    return out.value
def current():
    return made(dr, "cuCtxGetCurrent")
def device():
    out = ctypes.c_int(-1)
    status = dr.cuCtxGetDevice(ctypes.byref(out))
    return out.value if status == 0 else -status
def push(context):
    return dr.cuCtxPushCurrent_v2(ctypes.c_void_p(context))
def pop():
    out = ctypes.c_void_p(1)
    status = dr.cuCtxPopCurrent_v2(ctypes.byref(out))
    return out.value if status == 0 else -status
def set_current(context):
    return dr.cuCtxSetCurrent(ctypes.c_void_p(context))
zero, one = made(dr, "cuDevicePrimaryCtxRetain", 0), made(dr, "cuDevicePrimaryCtxRetain", 1)
assert zero != one and current() == zero and device() == 0

# Last in, first out, down to none; then nothing to take, and nothing that works.
assert push(one) == 0 and push(zero) == 0 and push(one) == 0
assert [pop(), pop(), pop(), pop(), pop()] == [one, zero, one, zero, -201]
assert current() is None and device() == -201
memory = ctypes.c_uint64()
assert dr.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64)) == 201
assert push(one) == 0 and device() == 1 and dr.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64)) == 0
assert pop() == one and current() is None
# A call of the runtime interface brings the device's context back.
pointer = made(rt, "cudaMalloc", ctypes.c_size_t(64))
assert current() is not None

# Set takes the place of the top; a set of none takes the top away, and of nothing does nothing.
assert set_current(zero) == 0 and push(one) == 0 and set_current(zero) == 0 and current() == zero
assert push(one) == 0 and set_current(None) == 0 and current() == zero
assert set_current(None) == 0 and current() == zero  # the one below
assert set_current(None) == 0 and current() is None and set_current(None) == 0
# What is no context changes nothing.
assert set_current(zero) == 0
for wrong in (zero + 1, 1, pointer):
    assert push(wrong) == 201 and set_current(wrong) == 201 and current() == zero
# cudaSetDevice changes the top.
assert push(zero) == 0 and rt.cudaSetDevice(1) == 0 and current() == one and pop() == one and current() == zero

# Another thread has a stack of its own.
found = []
def work():
    found.extend([current() == zero, push(one), device(), pop() == one, pop() == zero, pop()])
assert push(one) == 0
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert found == [True, 0, 1, True, True, -201]
assert current() == one and pop() == one and current() == zero

# Releases are counted; flags are kept.
assert dr.cuDevicePrimaryCtxRelease_v2(1) == 0 and dr.cuDevicePrimaryCtxRelease_v2(1) == 201
flags, active = ctypes.c_uint(), ctypes.c_int()
assert dr.cuDevicePrimaryCtxSetFlags_v2(0, 4) == 0 and dr.cuDevicePrimaryCtxSetFlags_v2(0, 5) == 1
assert dr.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
assert (flags.value, active.value) == (4, 1)
assert dr.cuCtxGetFlags(ctypes.byref(flags)) == 0 and flags.value == 4
"""


def test_contexts_are_pushed_popped_and_current_in_each_thread(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    folder = sdk / "lib" / f"cuda{major}"
    code = CODE.replace("{driver!r}", repr(str(folder / "libcuda.so.1")))
    code = code.replace("{runtime!r}", repr(str(next(folder.glob("libcudart.so.*")))))
    run_python(code, MACA_DEVICE_COUNT="2")
