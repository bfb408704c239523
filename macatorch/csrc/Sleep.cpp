#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mc_runtime.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "Operators.h"

namespace macatorch {
namespace {

/// torch.cuda._sleep(cycles): the stream is busy for as many cycles of the device's clock.
void spin(mcDim3, mcDim3, void** arguments, size_t, mcStream_t) {
  const int64_t cycles = *static_cast<const int64_t*>(arguments[0]);
  int device = 0;
  int clock = 0;  // kHz
  if (cycles <= 0 || cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device) != cudaSuccess) {
    return;
  }
  std::this_thread::sleep_for(std::chrono::nanoseconds(cycles * 1000000 / std::max(clock, 1)));
}

}  // namespace

void register_sleep() {
  void* runtime = dlopen("libmcruntime.so", RTLD_NOLOAD | RTLD_LAZY);
  auto implement = runtime == nullptr
                       ? nullptr
                       : reinterpret_cast<decltype(&mcKernelImplementNamed)>(dlsym(runtime, "mcKernelImplementNamed"));
  if (implement != nullptr) {
    const size_t bytes = sizeof(int64_t);
    implement("at::cuda::(anonymous namespace)::spin_kernel(long)", &spin, &bytes, 1);
  }
}

}  // namespace macatorch
