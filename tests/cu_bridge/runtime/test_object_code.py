"""Object files are modules of the driver interface: placed and run without a linker, or refused with a reason."""

import pathlib
import shutil
import struct
import subprocess
from typing import Callable

import pytest

# A kernel as Triton's backend makes it: one call runs a chunk of the grid, and nothing for threads but the first.
KERNEL = r"""
#include <math.h>
#include <string.h>
#include "mc_kernel.h"
static int calls = 0;
static double table[4] = {1, 2, 3, 4};
static double* const places[2] = {&table[1], &table[3]};
static void chunk() {
  mcKernelContext* context = mcKernelEnter();
  if (context->firstThread.x != 0) return;
  float* out = *static_cast<float**>(context->arguments[0]);
  const float value = *static_cast<float*>(context->arguments[1]);
  char* scratch = static_cast<char*>(mcKernelScratch(5000));
  memset(scratch, 0, 5000);
  for (unsigned long long i = 0; i < context->blocks; ++i) {
    const unsigned block = context->block.x + static_cast<unsigned>(i);
    out[block] = sinf(value) + static_cast<float>(*places[block % 2]) + scratch[4999];
    ++calls;
  }
}
static const unsigned facts[] = {0, 1, 8, 8, 4, 4, 0, 0};
static const size_t shared[] = {0};
static const mcKernelEntry kernels[] = {{reinterpret_cast<const void*>(&chunk), &chunk, "sine", facts}};
extern "C" __attribute__((visibility("default"))) const mcModuleTable table_of_kernels asm("mxmaca.module");
const mcModuleTable table_of_kernels = {3, 1, kernels, 0, nullptr, shared};
"""

PROLOGUE = """
import ctypes, math, pathlib, struct
cuda = ctypes.CDLL({library!r})
image = pathlib.Path({object!r}).read_bytes()
pointer, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
def said(status):
    text = ctypes.c_char_p()
    cuda.cuGetErrorString(status, ctypes.byref(text))
    return text.value.decode()
def load(data):
    return cuda.cuModuleLoadData(ctypes.byref(module), data)
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096)) == 0
def arguments(value):
    held = [ctypes.c_void_p(pointer.value), ctypes.c_float(value)]
    return held, (ctypes.c_void_p * 2)(*map(ctypes.addressof, held))
def launch(value, grid=1024, stream=None):
    held, packed = arguments(value)
    return cuda.cuLaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, stream, packed, None)
def values():
    return [struct.unpack_from("f", ctypes.string_at(pointer.value, 4096), 4 * i)[0] for i in range(1024)]
def expected(value):
    return [math.sin(value) + (2, 4)[i % 2] for i in range(1024)]
def same(got, wanted):
    return all(abs(a - b) < 1e-6 for a, b in zip(got, wanted))
"""


@pytest.fixture(scope="module")
def compile_object(sdk: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pathlib.Path]:
    """Return a function that compiles C++ to an object file of position-independent code."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to make an object file with")

    def run(source: str) -> pathlib.Path:
        folder = tmp_path_factory.mktemp("object")
        (folder / "kernel.cpp").write_text(source, encoding="utf-8")
        command = [compiler, "-std=c++17", "-O2", "-fPIC", "-fno-exceptions", f"-I{sdk / 'include'}", "-c"]
        subprocess.run([*command, "kernel.cpp", "-o", "kernel.o"], cwd=folder, check=True, timeout=100)
        return folder / "kernel.o"

    return run


@pytest.fixture(scope="module")
def kernel(compile_object: Callable[[str], pathlib.Path]) -> pathlib.Path:
    """Return the object file of the kernel above."""
    return compile_object(KERNEL)


@pytest.fixture()
def run(sdk: pathlib.Path, run_python: Callable[..., str], kernel: pathlib.Path) -> Callable[..., str]:
    """Return a function that runs Python code with the driver interface and an object file at hand."""

    def inner(code: str, path: pathlib.Path = kernel, **variables: str) -> str:
        library = str(sdk / "lib" / "cuda12" / "libcuda.so.1")
        return run_python(PROLOGUE.format(library=library, object=str(path)) + code, **variables)

    return inner


@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:7"])
def test_a_kernel_runs_once_for_each_block(run: Callable[..., str], schedule: str) -> None:
    """Whatever the order of threads and blocks, a program is run for each block, with the arguments' values."""
    code = """
assert load(image) == 0, said(load(image))
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"sine") == 0
assert launch(0.5) == 0
assert same(values(), expected(0.5))
most = ctypes.c_int()
assert cuda.cuFuncGetAttribute(ctypes.byref(most), 0, function) == 0 and most.value == 1024
"""
    run(code, MACA_SCHEDULE=schedule)


