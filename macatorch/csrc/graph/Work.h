#pragma once

#include <ATen/cuda/PhiloxCudaState.h>
#include <c10/macros/Macros.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace macatorch {

class Session;

/// A place in a CUDA generator's stream. An operator whose backward draws the same numbers again keeps it.
struct PhiloxPosition {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

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

/// A place in the random stream that only a launch knows.
struct CapturedPosition {
  const int64_t* seed;
  const int64_t* offset;
  uint64_t advance;

  PhiloxPosition read() const { return {static_cast<uint64_t>(*seed), static_cast<uint64_t>(*offset) + advance}; }
};

/// What this thread is doing about a captured operator.
struct Work {
  std::vector<CapturedPosition>* captured = nullptr;        // an operator runs for a capture
  const std::vector<CapturedPosition>* launched = nullptr;  // an operator runs in a launch
  Requests* requests = nullptr;
  size_t next = 0;
  bool followed = false;       // an operator on composite tensors runs for a capture: see graph/Waits.h
  Session* session = nullptr;  // of the capture
};
extern thread_local Work work;

class WorkScope {
 public:
  explicit WorkScope(Work mine);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

 private:
  Work outer_;
};

/// True while an operator runs for a capture.
bool in_captured_operator() noexcept;

/// True while an operator runs in a launch of a graph.
bool in_launched_operator() noexcept;

/// The place in the random stream for a captured operator: read now, and from the same addresses at each launch.
PhiloxPosition captured_position(const at::PhiloxCudaState& state);

/// In a launch: the next place that the operator had asked for when it was captured.
std::optional<PhiloxPosition> launched_position();

/// The requests of the operator that this thread runs for a graph; a null pointer outside of one.
Requests* graph_requests() noexcept;

/// Operators that threads run for graphs just now, and captures under way; what the allocator's hot path looks at.
extern std::atomic<int> graph_operators;

/// Tells a capture of memory, if there is one: what its operator gets is saved, what the program gets on a captured
/// stream is noted as unwritten.
void save_given(void* data, size_t bytes);

/// For allocators: this thread gets this memory.
inline void memory_is_given(void* data, size_t bytes) {
  if (C10_UNLIKELY(graph_operators.load(std::memory_order_relaxed) != 0)) {
    save_given(data, bytes);
  }
}

}  // namespace macatorch
