"""Green contexts: a part of a device's multiprocessors, and of the threads that run its blocks."""

import pathlib
from typing import Callable

import pytest
from compiling import Cucc, run_program

CODE = """
import ctypes
dr, rt = ctypes.CDLL({driver!r}), ctypes.CDLL({runtime!r})
class Resource(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("hidden", ctypes.c_ubyte * 92), ("count", ctypes.c_uint),
                ("rest", ctypes.c_uint * 11)]
assert ctypes.sizeof(Resource) == 144
ref = ctypes.byref
def made(library, name, *arguments):
    out = ctypes.c_void_p()
    assert library[name](ref(out), *arguments) == 0, name
    return out
def resource(name, of, kind=1):
    out = Resource()
    assert dr[name](of, ref(out), kind) == 0, name
    return out
whole = resource("cuDeviceGetDevResource", 0)
assert whole.type == 1 and whole.count == 104
assert resource("cuCtxGetDevResource", made(dr, "cuDevicePrimaryCtxRetain", 0)).count == 104
assert dr.cuDeviceGetDevResource(0, ref(Resource()), 1000) == 914  # no workqueues
assert dr.cuDeviceGetDevResource(9, ref(Resource()), 1) == 101 and dr.cuDeviceGetDevResource(0, None, 1) == 1

# A split: as many groups as fit, each of the size that the device can give, and the rest.
def split(resource, groups, least, flags=0):
    made, number, rest = (Resource * max(groups, 1))(), ctypes.c_uint(groups), Resource()
    status = dr.cuDevSmResourceSplitByCount(made, ref(number), ref(resource), ref(rest), flags, least)
    return status or ([one.count for one in made[:number.value]], rest.count, made, rest)
assert split(whole, 2, 10)[:2] == ([10, 10], 84) and split(whole, 3, 1)[:2] == ([4, 4, 4], 92)
assert split(whole, 1, 33)[:2] == ([34], 70) and split(whole, 4, 50)[:2] == ([50, 50], 4)
assert split(whole, 1, 104)[:2] == ([104], 0) and split(whole, 1, 104)[3].type == 0
assert split(whole, 1, 105) == 915 and split(whole, 0, 8) == 1 and split(whole, 1, 8, 4) == 1
number = ctypes.c_uint()
assert dr.cuDevSmResourceSplitByCount(None, ref(number), ref(whole), None, 0, 8) == 0 and number.value == 13
changed = Resource.from_buffer_copy(whole)
changed.count = 50
assert split(changed, 1, 8) == 915 and split(Resource(), 1, 8) == 914 and split(Resource(type=1), 1, 8) == 915
groups, rest = split(whole, 2, 20)[2:]
assert split(rest, 1, 60)[:2] == ([60], 4)

# Resources of one split go together, none twice.
def description(*resources):
    all, out = (Resource * len(resources))(*resources), ctypes.c_void_p()
    return dr.cuDevResourceGenerateDesc(ref(out), all, len(resources)) or out
assert description(groups[0], groups[0]) == 915 and description(groups[0], split(whole, 1, 20)[2][0]) == 915
assert description(groups[0], whole) == 915
both, one = description(groups[0], groups[1]), description(groups[0])
green = made(dr, "cuGreenCtxCreate", both, 0, 1)
assert resource("cuGreenCtxGetDevResource", green).count == 40
for wrong in (both, 0, 0), (both, 0, 2), (ctypes.c_void_p(64), 0, 1):
    assert dr.cuGreenCtxCreate(ref(ctypes.c_void_p()), *wrong) == 1
assert dr.cuGreenCtxCreate(ref(ctypes.c_void_p()), both, 1, 1) == 101  # of the other device

# A context like any other, but for its end.
context = made(dr, "cuCtxFromGreenCtx", green)
primary = made(dr, "cuCtxGetCurrent")
assert resource("cuCtxGetDevResource", context).count == 40 and context.value != primary.value
assert dr.cuCtxDestroy_v2(context) == 201
assert dr.cuCtxPushCurrent_v2(context) == 0 and made(dr, "cuCtxGetCurrent").value == context.value
def of(stream):
    out = ctypes.c_void_p(1)
    assert dr.cuStreamGetGreenCtx(stream, ref(out)) == 0
    return out.value
inside = made(rt, "cudaStreamCreate")
assert of(inside) == green.value and of(None) == green.value
assert rt.cudaSetDevice(1) == 0 and of(None) is None and of(inside) == green.value
assert rt.cudaSetDevice(0) == 0 and of(None) == green.value
popped = ctypes.c_void_p()
assert dr.cuCtxPopCurrent_v2(ref(popped)) == 0 and popped.value == context.value
assert of(None) is None and of(made(rt, "cudaStreamCreate")) is None and of(inside) == green.value
stream = made(dr, "cuGreenCtxStreamCreate", green, 1, 0)
assert of(stream) == green.value and dr.cuGreenCtxStreamCreate(ref(ctypes.c_void_p()), green, 0, 0) == 1
other = made(dr, "cuGreenCtxCreate", one, 0, 1)
assert of(made(dr, "cuGreenCtxStreamCreate", other, 1, 0)) == other.value != green.value

# Its end, also while it is on top. Its streams can be used on, with all of the device.
assert dr.cuCtxPushCurrent_v2(context) == 0 and dr.cuGreenCtxDestroy(green) == 0
assert made(dr, "cuCtxGetCurrent").value == primary.value and dr.cuGreenCtxDestroy(green) == 201
assert dr.cuCtxPushCurrent_v2(context) == 201 and of(stream) is None
assert dr.cuCtxFromGreenCtx(ref(ctypes.c_void_p()), green) == 201
assert dr.cuStreamSynchronize(stream) == 0 and dr.cuStreamDestroy_v2(stream) == 0
# There is an end to them, and it is said.
several = []
while True:
    out = ctypes.c_void_p()
    status = dr.cuGreenCtxCreate(ref(out), one, 0, 1)
    if status:
        break
    several.append(out)
assert status == 2 and len(several) == 4094  # and `other`
assert all(dr.cuGreenCtxDestroy(one) == 0 for one in several)
assert dr.cuGreenCtxDestroy(made(dr, "cuGreenCtxCreate", one, 0, 1)) == 0
"""