def test_a_captured_launch_keeps_its_arguments(run: Callable[..., str]) -> None:
    """A graph runs the kernel with what its arguments were at the capture."""
    run(
        """
assert load(image) == 0 and cuda.cuModuleGetFunction(ctypes.byref(function), module, b"sine") == 0
stream, graph, ready = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
assert cuda.cuMemsetD8_v2(pointer, 0, ctypes.c_size_t(4096)) == 0
assert cuda.cuStreamBeginCapture_v2(stream, 0) == 0
assert launch(1.5, stream=stream) == 0
assert cuda.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
assert not any(values())
assert cuda.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_ulonglong(0)) == 0
assert cuda.cuGraphLaunch(ready, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
assert same(values(), expected(1.5))
"""
    )


def test_a_fault_names_kernel_and_block(run: Callable[..., str]) -> None:
    """A pointer to no memory ends as an illegal address with the kernel's name, where the program next waits."""
    run(
        """
assert load(image) == 0 and cuda.cuModuleGetFunction(ctypes.byref(function), module, b"sine") == 0
pointer.value = 4096
assert launch(1.0) == 0
status = cuda.cuCtxSynchronize()
assert status == 700, status
assert "kernel sine, block (" in said(status), said(status)
"""
    )


def test_unloading_ends_the_functions(run: Callable[..., str]) -> None:
    """A function of an unloaded module is unknown, also where another module has come."""
    run(
        """
assert load(image) == 0 and cuda.cuModuleGetFunction(ctypes.byref(function), module, b"sine") == 0
assert cuda.cuModuleUnload(module) == 0
assert load(image) == 0
assert launch(1.0) == 400
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"cosine") == 500
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"sine") == 0 and launch(1.0) == 0
assert same(values(), expected(1.0))
"""
    )


def test_what_is_no_module_is_refused_with_its_reason(run: Callable[..., str], kernel: pathlib.Path) -> None:
    """Damage in the headers is an error that says what is wrong, and no crash."""
    image = kernel.read_bytes()
    sections, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    run(
        f"""
sections, count = {sections}, {count}
def refused(data, reason):
    status = load(bytes(data))
    assert status == 200 and reason in said(status), (status, said(status))
other = bytearray(image)
struct.pack_into("<H", other, 18, 243)
refused(other, "another processor")
for number in range(1, count):
    place = sections + 64 * number
    if struct.unpack_from("<I", image, place + 4)[0] == 8:
        continue  # takes no place in the file
    for field, reason in ((24, "cut short"), (32, "cut short")):
        damaged = bytearray(image)
        struct.pack_into("<Q", damaged, place + field, 1 << 40)
        refused(damaged, reason)
"""
    )


@pytest.mark.parametrize(
    "source, reason",
    [
        ("int unused;", "without a table of kernels"),
        (
            KERNEL.replace("sinf(value)", "sineOfNobody(value)").replace(
                "static int", 'extern "C" float sineOfNobody(float);\nstatic int'
            ),
            "calls sineOfNobody, which is not there",
        ),
        (KERNEL + "\nthread_local int own; int* get() { return &own; }", "variables of threads"),
        (KERNEL + "\nstruct Made { Made(); }; Made::Made() { ++calls; } Made made;", "functions to run at its start"),
        (KERNEL.replace("= {3, 1", "= {77, 1"), "another version of the SDK"),
    ],
    ids=["no table", "unknown function", "thread-local", "constructor", "version"],
)
def test_objects_that_want_more_are_refused(
    run: Callable[..., str], compile_object: Callable[[str], pathlib.Path], source: str, reason: str
) -> None:
    """What only a linker or a loader of libraries could do is refused by name."""
    run(
        f"status = load(image)\nassert status == 200 and {reason!r} in said(status), said(status)",
        compile_object(source),
    )
