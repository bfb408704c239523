"""The driver interface's libraries, kernels, links, launches with attributes, and streams that wait for words."""

import pathlib
from typing import Callable

import pytest
from compiling import Cucc, run_program

MODULE = """
struct Pair { double x; char y; };
__device__ int total[4];
extern "C" __global__ void fill(int* out, int value) { out[threadIdx.x + blockIdx.x * blockDim.x] = value; }
extern "C" __global__ void meets(int* out) {
  atomicAdd(out, 1);
  asm volatile("bar.sync 0;");
}
extern "C" __global__ void takes(char first, double second, Pair third, short fourth) { total[0] = first; }
"""

PROGRAM = r"""
#include <cuda.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>
#define CHECK(condition) \
  do { if (!(condition)) { std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); std::exit(1); } } while (0)

static std::vector<char> read(const char* path) {
  std::vector<char> bytes;
  FILE* file = std::fopen(path, "rb");
  for (int c = 0; file != nullptr && (c = std::fgetc(file)) != EOF;) bytes.push_back(static_cast<char>(c));
  CHECK(!bytes.empty());
  return bytes;
}

static int* device;

static void libraries(const char* path) {
  CUlibrary library;
  CHECK(cuLibraryLoadFromFile(&library, path, 0, 0, 0, 0, 0, 0) == CUDA_SUCCESS);
  unsigned count = 0;
  CHECK(cuLibraryGetKernelCount(&count, library) == CUDA_SUCCESS && count == 3);
  CUkernel kernels[4] = {};
  CHECK(cuLibraryEnumerateKernels(kernels, 4, library) == CUDA_SUCCESS && kernels[3] == nullptr);
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const char* name = nullptr;
    CUlibrary of = nullptr;
    CHECK(cuKernelGetName(&name, kernels[i]) == CUDA_SUCCESS);
    CHECK(cuKernelGetLibrary(&of, kernels[i]) == CUDA_SUCCESS && of == library);
    names.insert(name);
  }
  CHECK(names == (std::set<std::string>{"fill", "meets", "takes"}));
  CUkernel takes;
  CHECK(cuLibraryGetKernel(&takes, library, "takes") == CUDA_SUCCESS);
  const size_t wanted[4][2] = {{0, 1}, {8, 8}, {16, 16}, {32, 2}};
  for (size_t i = 0; i < 4; ++i) {
    size_t offset = 99, bytes = 99;
    CHECK(cuKernelGetParamInfo(takes, i, &offset, &bytes) == CUDA_SUCCESS);
    CHECK(offset == wanted[i][0] && bytes == wanted[i][1]);
  }
  size_t offset = 0;
  CHECK(cuKernelGetParamInfo(takes, 4, &offset, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUfunction function;
  CUfunctionLoadingState state;
  CHECK(cuKernelGetFunction(&function, takes) == CUDA_SUCCESS);
  CHECK(cuFuncIsLoaded(&state, function) == CUDA_SUCCESS && state == CU_FUNCTION_LOADING_STATE_LOADED);
  int most = 0;
  CHECK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, takes, 0) == CUDA_SUCCESS);
  CHECK(cuKernelGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, takes, 0) == CUDA_SUCCESS);
  CHECK(most == 65536);
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  CHECK(cuLibraryGetGlobal(&variable, &bytes, library, "total") == CUDA_SUCCESS && bytes == 16);
  CHECK(cuLibraryGetGlobal(&variable, &bytes, library, "absent") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuLibraryUnload(library) == CUDA_SUCCESS);
  CHECK(cuKernelGetLibrary(&library, takes) == CUDA_ERROR_INVALID_HANDLE);
}

static void links(const std::vector<char>& image) {
  char log[200] = "?";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlinkState link;
  CHECK(cuLinkCreate(2, options, values, &link) == CUDA_SUCCESS && log[0] == '\0');
  char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
  CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, ptx, sizeof ptx, "k", 0, 0, 0) == CUDA_ERROR_INVALID_PTX);
  CHECK(std::strstr(log, "PTX") != nullptr);
  char* const data = const_cast<char*>(image.data());
  CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, data, image.size() - 9, "k", 0, 0, 0) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, data, image.size(), "k", 0, 0, 0) == CUDA_SUCCESS);
  CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, data, image.size(), "k", 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  void* cubin = nullptr;
  size_t size = 0;
  CHECK(cuLinkComplete(link, &cubin, &size) == CUDA_SUCCESS && size == image.size());
  CUmodule module;
  CHECK(cuModuleLoadData(&module, cubin) == CUDA_SUCCESS && cuLinkDestroy(link) == CUDA_SUCCESS);

  CUfunction fill, meets;
  unsigned count = 0;
  CHECK(cuModuleGetFunctionCount(&count, module) == CUDA_SUCCESS && count == 3);
  CHECK(cuModuleGetFunction(&fill, module, "fill") == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&meets, module, "meets") == CUDA_SUCCESS);
  CUstream stream;
  CUevent before, after;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(cuEventCreate(&before, 0) == CUDA_SUCCESS && cuEventCreate(&after, 0) == CUDA_SUCCESS);
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[0].value.cooperative = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
  attributes[1].value.programmaticEvent = {after, 0, 0};
  CUlaunchConfig config = {3, 1, 1, 32, 1, 1, 0, stream, attributes, 2};
  int value = 7;
  void* arguments[] = {&device, &value};
  CHECK(cuEventRecord(before, stream) == CUDA_SUCCESS);
  CHECK(cuLaunchKernelEx(&config, fill, arguments, nullptr) == CUDA_SUCCESS);
  float ms = -1;
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS && cuEventElapsedTime(&ms, before, after) == CUDA_SUCCESS);
  CHECK(device[0] == 7 && device[95] == 7 && device[96] == 0 && ms >= 0);
  struct { int* out; int value; } packed = {device, 8};
  size_t room = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &room, CU_LAUNCH_PARAM_END};
  config.numAttrs = 0;
  CHECK(cuLaunchKernelEx(&config, fill, nullptr, extra) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS && device[95] == 8);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim = {3, 1, 1};
  config.numAttrs = 1;
  int clusters = 0;
  CHECK(cuLaunchKernelEx(&config, fill, arguments, nullptr) == CUDA_ERROR_NOT_SUPPORTED && device[95] == 8);
  CHECK(cuOccupancyMaxActiveClusters(&clusters, fill, &config) == CUDA_ERROR_NOT_SUPPORTED);
  attributes[0].value.clusterDim = {1, 1, 1};
  int blocks = 0, processors = 0;
  CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 32, 0) == CUDA_SUCCESS);
  CHECK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) == CUDA_SUCCESS);
  CHECK(cuOccupancyMaxActiveClusters(&clusters, fill, &config) == CUDA_SUCCESS && clusters == blocks * processors);
  CHECK(cuStreamDestroy(stream) == CUDA_SUCCESS && cuModuleUnload(module) == CUDA_SUCCESS);
}

// Whether the stream still waits after a while.
static bool waits(CUstream stream) {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  return cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

static void words() {
  CUstream first, second;
  CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  std::memset(device, 0, 4096);
  volatile int* const seen = device;
  const auto at = [](int word) { return reinterpret_cast<CUdeviceptr>(device + word); };
  // The first waits for the second, which waits for the host.
  CHECK(cuStreamWaitValue32(first, at(0), 5, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
  CHECK(cuStreamWriteValue32(first, at(1), 11, 0) == CUDA_SUCCESS);
  CHECK(cuStreamWaitValue64(second, at(2), 1ULL << 40, CU_STREAM_WAIT_VALUE_AND) == CUDA_SUCCESS);
  CHECK(cuStreamWriteValue32(second, at(0), 5, 0) == CUDA_SUCCESS);
  CHECK(waits(first) && waits(second) && seen[0] == 0 && seen[1] == 0);
  __atomic_store_n(reinterpret_cast<uint64_t*>(device + 2), 3ULL << 40, __ATOMIC_RELEASE);
  CHECK(cuStreamSynchronize(first) == CUDA_SUCCESS && seen[0] == 5 && seen[1] == 11);
  // Greater or equal goes round: 2 is behind 0xfffffffe, and 0xfffffffe is not behind 2.
  device[4] = 2;
  CHECK(cuStreamWaitValue32(first, at(4), 0xfffffffe, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(first) == CUDA_SUCCESS);
  device[4] = static_cast<int>(0xfffffffe);
  CHECK(cuStreamWaitValue32(first, at(4), 2, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS && waits(first));
  CHECK(cuStreamWriteValue32(second, at(4), 3, 0) == CUDA_SUCCESS && cuStreamSynchronize(first) == CUDA_SUCCESS);
  // Not-or: some bit is in neither.
  device[5] = static_cast<int>(0xffffff00);
  CHECK(cuStreamWaitValue32(first, at(5), 0xff, CU_STREAM_WAIT_VALUE_NOR) == CUDA_SUCCESS && waits(first));
  CHECK(cuStreamWriteValue32(second, at(5), 0, 0) == CUDA_SUCCESS && cuStreamSynchronize(first) == CUDA_SUCCESS);

  CUstreamBatchMemOpParams batch[4] = {};
  batch[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  batch[0].writeValue.address = at(6);
  batch[0].writeValue.value = 1;
  batch[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
  batch[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  batch[2].waitValue.address = at(7);
  batch[2].waitValue.value = 9;
  batch[2].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  batch[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  batch[3].writeValue.address = at(8);
  batch[3].writeValue.value64 = 1ULL << 33;
  CHECK(cuStreamBatchMemOp(first, 4, batch, 0) == CUDA_SUCCESS && waits(first) && seen[6] == 1 && seen[9] == 0);
  CHECK(cuStreamWriteValue32(second, at(7), 9, 0) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(first) == CUDA_SUCCESS && seen[8] == 0 && seen[9] == 2);
  // What is captured is written by each launch.
  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuStreamBeginCapture(first, cudaStreamCaptureModeRelaxed) == CUDA_SUCCESS);
  CHECK(cuStreamWriteValue32(first, at(10), 77, 0) == CUDA_SUCCESS && seen[10] == 0);
  CHECK(cuStreamEndCapture(first, &graph) == CUDA_SUCCESS);
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS && cuGraphLaunch(exec, first) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(first) == CUDA_SUCCESS && seen[10] == 77);
}

int main(int, char** words_) {
  CUcontext context;
  CHECK(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(cudaMallocManaged(&device, 4096) == cudaSuccess);
  libraries(words_[1]);
  links(read(words_[1]));
  words();
}
"""


