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

# Created ones: each is another one, on top at once, of its device, until it is destroyed; the one below follows.
first = made(dr, "cuCtxCreate_v2", 4, 1)
second = made(dr, "cuCtxCreate_v4", None, 0, 1)
assert len({zero, one, first, second}) == 4 and current() == second and device() == 1
assert dr.cuCtxGetFlags(ctypes.byref(flags := ctypes.c_uint(9))) == 0 and flags.value == 0
assert pop() == second and current() == first
assert dr.cuCtxGetFlags(ctypes.byref(flags)) == 0 and flags.value == 4
assert push(second) == 0 and push(zero) == 0 and device() == 0
destroy = lambda context: dr.cuCtxDestroy_v2(ctypes.c_void_p(context))
assert destroy(second) == 0 and destroy(second) == 201 and push(second) == 201 and set_current(second) == 201
assert destroy(zero) == 201 and destroy(None) == 201  # a primary one, and none
assert current() == zero and pop() == zero and current() == first  # the destroyed one between them is nobody's
# cudaSetDevice brings the primary one of another device; a kernel's memory is the device's, whichever context made it.
assert dr.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64)) == 0
assert rt.cudaSetDevice(0) == 0 and current() == zero and set_current(first) == 0
assert destroy(first) == 0 and current() == zero
assert dr.cuMemFree_v2(memory) == 0
# One that cudaSetDevice has taken the place of is not on top any more: to destroy it takes nothing away.
replaced = made(dr, "cuCtxCreate_v2", 0, 1)
assert push(one) == 0 and pop() == one and current() == replaced
assert rt.cudaSetDevice(0) == 0 and current() == zero and destroy(replaced) == 0 and current() == zero
assert pop() == zero and current() == zero  # the one that was there before
assert dr.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 3, 0) == 1  # two ways to wait at once
assert dr.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 99) == 101
part = (ctypes.c_uint * 2)(0, 8)
assert dr.cuCtxCreate_v3(ctypes.byref(ctypes.c_void_p()), part, 1, 0, 0) == 224
# Parameters that ask for nothing make a context; a part of the multiprocessors, graphics, and both do not.
asking = lambda *fields: (ctypes.c_void_p * 3)(*fields)
address = ctypes.addressof(part)
wrong = (asking(address, 1, 0), 224), (asking(0, 0, address), 801), (asking(address, 1, address), 1)
for parameters, status in wrong:
    assert dr.cuCtxCreate_v4(ctypes.byref(ctypes.c_void_p()), parameters, 0, 0) == status
plain = made(dr, "cuCtxCreate_v4", asking(0, 0, 0), 0, 0)
assert current() == plain and destroy(plain) == 0
assert current() == zero

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
