#include "alias/DeviceScope.h"

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include "graph/GraphCapture.h"

namespace macatorch {

void before_operator(c10::DeviceIndex device) {
  if (*pending_work != 0) {
    wait_for_turn(device);
  }
  if (profiled.load(std::memory_order_relaxed) != 0) {
    operator_begins(device);
  }
}

void check_device_error() {
  if (C10_UNLIKELY(captures_under_way.load(std::memory_order_relaxed) != 0)) {
    refuse_foreign_thread();
  }
  if (C10_UNLIKELY(cudaPeekAtLastError() != cudaSuccess)) {
    C10_CUDA_CHECK(cudaGetLastError());
  }
}

}  // namespace macatorch