def test_modules_launches_and_words_of_the_driver_interface(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "module.cu").write_text(MODULE, encoding="utf-8")
    (tmp_path / "program.cu").write_text(PROGRAM, encoding="utf-8")
    cucc("-O1", "-shared", "-Xcompiler", "-fPIC", tmp_path / "module.cu", "-o", tmp_path / "module.so")
    cucc("-O1", tmp_path / "program.cu", "-o", tmp_path / "program", "-lcuda")
    done = run_program(tmp_path / "program", tmp_path / "module.so")
    assert done.returncode == 0, done.stdout + done.stderr


ADDS = """
extern "C" __global__ void fill(int* out, int value, float half) {
  atomicAdd(out + blockIdx.y * gridDim.x + blockIdx.x, value + (int)(half * 2));
}
"""


# -ptx: a module as text, where programs expect PTX.
@pytest.mark.parametrize("form", ["ptx", "cubin"])
def test_what_the_driver_interface_keeps_of_its_first_years(
    cucc: Cucc, compile_program: Callable[..., pathlib.Path], tmp_path: pathlib.Path, form: str
) -> None:
    module = tmp_path / f"module.{form}"
    (tmp_path / "module.cu").write_text(ADDS, encoding="utf-8")
    cucc(f"--{form}", "-rdc=true", tmp_path / "module.cu", "-o", module)
    assert (b"\x7fELF" in module.read_bytes()) == (form == "cubin")
    done = run_program(compile_program("driver/deprecated.cpp", "libcudart", "libcuda"), module)
    assert done.returncode == 0, done.stdout + done.stderr


