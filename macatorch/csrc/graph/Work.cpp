#include "graph/Work.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace macatorch {

std::atomic<int> graph_operators{0};
thread_local Work work;

void* Requests::next(size_t bytes) {
  const size_t number = next_++;
  if (places_ != nullptr) {
    for (const Place& place : *places_) {
      if (place.number == number && place.bytes == bytes) {
        held_.push_back(place.data);
        return place.data;
      }
    }
  }
  return nullptr;
}

bool Requests::release(const void* data) {
  const auto found = std::find(held_.begin(), held_.end(), data);
  if (found == held_.end()) {
    return false;
  }
  held_.erase(found);
  return true;
}

std::optional<Requests::Place> Requests::find(const void* data, size_t bytes) const {
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
    if (made->data == data) {
      return made->bytes == bytes ? std::make_optional(*made) : std::nullopt;
    }
  }
  return std::nullopt;
}

WorkScope::WorkScope(Work mine) : outer_(std::exchange(work, mine)) {
  graph_operators.fetch_add(1, std::memory_order_relaxed);
}

WorkScope::~WorkScope() {
  graph_operators.fetch_sub(1, std::memory_order_relaxed);
  work = outer_;
}

bool in_captured_operator() noexcept { return work.captured != nullptr; }

Requests* graph_requests() noexcept { return work.requests; }

bool in_launched_operator() noexcept { return work.launched != nullptr; }

PhiloxPosition captured_position(const at::PhiloxCudaState& state) {
  if (!state.captured_) {
    return {state.seed_.val, state.offset_.val};
  }
  return work.captured->emplace_back(CapturedPosition{state.seed_.ptr, state.offset_.ptr, state.offset_intragraph_})
      .read();
}

std::optional<PhiloxPosition> launched_position() {
  if (work.launched == nullptr) {
    return std::nullopt;
  }
  TORCH_CHECK(work.next < work.launched->size(),
              "an operator draws more random numbers in a launch of its graph than when it was captured");
  return (*work.launched)[work.next++].read();
}

}  // namespace macatorch
