"""Forms that programs of others take: how they link, what headers they include, what they tell the compiler."""

import pathlib

from compiling import Cucc, run_program


def succeeds(program: pathlib.Path, *arguments: str, **variables: str) -> None:
    done = run_program(program, *arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr


RANKS = r"""
#include <nccl.h>
#include <cstdio>
#define CHECK(condition) \
  do { if (!(condition)) { std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); return 1; } } while (0)
#define NCCL(call) CHECK((call) == ncclSuccess)

__global__ void fill(float* values, float by) { values[threadIdx.x] = threadIdx.x * by; }

int main() {
  static_assert(NCCL_VERSION_CODE == NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), "one version, said twice");
  int version = 0;
  NCCL(ncclGetVersion(&version));
  CHECK(version == NCCL_VERSION_CODE);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  NCCL(ncclGetUniqueId(&id));
  NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  int ranks = 0, rank = -1, device = -1;
  NCCL(ncclCommCount(comm, &ranks));
  NCCL(ncclCommUserRank(comm, &rank));
  NCCL(ncclCommCuDevice(comm, &device));
  CHECK(ranks == 1 && rank == 0 && device == 0);

  float *in = nullptr, *out = nullptr;
  CHECK(cudaMallocManaged(&in, 128) == cudaSuccess && cudaMallocManaged(&out, 128) == cudaSuccess);
  fill<<<1, 32>>>(in, 2.0f);
  float half = 0.5f;
  ncclRedOp_t scaled;
  NCCL(ncclRedOpCreatePreMulSum(&scaled, &half, ncclFloat, ncclScalarHostImmediate, comm));
  NCCL(ncclGroupStart());
  NCCL(ncclAllReduce(in, out, 32, ncclFloat, scaled, comm, nullptr));
  NCCL(ncclGroupEnd());
  CHECK(cudaDeviceSynchronize() == cudaSuccess && out[9] == 9);
  NCCL(ncclRedOpDestroy(scaled, comm));
  ncclResult_t error = ncclInProgress;
  NCCL(ncclCommGetAsyncError(comm, &error));
  CHECK(error == ncclSuccess);
  CHECK(ncclAllReduce(in, out, 32, ncclNumTypes, ncclSum, comm, nullptr) == ncclInvalidArgument);
  NCCL(ncclCommDestroy(comm));
}
"""

ASSUMED = r"""
#include <cstdio>
__host__ __device__ constexpr int least(int n) {
  __builtin_assume(n > 3);
  return n;
}
template <int Size>
__global__ void fill(int* values) {
  [&](int i) {
    __builtin_assume(i < Size);
    values[i] = least(i + 4);
  }(threadIdx.x);
  __assume(Size > 1);
}
int main() {
  int* values = nullptr;
  cudaMallocManaged(&values, 32 * sizeof(int));
  fill<32><<<1, 32>>>(values);
  return cudaDeviceSynchronize() == cudaSuccess && values[31] == 35 ? 0 : 1;
}
"""


def test_nccls_header_is_that_of_the_library(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "ranks.cu").write_text(RANKS)
    cucc("-O1", tmp_path / "ranks.cu", "-o", tmp_path / "ranks", "-lnccl")
    succeeds(tmp_path / "ranks")


def test_a_library_may_stand_before_the_file_that_needs_it(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """Linkers that drop what nothing before needs find it in nvcc's group."""
    (tmp_path / "random.cu").write_text(
        "#include <curand.h>\nint main() { curandGenerator_t made; "
        "return curandCreateGenerator(&made, CURAND_RNG_PSEUDO_DEFAULT) != CURAND_STATUS_SUCCESS; }\n"
    )
    cucc("-Xlinker", "--as-needed", "-lcurand", tmp_path / "random.cu", "-o", tmp_path / "random")
    succeeds(tmp_path / "random")


def test_the_compiler_may_be_told_what_holds(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "assumed.cu").write_text(ASSUMED)
    cucc("-O1", tmp_path / "assumed.cu", "-o", tmp_path / "assumed")
    succeeds(tmp_path / "assumed")


LEAVES = r"""
#include <cstdlib>
#include <unistd.h>
__global__ void leave(int how) {
  if (how == 0) exit(1);
  if (how == 1) _exit(1);
  if (how == 2) _Exit(1);
  if (how == 3) quick_exit(1);
}
int main(int count, char** arguments) {
  leave<<<1, 1>>>(std::atoi(arguments[count - 1]));
  if (cudaDeviceSynchronize() != cudaErrorLaunchFailure) exit(2);
  if (count < 2) quick_exit(3);
  _exit(0);
}
"""


def test_a_file_may_end_the_process_in_several_ways(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """In kernels each is a failure of its own name."""
    (tmp_path / "leaves.cu").write_text(LEAVES)
    cucc("-O1", tmp_path / "leaves.cu", "-o", tmp_path / "leaves")
    for how in range(4):
        succeeds(tmp_path / "leaves", str(how))


DRIVER = r"""
#include <cuda.h>
#include <cstdio>
#define CHECK(condition) \
  do { if (!(condition)) { std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); return 1; } } while (0)

int main() {
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);

  // One value in both interfaces.
  size_t limit = 0;
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20) == cudaSuccess);
  CHECK(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS && limit == 1 << 20);
  CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048) == CUDA_SUCCESS);
  CHECK(cudaDeviceGetLimit(&limit, cudaLimitStackSize) == cudaSuccess && limit == 2048);
  CUfunc_cache cache;
  CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1) == cudaSuccess);
  CHECK(cuCtxGetCacheConfig(&cache) == CUDA_SUCCESS && cache == CU_FUNC_CACHE_PREFER_L1);
  CUsharedconfig banks;
  CHECK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) == CUDA_SUCCESS);
  CHECK(cuCtxGetSharedMemConfig(&banks) == CUDA_SUCCESS && banks == CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);

  // Bytes of arrays.
  CUDA_ARRAY_DESCRIPTOR row = {};
  row.Width = 8;
  row.Format = CU_AD_FORMAT_FLOAT;
  row.NumChannels = 1;
  CUarray one, other;
  CHECK(cuArrayCreate(&one, &row) == CUDA_SUCCESS && cuArrayCreate(&other, &row) == CUDA_SUCCESS);
  CUdeviceptr memory, second;
  CHECK(cuMemAlloc(&memory, 32) == CUDA_SUCCESS && cuMemAlloc(&second, 32) == CUDA_SUCCESS);
  const float given[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float found[8] = {};
  CHECK(cuMemcpyHtoA(one, 0, given, 32) == CUDA_SUCCESS && cuMemcpyAtoA(other, 8, one, 4, 24) == CUDA_SUCCESS);
  CHECK(cuMemcpyAtoD(memory, other, 8, 24) == CUDA_SUCCESS);
  CHECK(cuMemcpyPeer(second, context, memory, context, 24) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoA(one, 0, second, 8) == CUDA_SUCCESS && cuMemcpyAtoH(found, one, 0, 32) == CUDA_SUCCESS);
  CHECK(found[0] == 2 && found[1] == 3 && found[2] == 3 && found[7] == 8);
  CHECK(cuMemcpyAtoH(found, one, 4, 32) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoAAsync(one, 28, given, 4, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemcpyAtoHAsync(found, one, 28, 4, nullptr) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(found[0] == 1);

  CUdeviceptr managed;
  CHECK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(cuStreamAttachMemAsync(nullptr, managed, 0, CU_MEM_ATTACH_HOST) == CUDA_SUCCESS);
  CHECK(cuStreamAttachMemAsync(nullptr, memory, 0, CU_MEM_ATTACH_HOST) == CUDA_ERROR_INVALID_VALUE);

  int count = 0, reached = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(cudaDeviceGetP2PAttribute(&reached, cudaDevP2PAttrAccessSupported, 0, 0) == cudaErrorInvalidDevice);
  if (count > 1) {
    CHECK(cudaDeviceGetP2PAttribute(&reached, cudaDevP2PAttrAccessSupported, 0, 1) == cudaSuccess && reached == 1);
    CHECK(cudaDeviceGetP2PAttribute(&reached, cudaDevP2PAttrPerformanceRank, 0, 1) == cudaSuccess && reached == 0);
  }
}
"""


def test_programs_of_the_driver_interface_find_what_they_call(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "driver.cu").write_text(DRIVER)
    cucc("-O1", tmp_path / "driver.cu", "-o", tmp_path / "driver", "-lcuda")
    succeeds(tmp_path / "driver", MACA_DEVICE_COUNT="2")


# As nvcc takes it, and g++ before C++20 does not.
NAMELESS = r"""
#include <cstdio>
template <class T> struct Map {
  using value_type = T;
  struct iterator { T* at; };
  __device__ Map() {}
  __device__ __host__ value_type twice(T x);
  static iterator none(iterator const& it);
  operator T();
  template <class U> U other(U u);
  template <class U> struct rebound { using type = U; };
  template <class U> typename rebound<U>::type more(U u);
};
template <class T> Map<T>::value_type Map<T>::twice(T x) { return 2 * x; }
template <class T> inline Map<T>::iterator Map<T>::none(iterator const& it) { return it; }
template <class T> Map<T>::operator T() { return 1; }
template <class T> template <class U> U Map<T>::other(U u) { return u; }
template <class T> template <class U> Map<T>::template rebound<U>::type Map<T>::more(U u) { return u; }
template <class T> typename Map<T>::value_type apart(T x) { return x < 2 ? x : 2 > x; }
__global__ void kernel(int* p) { Map<int> m; *p = m.twice(*p); }
int main() {
  int* p = nullptr;
  cudaMallocManaged(&p, sizeof *p);
  *p = 21;
  kernel<<<1, 1>>>(p);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  Map<int>::iterator it{p};
  return *p == 42 && Map<int>::none(it).at == p && apart(1) == 1 ? 0 : 1;
}
"""


def test_a_member_type_may_be_returned_without_its_typename(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source, program = tmp_path / "map.cu", tmp_path / "map"
    source.write_text(NAMELESS)
    for standard in ("c++17", "c++20"):
        cucc(f"-std={standard}", source, "-o", program)
        succeeds(program)
    source.write_text(NAMELESS.replace("return 2 * x;", "return 2 * unknown;"))
    done = cucc("-std=c++17", "-c", source, "-o", tmp_path / "map.o", check=False)
    assert done.returncode != 0 and "unknown" in done.stderr and "need" not in done.stderr
