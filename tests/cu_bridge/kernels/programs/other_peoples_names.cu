// Names and C++ forms that CUDA programs of others ask for: guard macros, older headers, overloads, occupancy.
#include <cublas_v2.h>
#include <cuda.h>
#include <cufft.h>
#include <curand.h>
#include <cusparse.h>

#include <builtin_types.h>
#include <common_functions.h>
#include <cuda_device_runtime_api.h>
#include <curand_normal.h>
#include <curand_uniform.h>
#include <cusparse_v2.h>
#include <device_double_functions.h>
#include <driver_functions.h>
#include <sm_32_intrinsics.h>

#include "../check.h"

#if !defined(__DRIVER_TYPES_H__) || !defined(__CUDA_RUNTIME_H__) || !defined(__CUDA_RUNTIME_API_H__) ||      \
    !defined(__cuda_cuda_h__) || !defined(CUBLAS_API_H_) || !defined(CUBLAS_V2_H_) || !defined(_CUFFT_H_) || \
    !defined(CURAND_H_) || !defined(CUSPARSE_H_) || !defined(CUSPARSEAPI) || !defined(__VECTOR_TYPES_H__)
#error a header lacks the word by which programs ask whether it was included
#endif

__global__ void scale(float* values, float by) { values[blockIdx.x * blockDim.x + threadIdx.x] *= by; }

__global__ void __launch_bounds__(256) bounded(float* values) {
  extern __shared__ float room[];
  room[threadIdx.x] = values[threadIdx.x];
}

static void pointers() {
  const float* constant = nullptr;
  CHECK(cudaMalloc(&constant, 64) == cudaSuccess && constant != nullptr);
  CHECK(cudaFree(const_cast<float*>(constant)) == cudaSuccess);

  float* ordered = nullptr;
  CHECK(cudaMallocAsync(&ordered, 64, cudaStream_t{}) == cudaSuccess && ordered != nullptr);
  CHECK(cudaFreeAsync(ordered, cudaStream_t{}) == cudaSuccess);

  double* pitched = nullptr;
  size_t pitch = 0;
  CHECK(cudaMallocPitch(&pitched, &pitch, 100, 3) == cudaSuccess && pitch >= 100);
  CHECK(cudaFree(pitched) == cudaSuccess);

  int *host = nullptr, *device = nullptr;
  CHECK(cudaHostAlloc(&host, 64, cudaHostAllocMapped) == cudaSuccess);
  CHECK(cudaHostGetDevicePointer(&device, host, 0) == cudaSuccess && device != nullptr);
  CHECK(cudaFreeHost(host) == cudaSuccess);
}

static void managed() {
  cudaStream_t stream;
  float* values = nullptr;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  CHECK(cudaMallocManaged(&values, 64 * sizeof(float), cudaMemAttachHost) == cudaSuccess);
  for (int i = 0; i < 64; ++i) values[i] = static_cast<float>(i);
  CHECK(cudaStreamAttachMemAsync(stream, values) == cudaSuccess);
  CHECK(cudaStreamAttachMemAsync(stream, values, 0, cudaMemAttachSingle) == cudaSuccess);
  CHECK(cudaStreamAttachMemAsync(cudaStream_t{}, values, 0, cudaMemAttachSingle) == cudaErrorInvalidValue);
  scale<<<1, 64, 0, stream>>>(values, 2.0f);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  for (int i = 0; i < 64; ++i) CHECK(values[i] == 2.0f * static_cast<float>(i));
  CHECK(cudaFree(values) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess);
}

// What a block size gives is asked of the device, one by one, and compared.
static void occupancy() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0) == cudaSuccess);
  CHECK(cudaFuncSetCacheConfig(scale, cudaFuncCachePreferL1) == cudaSuccess);
  const auto threads = [&](int size, size_t shared) {
    int blocks = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, size, shared) == cudaSuccess);
    return blocks * size;
  };
  const auto bytes = [](int size) { return static_cast<size_t>(size) * 64; };
  int grid = 0, size = 0;
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &size, bounded, bytes) == cudaSuccess);
  CHECK(size > 0 && size <= 256 && size % device.warpSize == 0);
  for (int other = device.warpSize; other <= 256; other += device.warpSize) {
    CHECK(threads(other, bytes(other)) <= threads(size, bytes(size)));
  }
  CHECK(grid == threads(size, bytes(size)) / size * device.multiProcessorCount);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &size, scale) == cudaSuccess && grid > 0 && size > 256);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &size, scale, 0, 100) == cudaSuccess && size <= 100);
  CHECK(cudaOccupancyMaxPotentialBlockSize(nullptr, &size, scale) == cudaErrorInvalidValue);
}