# PyCUDA calls its kernels by what they compute: the mathematics library, which Python has loaded, has such names too.
@pytest.mark.parametrize("form", ["ptx", "cubin"])
def test_a_kernel_is_found_that_is_called_as_a_function_of_the_host(
    cucc: Cucc, run_python: Callable[..., str], tmp_path: pathlib.Path, form: str
) -> None:
    module = tmp_path / f"module.{form}"
    (tmp_path / "module.cu").write_text('extern "C" __global__ void conj(float* z) { *z = -*z; }\n', encoding="utf-8")
    cucc(f"-{form}", "-w", tmp_path / "module.cu", "-o", module)
    run_python(
        f"""
import ctypes, mxmaca
ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL).conj
cuda = ctypes.CDLL(str(mxmaca.lib_dir(12) / "libcuda.so.1"))
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuModuleLoad(ctypes.byref(module), {str(module).encode()!r}) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"conj") == 0
"""
    )


def test_a_module_is_made_of_one_source_file(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    for name in ("a.cu", "b.cu"):
        (tmp_path / name).write_text(ADDS, encoding="utf-8")
    done = cucc("-ptx", tmp_path / "a.cu", tmp_path / "b.cu", "-odir", tmp_path, check=False)
    assert done.returncode != 0 and "-ptx makes a module of one source file" in done.stderr
    assert not list(tmp_path.glob("*.ptx"))
