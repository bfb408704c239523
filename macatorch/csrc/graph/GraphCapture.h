#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#if __has_include(<ATen/cuda/PhiloxCudaState.h>)
#include <ATen/cuda/PhiloxCudaState.h>
#else
#include <ATen/cuda/detail/PhiloxCudaStateRaw.cuh>
#endif

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

namespace macatorch {

// Note [Graph capture]
// While a stream is captured, the operators of the threads that take part pass through a fallback at a dispatch key of
// its own, below autograd. An operator that computes on the stream runs there once on real memory, since its results'
// shapes are needed, and becomes a node: the operator with its arguments' addresses. A launch calls it again and leaves
// the results at the addresses of the capture. What the capture wrote to memory that was there before is put back when
// it ends, so that, as on hardware, captured work has not happened. Operators that would wait for the device are
// refused. Arguments are borrowed, not kept alive: as on hardware, who owns them has to keep them.

/// A place in a CUDA generator's stream. An operator whose backward draws the same numbers again keeps it.
struct PhiloxPosition {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

/// Captures under way in the process; what the hot path looks at.
extern std::atomic<int> captures_under_way;

/// Whether the process has captured anything: from then on graphs may hold addresses with the strides of the capture.
extern std::atomic<bool> graphs_were_captured;

/// Sets the fallback up, and asks the runtime to tell of captures.
void register_graph_capture();

/// Where an operator waits for the device: waits for what is pending on the current stream, or raises what upstream
/// raises if a stream is being captured.
void refuse_wait_in_capture();

/// The same for an operator that upstream lets wait: what listens to waits (torch.cuda.set_sync_debug_mode, the
/// sanitizer's callbacks) is told of it as well.
void wait_as_upstream();

/// Raises an error if the current stream is captured and this thread does not take part in it.
void refuse_foreign_thread();

/// True while an operator runs for a capture.
bool in_captured_operator() noexcept;

/// True while an operator runs in a launch of a graph.
bool in_launched_operator() noexcept;

/// The place in the random stream for a captured operator: read now, and from the same addresses at each launch.
PhiloxPosition captured_position(const at::PhiloxCudaState& state);

/// In a launch: the next place that the operator had asked for when it was captured.
std::optional<PhiloxPosition> launched_position();

/// Memory that one operator asks the device's allocator for. A capture notes which request became which result, and a
/// launch answers that request with the result's place, so that nothing has to be moved there.
class Requests {
 public:
  struct Place {
    size_t number;  // of the request
    void* data;
    size_t bytes;
  };

  Requests() = default;  // notes
  explicit Requests(const std::vector<Place>& places) : places_(&places) {}

  /// The place for the next request, or none.
  void* next(size_t bytes);
  void made(void* data, size_t bytes) { made_.push_back({next_ - 1, data, bytes}); }
  /// True if `data` is such a place, which is not the allocator's to free.
  bool release(const void* data);
  /// The request that was answered with `data`.
  std::optional<Place> find(const void* data, size_t bytes) const;
  /// Places that were handed out and not given back.
  const std::vector<void*>& held() const { return held_; }

 private:
  const std::vector<Place>* places_ = nullptr;
  size_t next_ = 0;
  std::vector<Place> made_;
  std::vector<void*> held_;
};

/// The requests of the operator that this thread runs for a graph; a null pointer outside of one.
Requests* graph_requests() noexcept;

/// Operators that threads run for graphs just now; what the allocator's hot path looks at.
extern std::atomic<int> graph_operators;

/// Runs `call` as a whole operator of the current capture, if there is one.
void capture_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::function<void()>& call);

}  // namespace macatorch