# How many blocks run at once. Blocks compute, so that they are not taken for ones that wait for others.
PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>

void need(int error, const char* call) {
  if (error == 0) return;
  std::printf("%s: %d\\n", call, error);
  std::exit(1);
}
#define NEED(call) need((int)(call), #call)

__global__ void crowd(int* now, int* most, double* out) {
  if (threadIdx.x == 0) atomicMax(most, atomicAdd(now, 1) + 1);
  double x = threadIdx.x;
  for (int i = 0; i < 20000; ++i) x = x * 0.999 + 1;
  out[threadIdx.x] = x;
  if (threadIdx.x == 0) atomicSub(now, 1);
}
__global__ void nothing() {}

int* counts;
double* out;

int most(cudaStream_t stream) {
  NEED(cudaMemset(counts, 0, 2 * sizeof(int)));
  crowd<<<64, 128, 0, stream>>>(counts, counts + 1, out);
  NEED(cudaDeviceSynchronize());
  int found[2];
  NEED(cudaMemcpy(found, counts, sizeof found, cudaMemcpyDeviceToHost));
  return found[1];
}

CUgreenCtx green(unsigned multiprocessors) {
  CUdevResource all, part;
  CUdevResourceDesc description;
  CUgreenCtx context;
  unsigned groups = 1;
  NEED(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  NEED(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, multiprocessors));
  NEED(cuDevResourceGenerateDesc(&description, &part, 1));
  NEED(cuGreenCtxCreate(&context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return context;
}

int cooperative(unsigned blocks, cudaStream_t stream) {
  const int error = cudaLaunchCooperativeKernel((const void*)nothing, dim3(blocks), dim3(1024), nullptr, 0, stream);
  cudaGetLastError();
  return error;
}

int main() {
  NEED(cudaMalloc(&counts, 2 * sizeof(int)));
  NEED(cudaMalloc(&out, 128 * sizeof(double)));
  const CUgreenCtx quarter = green(26), half = green(52);
  CUstream one, two;
  NEED(cuGreenCtxStreamCreate(&one, quarter, 1, 0));
  NEED(cuGreenCtxStreamCreate(&two, half, 1, 0));
  // The threads of a busy machine may begin when the first of them has run all blocks.
  int whole = 0;
  for (int i = 0; i < 30 && whole < 2; ++i) whole = most(nullptr);
  const int first = most((cudaStream_t)one), second = most((cudaStream_t)two);
  CUcontext context, popped;
  NEED(cuCtxFromGreenCtx(&context, quarter));
  NEED(cuCtxPushCurrent(context));
  const int current = most(nullptr);
  // What is captured keeps its part.
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  NEED(cudaStreamCreate(&stream));
  NEED(cudaMemset(counts, 0, 2 * sizeof(int)));
  NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  crowd<<<64, 128, 0, stream>>>(counts, counts + 1, out);
  NEED(cudaStreamEndCapture(stream, &graph));
  NEED(cudaGraphInstantiate(&exec, graph, 0));
  NEED(cuCtxPopCurrent(&popped));
  NEED(cudaGraphLaunch(exec, nullptr));
  NEED(cudaDeviceSynchronize());
  int found[2];
  NEED(cudaMemcpy(found, counts, sizeof found, cudaMemcpyDeviceToHost));
  std::printf("%d %d %d %d %d\\n", whole, first, second, current, found[1]);
  // Blocks of 1024 threads: two a multiprocessor.
  std::printf("%d %d %d\\n", cooperative(52, (cudaStream_t)one), cooperative(53, (cudaStream_t)one),
              cooperative(53, (cudaStream_t)two));
}
"""


def test_resources_are_split_and_contexts_made_of_them(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    folder = sdk / "lib" / f"cuda{major}"
    code = CODE.replace("{driver!r}", repr(str(folder / "libcuda.so.1")))
    code = code.replace("{runtime!r}", repr(str(next(folder.glob("libcudart.so.*")))))
    run_python(code, MACA_DEVICE_COUNT="2")


@pytest.mark.parametrize("threads", [2, 4])
def test_kernels_get_their_part_of_the_threads(cucc: Cucc, tmp_path: pathlib.Path, threads: int) -> None:
    source, program = tmp_path / "parts.cu", tmp_path / "parts"
    source.write_text(PROGRAM, encoding="utf-8")
    cucc(source, "-O2", "-lcuda", "-o", program)
    done = run_program(program, MACA_NUM_THREADS=str(threads))
    assert done.returncode == 0, done.stdout + done.stderr
    blocks, cooperative = (list(map(int, line.split())) for line in done.stdout.splitlines())
    whole, quarter, half, current, graph = blocks
    assert quarter == current == graph == 1 and half <= threads // 2
    assert 1 < whole <= threads  # else the others would say nothing
    assert cooperative == [0, 720, 0]
