#include "ops/Sleep.h"

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <mc_runtime.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace macatorch {
namespace {

/// torch.cuda._sleep(cycles): the stream is busy for as many cycles of the device's clock.
void spin(mcDim3, mcDim3, void** arguments, size_t, mcStream_t) {
  const int64_t cycles = *static_cast<const int64_t*>(arguments[0]);
  int device = 0;
  int clock = 0;  // kHz
  if (cycles <= 0) {
    return;
  }
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device);
  }
  if (error != cudaSuccess) {
    static_cast<void>(mcSetLastError(static_cast<mcError_t>(error), "the device's clock rate cannot be read"));
    return;  // the launch's check reads the thread's last error
  }
  std::this_thread::sleep_for(std::chrono::nanoseconds(cycles * 1000000 / std::max(clock, 1)));
}

}  // namespace

void register_sleep() {
  const size_t bytes = sizeof(int64_t);
  mcKernelImplementWaiting("at::cuda::(anonymous namespace)::spin_kernel(long)", &spin, &bytes, 1);
}

}  // namespace macatorch
