#include "graph/FailedCapture.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <type_traits>

namespace macatorch {
namespace {

using at::cuda::CUDAGraph;

// A generator's state is private, and an explicit instantiation may name it.
struct StateOfGenerator {
  friend constexpr auto member(StateOfGenerator);
};
template <class Tag, auto Member>
struct Granted {
  friend constexpr auto member(Tag) { return Member; }
};
template struct Granted<StateOfGenerator, &at::CUDAGeneratorImpl::state_>;

// What CUDAGraph keeps for classes derived from it.
struct Members : CUDAGraph {
  static auto id(const CUDAGraph& graph) { return graph.*(&Members::capture_id_); }
  static auto pool(const CUDAGraph& graph) { return graph.*(&Members::mempool_id_); }
  static auto device(const CUDAGraph& graph) { return graph.*(&Members::capture_dev_); }
  static auto& states(CUDAGraph& graph) { return graph.*(&Members::captured_generator_states_); }
};

// A release whose generators are in one capture at a time knows the graphs of each.
template <class State, class = void>
constexpr bool kKnowsGraphs = false;
template <class State>
constexpr bool kKnowsGraphs<State, std::void_t<decltype(std::declval<State&>().registered_graphs_)>> = true;

template <class State>
void tidy(State& state, unsigned long long id) {
  if constexpr (kKnowsGraphs<State>) {
    for (CUDAGraph* const graph : state.registered_graphs_) {
      if (static_cast<unsigned long long>(Members::id(*graph)) != id) {
        continue;
      }
      for (auto& entry : Members::states(*graph)) {
        static_cast<State&>(*entry.first).capturing_ = false;
      }
      const auto device = static_cast<c10::DeviceIndex>(Members::device(*graph));
      const auto pool = Members::pool(*graph);
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool);
      c10::cuda::CUDACachingAllocator::releasePool(device, pool);
      return;
    }
  }
}

}  // namespace

void tidy_failed_capture(unsigned long long id) noexcept {
  const c10::DeviceIndex count = c10::cuda::device_count();
  for (c10::DeviceIndex device = 0; device < count; ++device) {
    try {
      // Each graph is registered with the default generator of its device.
      auto* const generator = at::cuda::detail::getDefaultCUDAGenerator(device).get<at::CUDAGeneratorImpl>();
      tidy(*(generator->*member(StateOfGenerator())), id);
    } catch (const c10::Error&) {  // the allocator had left the pool already
    }
  }
}

}  // namespace macatorch
