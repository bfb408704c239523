#include "profile/OperatorRecords.h"

#include <ATen/record_function.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <mc_runtime.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/GraphCapture.h"
#include "profile/ListKernels.h"

namespace macatorch {

std::atomic<int> profiled{0};

namespace {

/// What the device computes for the innermost operator of a thread; `correlation` is 0 before it begins.
struct Running {
  unsigned correlation = 0;
  int64_t start = 0;
  c10::DeviceIndex device = 0;
  std::string name;
  size_t depth = 0;  // of operators in each other
};
thread_local Running running;

/// The names of the operators that the thread is in.
thread_local std::vector<const char*> open_operators;

/// Operators whose kernels are matrix products: who reads profiles looks for "gemm".
constexpr const char* kProducts[] = {"mm",      "addmm",      "bmm",    "baddbmm",          "addbmm",
                                     "_int_mm", "_scaled_mm", "linear", "_addmm_activation"};

/// A name of its own, as a kernel of CUDA's has: profilers put what has one name into one row.
std::string kernel_name(const char* operator_name) {
  std::string name = operator_name;
  if (name.rfind("aten::", 0) == 0) {
    name.erase(0, 6);
  }
  for (const char* const product : kProducts) {
    if (name == product) {
      return "maca::" + name + "_gemm_kernel";
    }
  }
  return "maca::" + name + (is_list_kernel() ? "_multi_tensor_apply_kernel" : "_kernel");
}

std::unique_ptr<at::ObserverContext> operator_called(const at::RecordFunction& function) {
  open_operators.push_back(function.name());
  return nullptr;
}

mcStream_t stream_of(c10::DeviceIndex device) {
  return reinterpret_cast<mcStream_t>(c10::cuda::getCurrentCUDAStream(device).stream());
}

void operator_ends(const at::RecordFunction&, at::ObserverContext*) {
  if (!open_operators.empty()) {
    open_operators.pop_back();
  }
  // A view, or made of operators that have been told of; or one that is part of a kernel.
  if (running.correlation == 0 || open_operators.size() >= running.depth) {
    return;
  }
  const Running done = running;
  running = Running();
  // The default stream has one handle for all devices, which means the current device's.
  const c10::cuda::CUDAGuard guard(done.device);
  mcProfileOperator(done.correlation, done.name.c_str(), stream_of(done.device), done.start, mcProfileNow(), 0);
}

/// A captured operator becomes a node of its graph: a call that launches nothing yet.
void tell_of_captured(const char* operator_name, c10::DeviceIndex device, const std::function<void()>& add) {
  if (profiled.load(std::memory_order_relaxed) == 0) {
    add();
    return;
  }
  const std::string name = kernel_name(operator_name);
  const unsigned correlation = mcProfileBegin(name.c_str(), stream_of(device));
  const int64_t start = mcProfileNow();
  const auto end = [&] { mcProfileOperator(correlation, name.c_str(), stream_of(device), start, mcProfileNow(), 1); };
  try {
    add();
  } catch (...) {
    end();
    throw;
  }
  end();
}

void listening_changes(int listens) {
  static std::mutex mutex;
  static std::optional<at::CallbackHandle> callback;
  const std::lock_guard<std::mutex> lock(mutex);
  if (listens != 0 && !callback) {
    callback = at::addGlobalCallback(
        at::RecordFunctionCallback(&operator_called, &operator_ends).scopes({at::RecordScope::FUNCTION}));
  } else if (listens == 0 && callback) {
    at::removeCallback(*callback);
    callback.reset();
  }
  profiled.store(listens, std::memory_order_relaxed);
}

}  // namespace

void operator_begins(c10::DeviceIndex device) {
  // A launch of a graph tells of its nodes, and a capture of what it has captured.
  if (running.correlation == 0 && !in_launched_operator() && !in_captured_operator()) {
    const std::string name = open_operators.empty() ? "maca::kernel" : kernel_name(open_operators.back());
    const unsigned correlation = mcProfileBegin(name.c_str(), stream_of(device));
    running = Running{correlation, mcProfileNow(), device, name, std::max<size_t>(open_operators.size(), 1)};
  }
}

void register_operator_records() {
  mcProfileSetHook(&listening_changes);
  capture_watcher = &tell_of_captured;
}

}  // namespace macatorch
