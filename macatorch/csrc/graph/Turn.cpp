#include "graph/Turn.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <mc_runtime.h>

namespace macatorch {

const volatile int* const pending_work = mcPendingWork();

void wait_for_turn(c10::DeviceIndex device) {
  // The handle of a default stream is null, which stands for the one of the current device.
  const c10::cuda::CUDAGuard guard(device);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device).stream();
  C10_CUDA_CHECK(static_cast<cudaError_t>(mcStreamWaitTurn(reinterpret_cast<mcStream_t>(stream))));
}

}  // namespace macatorch
