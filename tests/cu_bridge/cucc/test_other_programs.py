"""Forms that programs of others take: how they link, what headers they include, what they tell the compiler."""

import pathlib

from compiling import Cucc, run_program

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
    run_program(tmp_path / "ranks")


def test_a_library_may_stand_before_the_file_that_needs_it(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """Linkers that drop what nothing before needs find it in nvcc's group."""
    (tmp_path / "random.cu").write_text(
        "#include <curand.h>\nint main() { curandGenerator_t made; "
        "return curandCreateGenerator(&made, CURAND_RNG_PSEUDO_DEFAULT) != CURAND_STATUS_SUCCESS; }\n"
    )
    cucc("-Xlinker", "--as-needed", "-lcurand", tmp_path / "random.cu", "-o", tmp_path / "random")
    run_program(tmp_path / "random")


def test_the_compiler_may_be_told_what_holds(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "assumed.cu").write_text(ASSUMED)
    cucc("-O1", tmp_path / "assumed.cu", "-o", tmp_path / "assumed")
    run_program(tmp_path / "assumed")
