"""Headers that programs include beside the usual ones: tools, NVTX for C++, cuda's and cuda::std's smaller names."""

import pathlib

import pytest
from compiling import Cucc, run_program

PROGRAM = r"""
#include <cuda/annotated_ptr>
#include <cuda/bit>
#include <cuda/std/bit>
#include <cuda/std/bitset>
#include <cuda/std/exception>
#include <cuda/std/expected>
#include <cuda/std/numbers>
#include <cuda/std/span>
#include <cuda/std/string>
#include <cuda/stream_ref>
#include <cuda/version>
#include <cudaProfiler.h>
#include <nvml.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvtx3.hpp>
#include <cstdio>
#include <cstring>
#include <vector>
#define CHECK(condition) \
  do { if (!(condition)) { std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); return 1; } } while (0)

struct library {
  static constexpr char const* name{"library"};
};
using persisting = cuda::access_property::persisting;

__global__ void sums(cuda::annotated_ptr<const int, persisting> in, cuda::std::span<int> out) {
  out[threadIdx.x] = in[threadIdx.x] + cuda::std::popcount(7U) * 100 + static_cast<int>(out.size()) * 1000;
}

static int ranges() {
  NVTX3_FUNC_RANGE();
  nvtx3::scoped_range_in<library> inner{"inner", nvtx3::rgb{1, 2, 3}, nvtx3::payload{5}};
  nvtx3::mark_in<library>("a mark", nvtx3::category{7});
  const nvtx3::range_handle range = nvtx3::start_range(std::string("from here"));
  nvtx3::end_range(range);
  nvtx3::unique_range whole{nvtx3::registered_string{"registered"}};
  nvtx3::unique_range moved = std::move(whole);
  nvtxRangePushA("old");
  nvtxRangePop();
  return 0;
}

int main() {
  CHECK(ranges() == 0);
  unsigned count = 0;
  nvmlDevice_t device;
  nvmlMemory_t memory;
  nvmlPciInfo_t place;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
  cudaDeviceProp properties;
  CHECK(nvmlDeviceGetCount(&count) == NVML_ERROR_UNINITIALIZED && nvmlInit() == NVML_SUCCESS);
  CHECK(nvmlDeviceGetCount(&count) == NVML_SUCCESS && nvmlDeviceGetHandleByIndex(0, &device) == NVML_SUCCESS);
  CHECK(nvmlDeviceGetName(device, name, sizeof name) == NVML_SUCCESS);
  CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess && std::strcmp(properties.name, name) == 0);
  CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS && memory.total == properties.totalGlobalMem);
  CHECK(nvmlDeviceGetPciInfo(device, &place) == NVML_SUCCESS && static_cast<int>(place.bus) == properties.pciBusID);
  CHECK(nvmlShutdown() == NVML_SUCCESS && cuProfilerStart() == CUDA_SUCCESS && cuProfilerStop() == CUDA_SUCCESS);

  int* numbers = nullptr;
  CHECK(cudaMallocManaged(&numbers, 64 * sizeof(int)) == cudaSuccess);
  for (int i = 0; i < 32; ++i) numbers[i] = i;
  const cuda::annotated_ptr<int, persisting> in(numbers);
  sums<<<1, 32>>>(in, cuda::std::span<int>(numbers + 32, 32));
  const cuda::stream_ref stream(cudaStream_t{});
  stream.wait();
  CHECK(stream.ready());
  for (int i = 0; i < 32; ++i) CHECK(numbers[32 + i] == i + 32300);

  std::vector<int> values{1, 2, 3, 4};
  const cuda::std::span<int> all(values);
  const cuda::std::span<const int> part = all.subspan(1, 2);
  CHECK(part.size() == 2 && part.front() == 2 && part.back() == 3 && all.last(1)[0] == 4 && !part.empty());
  CHECK(cuda::std::countl_zero(1U) == 31 && cuda::std::countr_zero(std::uint8_t{0}) == 8);
  CHECK(cuda::std::bit_ceil(5U) == 8 && cuda::std::bit_floor(5U) == 4 && cuda::std::has_single_bit(64U));
  CHECK(cuda::std::rotl(std::uint8_t{0x81}, 1) == 3 && cuda::std::rotr(std::uint8_t{3}, 1) == 0x81);
  CHECK(cuda::std::bit_cast<unsigned>(1.0F) == 0x3f800000U && cuda::std::bit_width(9U) == 4);
  return 0;
}
"""


def test_headers_of_tools_and_of_cuda_std_work_beside_kernels(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "headers.cu").write_text(PROGRAM, encoding="utf-8")
    cucc("-std=c++17", "-O1", tmp_path / "headers.cu", "-o", tmp_path / "headers", "-lnvidia-ml", "-lcuda")
    done = run_program(tmp_path / "headers", MACA_STATE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


CLOCK = "auto now = std::chrono::steady_clock::now();"
# Names of others that come with a header of CUDA's, and that programs use without a line of their own.
BROUGHT = {
    "cub/cub.cuh": f"std::map<int, std::set<int>> sets; std::mutex lock; {CLOCK}",
    "thrust/tuple.h": "thrust::pair<int, int> both(1, 2);",
    "cooperative_groups/reduce.h": CLOCK,
    "cooperative_groups/scan.h": CLOCK,
}


@pytest.mark.parametrize("header", BROUGHT)
def test_headers_bring_what_programs_count_on(cucc: Cucc, tmp_path: pathlib.Path, header: str) -> None:
    (tmp_path / "brings.cu").write_text(f"#include <{header}>\n{BROUGHT[header]}\n", encoding="utf-8")
    cucc("-c", tmp_path / "brings.cu", "-o", tmp_path / "brings.o")
