// Launches device code that is not there, in the way that its first argument names.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>

#include "check.h"

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
#if MXMACA_CUDA_MAJOR >= 13
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
#endif
}

namespace {
void stub() {}
int variable;
}  // namespace

int main(int, char** arguments) {
  const char* const way = arguments[1];
  const auto* const function = reinterpret_cast<const void*>(&stub);
  void** const module = __cudaRegisterFatBinary(nullptr);
  __cudaRegisterFunction(module, static_cast<const char*>(function), nullptr, "_ZN4demo5scaleIfEEvPT_i", -1, nullptr,
                         nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterVar(module, reinterpret_cast<char*>(&variable), nullptr, "_ZN4demo5tableE", 0, 4, 0, 1);
  __cudaRegisterFatBinaryEnd(module);

  // Asking about a kernel fails too, but leaves the device usable.
  cudaFuncAttributes attributes;
  int blocks = 0;
  CHECK(cudaFuncGetAttributes(&attributes, function) == cudaErrorNoKernelImageForDevice);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 128, 0, 0) ==
        cudaErrorNoKernelImageForDevice);
  void* address = nullptr;
  CHECK(cudaGetSymbolAddress(&address, &variable) == cudaErrorNoKernelImageForDevice);
  CHECK(std::strstr(cudaGetErrorString(cudaErrorNoKernelImageForDevice), "demo::table") != nullptr);
  CHECK(cudaGetLastError() == cudaErrorNoKernelImageForDevice && cudaGetLastError() == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  void* held = nullptr;
  CHECK(cudaMalloc(&held, 100) == cudaSuccess);

  cudaError_t error = cudaSuccess;
  if (std::strcmp(way, "launch") == 0) {
    error = cudaLaunchKernel(function, dim3(1), dim3(32), nullptr, 0, nullptr);
  } else if (std::strcmp(way, "extended") == 0) {
    cudaLaunchConfig_t config{};
    config.gridDim = config.blockDim = dim3(1);
    error = cudaLaunchKernelExC(&config, function, nullptr);
  } else if (std::strcmp(way, "cooperative") == 0) {
    error = cudaLaunchCooperativeKernel(function, dim3(1), dim3(1), nullptr, 0, nullptr);
  } else if (std::strcmp(way, "driver") == 0) {
    auto* const handle = reinterpret_cast<CUfunction>(const_cast<void*>(function));
    error = static_cast<cudaError_t>(cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  } else {
#if MXMACA_CUDA_MAJOR >= 13
    cudaKernel_t kernel = nullptr;
    CHECK(__cudaGetKernel(&kernel, function) == cudaSuccess);
    error = __cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr);
#else
    error = cudaLaunchKernel(function, dim3(1), dim3(1), nullptr, 0, nullptr);
#endif
  }
  CHECK(error == cudaErrorNoKernelImageForDevice);
  std::printf("%s\n", cudaGetErrorString(error));

  // Stickily: nearly everything after it fails, again and again.
  for (int i = 0; i < 2; ++i) {
    size_t free = 0;
    size_t total = 0;
    void* more = nullptr;
    char host = 0;
    cudaStream_t stream = nullptr;
    CHECK(cudaGetLastError() == error && cudaPeekAtLastError() == error);
    CHECK(cudaDeviceSynchronize() == error && cudaStreamSynchronize(nullptr) == error);
    CHECK(cudaMalloc(&more, 100) == error && cudaMemGetInfo(&free, &total) == error);
    CHECK(cudaMemcpy(held, &host, 1, cudaMemcpyHostToDevice) == error && cudaMemset(held, 0, 1) == error);
    CHECK(cudaStreamCreate(&stream) == error && cudaStreamQuery(nullptr) == error);
    CHECK(cudaLaunchKernel(function, dim3(1), dim3(1), nullptr, 0, nullptr) == error);
  }
  CHECK(cudaFree(held) == error);
  CHECK(cudaDeviceReset() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
  __cudaUnregisterFatBinary(module);
}