// Shared memory that is left for each of so many blocks: as much of it fits as is said, and no more.
static void shared_memory() {
  for (const int blocks : {1, 2, 5}) {
    size_t bytes = 0;
    int fit = 0;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, bounded, blocks, 64) == cudaSuccess && bytes > 0);
    CHECK(cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)) ==
          cudaSuccess);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, bounded, 64, bytes) == cudaSuccess && fit >= blocks);
    if (blocks == 1) continue;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, bounded, 64, bytes + 1024) == cudaSuccess);
    CHECK(fit < blocks);
  }
  size_t bytes = 0;
  CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, bounded, 0, 64) == cudaErrorInvalidValue);

  cudaSharedMemConfig banks;
  CHECK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte) == cudaSuccess);
  CHECK(cudaFuncSetSharedMemConfig(bounded, cudaSharedMemBankSizeFourByte) == cudaSuccess);
  CHECK(cudaDeviceGetSharedMemConfig(&banks) == cudaSuccess && banks == cudaSharedMemBankSizeFourByte);
  CHECK(cudaDeviceSetSharedMemConfig(static_cast<cudaSharedMemConfig>(3)) == cudaErrorInvalidValue);
}

// A box of 12 x 5 x 3 bytes: a part of it is set, and of what lies around nothing.
static void boxes() {
  const cudaExtent whole = make_cudaExtent(12, 5, 3);
  cudaPitchedPtr box;
  CHECK(cudaMalloc3D(&box, whole) == cudaSuccess && box.pitch >= 12 && box.xsize == 12 && box.ysize == 5);
  CHECK(cudaMemset3D(box, 1, whole) == cudaSuccess);
  CHECK(cudaMemset3D(box, 2, make_cudaExtent(7, 2, 3)) == cudaSuccess);
  CHECK(cudaMemset3D(box, 2, make_cudaExtent(box.pitch + 1, 2, 3)) == cudaErrorInvalidValue);
  char bytes[12 * 5 * 3];
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(bytes, 12, 12, 5);
  copy.extent = whole;
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy) == cudaSuccess);
  for (int i = 0; i < 12 * 5 * 3; ++i) CHECK(bytes[i] == (i % 12 < 7 && i / 12 % 5 < 2 ? 2 : 1));
  CHECK(cudaFree(box.ptr) == cudaSuccess);
}

// The forms that CUDA 11 had.
static void graphs() {
  cudaGraph_t graph;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t node;
  float* values = nullptr;
  CHECK(cudaMallocManaged(&values, 64 * sizeof(float)) == cudaSuccess);
  for (int i = 0; i < 64; ++i) values[i] = static_cast<float>(i);
  float by = 3;
  void* arguments[] = {&values, &by};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(scale);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(64);
  parameters.kernelParams = arguments;
  CHECK(cudaGraphCreate(&graph, 0) == cudaSuccess);
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, nullptr) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 64; ++i) CHECK(values[i] == 3.0f * static_cast<float>(i));
  cudaGraphExecUpdateResult updated = cudaGraphExecUpdateError;
  CHECK(cudaGraphExecUpdate(exec, graph, &node, &updated) == cudaSuccess && updated == cudaGraphExecUpdateSuccess);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaFree(values) == cudaSuccess);
}

// Members with the names of the types that they are declared by: nvcc's front end knows the types by all their scopes.
namespace others {
inline namespace v1 {
template <class T, int size>
struct Exchange {
  T place[size];
};
enum class Kind { one, two };
template <class T, int size>
struct Load {
  template <int way, int more>
  struct Internal {
    using Exchange = Exchange<T, size>;
    Exchange exchange;
  };
  static constexpr Kind Kind() { return others::Kind::two; }
};
template <class Policy>
struct Wrapped : Policy {
  static constexpr Kind Kind() { return Policy::kind; }
};
}  // namespace v1
}  // namespace others
struct FirstKind {
  static constexpr auto kind = others::Kind::one;
};
static_assert(sizeof(others::Load<double, 3>::Internal<0, 1>::Exchange) == 24, "the template of the namespace");
static_assert(others::Load<int, 1>::Kind() == others::Kind::two, "a function");
static_assert(others::Wrapped<FirstKind>::Kind() == others::Kind::one, "with a base");

// A template's parameters have any name.
template <class T, class U, class W>
__device__ T added(T a, U b, W c) {
  unsigned old = 0;
  asm("add.u32 %0, %1, %2;" : "=r"(old) : "r"(static_cast<unsigned>(a)), "r"(static_cast<unsigned>(b)));
  __shared__ unsigned place;
  place = static_cast<unsigned>(c);
  asm volatile("red.add.u32 [%0], %1;" ::"l"(&place), "r"(old) : "memory");
  return static_cast<T>(place);
}
__global__ void parameters_of_a_template() { EXPECT(added(1.0f, 2L, static_cast<short>(4)) == 7.0f); }

static_assert(INT_MAX == 2147483647 && UINT_MAX == 4294967295U, "nvcc includes limits.h by itself");
static_assert(static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == cudaDevAttrComputeMode, "one numbering");
static_assert(static_cast<int>(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) == cudaDevAttrTextureAlignment, "one numbering");
static_assert(static_cast<int>(CU_COMPUTEMODE_PROHIBITED) == cudaComputeModeProhibited, "one numbering");

int main() {
  pointers();
  managed();
  occupancy();
  shared_memory();
  boxes();
  graphs();
  parameters_of_a_template<<<1, 1>>>();
#if CUDART_VERSION < 13000
  CHECK(cudaThreadSynchronize() == cudaSuccess);
#endif
  return summary();
}
