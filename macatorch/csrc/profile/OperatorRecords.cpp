#include "profile/OperatorRecords.h"

#include <ATen/record_function.h>
#include <c10/cuda/CUDAStream.h>
#include <mc_runtime.h>

#include <mutex>
#include <optional>
#include <string>

#include "graph/GraphCapture.h"

namespace macatorch {

std::atomic<int> profiled{0};

namespace {

/// What the device computes for the innermost operator of a thread; `correlation` is 0 before it begins.
struct Running {
  unsigned correlation = 0;
  int64_t start = 0;
  c10::DeviceIndex device = 0;
};
thread_local Running running;

std::unique_ptr<at::ObserverContext> operator_called(const at::RecordFunction&) { return nullptr; }

void operator_ends(const at::RecordFunction& function, at::ObserverContext*) {
  if (running.correlation == 0) {
    return;  // a view, or made of operators that have been told of
  }
  const Running done = running;
  running = Running();
  const auto stream = reinterpret_cast<mcStream_t>(c10::cuda::getCurrentCUDAStream(done.device).stream());
  // A name of its own: profilers put what has one name into one row.
  const std::string name = function.name();
  const size_t space = name.rfind("aten::", 0) == 0 ? 6 : 0;
  mcProfileOperator(done.correlation, ("maca::" + name.substr(space)).c_str(), stream, done.start, mcProfileNow());
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
  // A launch of a graph tells of its nodes.
  if (running.correlation == 0 && !in_launched_operator()) {
    running = Running{mcProfileBegin(), mcProfileNow(), device};
  }
}

void register_operator_records() { mcProfileSetHook(&listening_changes); }

}  // namespace macatorch
