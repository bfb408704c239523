#include "memory/Workspaces.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "arguments/Release.h"
#include "graph/Work.h"

namespace macatorch {

std::atomic<uint64_t> Workspaces::returned{0};
std::atomic<bool> Workspaces::unseen{true};
thread_local bool Workspaces::taking = false;

namespace {

/// For which stream this thread has looked last.
struct Looked {
  c10::StreamId stream = 0;
  c10::DeviceIndex device = -1;
  uint64_t returned = 0;
};

/// Whether the releases' rule is a workspace for the time of one product; then it is taken and given back.
bool take_for_one_product([[maybe_unused]] c10::DeviceIndex device) {
#if MACATORCH_TORCH_AT_LEAST(2, 15)
  if (!at::cuda::isCUDABlasWorkspaceCachingEnabled()) {
    const c10::cuda::CUDAGuard guard(device);
    at::cuda::allocateCUDABlasWorkspace(at::cuda::getChosenWorkspaceSize());
    return true;
  }
#endif
  return false;
}

}  // namespace

void take_workspace(c10::DeviceIndex device) {
  if (C10_UNLIKELY(graph_operators.load(std::memory_order_relaxed) != 0) && graph_requests() != nullptr) {
    return;
  }
  if (take_for_one_product(device)) {
    return;
  }
  thread_local Looked looked;
  const c10::StreamId stream = c10::cuda::getCurrentCUDAStream(device).id();
  const uint64_t returned = Workspaces::returned.load(std::memory_order_relaxed);
  if (C10_LIKELY(looked.device == device && looked.stream == stream && looked.returned == returned)) {
    return;
  }
  looked.device = -1;
  const c10::cuda::CUDAGuard guard(device);
  Workspaces::taking = true;
  try {
    at::cuda::getCurrentCUDABlasHandle();
  } catch (...) {
    Workspaces::taking = false;
    throw;
  }
  Workspaces::taking = false;
  if (!Workspaces::unseen.load(std::memory_order_relaxed)) {
    looked = {stream, device, returned};
  }
}

}  // namespace macatorch
