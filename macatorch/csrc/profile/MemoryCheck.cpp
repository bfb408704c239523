#include "profile/MemoryCheck.h"

#include <ATen/record_function.h>

#include <cstdlib>
#include <memory>
#include <vector>

namespace macatorch {
namespace {

/// The operators that a thread is in, the innermost last; and how many they were when one began to compute, or 0.
struct Running {
  std::vector<const char*> operators;
  size_t computes = 0;
};
thread_local Running running;

std::unique_ptr<at::ObserverContext> operator_called(const at::RecordFunction& function) {
  running.operators.push_back(function.name());
  return nullptr;
}

void operator_ends(const at::RecordFunction& function, at::ObserverContext*) {
  if (running.computes != 0 && running.operators.size() <= running.computes) {
    running.computes = 0;
    mcCheckLeave(function.name());
  }
  if (!running.operators.empty()) {
    running.operators.pop_back();
  }
}

}  // namespace

void enter_checked_operator() {
  if (running.computes != 0) {
    return;
  }
  // Outside of any operator there is no end to wait for: the next one's is the end.
  running.computes = running.operators.empty() ? 1 : running.operators.size();
  mcCheckEnter();
}

void register_memory_check() {
  if (mcCheckMode() == 0) {
    return;
  }
  // The caching allocator divides blocks among tensors, and nothing would be seen at their borders. It reads this at
  // its first allocation.
  setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
  at::addGlobalCallback(
      at::RecordFunctionCallback(&operator_called, &operator_ends).scopes({at::RecordScope::FUNCTION}));
}

}  // namespace macatorch
