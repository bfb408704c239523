#include "graph/FailedCapture.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <functional>
#include <mutex>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "arguments/Release.h"

#if MACATORCH_TORCH_AT_LEAST(2, 12)
#include <ATen/core/CachingHostAllocator.h>
#endif

namespace macatorch {

#if MACATORCH_TORCH_AT_LEAST(2, 4)

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

// Later releases find the graph of a capture by its stream, while the capture goes on; and the latest give the pool of
// a failed one up themselves.
template <class Graph, class = void>
constexpr bool kFindsGraph = false;
template <class Graph>
constexpr bool kFindsGraph<Graph, std::void_t<decltype(Graph::get_currently_capturing_graph())>> = true;

template <class Graph>
struct Pools : Graph {
  template <class Own>
  static auto given_up(int) -> decltype(static_cast<void>(&Own::allocated_pool_), std::true_type());
  template <class>
  static std::false_type given_up(...);
};
constexpr bool kGivesPoolsUp = decltype(Pools<CUDAGraph>::given_up<Pools<CUDAGraph>>(0))::value;

template <class State>
void leave_capture(State& state, unsigned long long id) {
  if constexpr (!kKnowsGraphs<State>) {
    const std::lock_guard<std::mutex> lock(state.capture_states_mutex_);
    state.capture_states_.erase(id);
  }
}

/// What ends a capture for the allocators and the generators.
template <class Graph>
std::function<void()> end_of(Graph& graph, unsigned long long id) {
  const auto device = static_cast<c10::DeviceIndex>(Members::device(graph));
  const auto pool = Members::pool(graph);
  const auto states = Members::states(graph);
  return [id, device, pool, states] {
    for (const auto& entry : states) {
      leave_capture(*entry.first, id);
    }
    c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool);
    c10::cuda::CUDACachingAllocator::releasePool(device, pool);
#if MACATORCH_TORCH_AT_LEAST(2, 12)  // pinned memory comes from the graph's pool as well
    at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(pool);
    at::getHostAllocator(at::kCUDA)->release_pool(pool);
#endif
  };
}

std::mutex ends_mutex;

std::unordered_map<unsigned long long, std::function<void()>>& ends() {
  static auto* const all = new std::unordered_map<unsigned long long, std::function<void()>>;
  return *all;
}

template <class Graph>
void note_graph(unsigned long long id) {
  if constexpr (kFindsGraph<Graph> && !kGivesPoolsUp) {
    try {
      auto end = end_of(*Graph::get_currently_capturing_graph(), id);
      const std::lock_guard<std::mutex> lock(ends_mutex);
      ends()[id] = std::move(end);
    } catch (const c10::Error&) {  // a capture without a CUDAGraph
    }
  }
}

}  // namespace

void note_graph_of_capture(unsigned long long id) { note_graph<CUDAGraph>(id); }

void forget_graph_of_capture(unsigned long long id) {
  const std::lock_guard<std::mutex> lock(ends_mutex);
  ends().erase(id);
}

void tidy_failed_capture(unsigned long long id) noexcept {
  std::function<void()> end;
  {
    const std::lock_guard<std::mutex> lock(ends_mutex);
    const auto found = ends().find(id);
    if (found != ends().end()) {
      end = std::move(found->second);
      ends().erase(found);
    }
  }
  if (end) {
    try {
      end();
    } catch (const c10::Error&) {  // the allocator had left the pool already
    }
    return;
  }
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

#else

// A graph takes part with the default generator of its device and with one stream: that of its first operator, or which
// is current where it ends. Its pool bears the number of the capture, unless the program has given it one.

namespace {

std::mutex streams_mutex;

std::unordered_map<unsigned long long, c10::cuda::CUDAStream>& streams() {
  static auto* const all = new std::unordered_map<unsigned long long, c10::cuda::CUDAStream>;
  return *all;
}

c10::cuda::CUDAStream stream_of(unsigned long long id) {
  const std::lock_guard<std::mutex> lock(streams_mutex);
  const auto found = streams().find(id);
  const c10::cuda::CUDAStream stream = found != streams().end() ? found->second : c10::cuda::getCurrentCUDAStream();
  streams().erase(id);
  return stream;
}

}  // namespace

void note_graph_of_capture(unsigned long long id) {
  const std::lock_guard<std::mutex> lock(streams_mutex);
  streams().emplace(id, c10::cuda::getCurrentCUDAStream());
}

void forget_graph_of_capture(unsigned long long id) {
  const std::lock_guard<std::mutex> lock(streams_mutex);
  streams().erase(id);
}

void tidy_failed_capture(unsigned long long id) noexcept {
  try {
    const c10::cuda::CUDAStream stream = stream_of(id);
    const auto device = stream.device_index();
    at::cuda::detail::getDefaultCUDAGenerator(device).get<at::CUDAGeneratorImpl>()->capture_epilogue();
    c10::cuda::CUDACachingAllocator::endAllocateStreamToPool(device, stream);
    c10::cuda::CUDACachingAllocator::releasePool(device, {id, 0});
  } catch (const c10::Error&) {  // the allocator had left the pool already, or it is the program's
  }
}

#endif

}  // namespace macatorch
