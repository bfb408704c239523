#include "alias/DeviceScope.h"

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include "graph/GraphCapture.h"
#include "profile/MemoryCheck.h"

namespace macatorch {

void before_operator(c10::DeviceIndex device) {
  if (pending() != 0) {
    wait_for_turn(device);
  }
  if (profiled.load(std::memory_order_relaxed) != 0) {
    operator_begins(device);
  }
  // In that mode something is always pending, so that no operator passes by here.
  static const bool checked = mcCheckMode() != 0;
  if (checked) {
    enter_checked_operator();
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
