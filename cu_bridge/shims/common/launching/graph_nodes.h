// Nodes of graphs whose work a program gives as a structure: how they are made, and how one takes another's place.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "mc_runtime.h"
#include "own.h"

namespace mxmaca {

// `Interface::submit(stream, work)` does the work on a stream. `Interface::describe(node, work)` leaves with the node
// what the program may ask of it afterwards.
template <class Interface>
struct GraphNodes {
  template <class Work>
  static mcError_t add(mcGraphNode_t* node, mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count,
                       const Work* work) {
    if (work == nullptr) return mcSetLastError(mcErrorInvalidValue, nullptr);
    const auto submit = [](mcStream_t stream, void* data) {
      return Interface::submit(stream, *static_cast<const Work*>(data));
    };
    const mcError_t error = mcGraphRecord(graph, dependencies, count, submit, const_cast<Work*>(work), node);
    return error == mcSuccess ? Interface::describe(*node, *work) : error;
  }

  // The work of a graph's node becomes `work`.
  template <class Work>
  static mcError_t replace(mcGraphNode_t node, const Work* work) {
    return withNode(work, [&](mcGraphNode_t by) { return mcGraphNodeReplace(node, by); });
  }
  // The work of an executable graph's node becomes `work`.
  template <class Work>
  static mcError_t replace(mcGraphExec_t exec, mcGraphNode_t node, const Work* work) {
    return withNode(work, [&](mcGraphNode_t by) { return mcGraphExecReplace(exec, node, by); });
  }

 private:
  // A node with `work` is made, for the time of `use`.
  template <class Work, class Use>
  static mcError_t withNode(const Work* work, Use&& use) {
    mcGraph_t graph = nullptr;
    mcError_t error = mcGraphCreate(&graph);
    if (error != mcSuccess) return error;
    mcGraphNode_t made = nullptr;
    error = add(&made, graph, nullptr, 0, work);
    if (error == mcSuccess) error = use(made);
    mcGraphDestroy(graph);
    return error;
  }
};

// A node that runs bodies by a condition. `bodies` gets an array that the program reads as long as the node lives; it
// goes when another node gets the handle. NotSupported: more than 64 bodies.
inline mcError_t addConditional(mcGraphNode_t* node, mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count,
                                unsigned long long handle, int kind, unsigned size, cudaGraph_t** bodies) {
  constexpr unsigned kMost = 64;
  if (size > kMost)
    return mcSetLastError(mcErrorNotSupported, "a conditional node of a graph with more than 64 bodies");
  auto made = std::make_unique<cudaGraph_t[]>(kMost);
  const mcError_t error = mcGraphAddConditional(graph, dependencies, count, handle,
                                                static_cast<mcGraphConditionKind>(kind), size, own(made.get()), node);
  if (error != mcSuccess) return error;
  static std::mutex mutex;
  static std::map<mcGraphNode_t, std::unique_ptr<cudaGraph_t[]>> bodiesOf;
  *bodies = made.get();
  const std::lock_guard<std::mutex> lock(mutex);
  bodiesOf[*node] = std::move(made);
  return mcSuccess;
}

// Data of edges ask for work that begins before the work that it depends on has ended, which is the order here alone:
// edges carry none.
inline mcError_t checkEdges(const cudaGraphEdgeData* edges, size_t count) {
  static constexpr cudaGraphEdgeData kNone{};
  for (size_t i = 0; edges != nullptr && i < count; ++i) {
    if (std::memcmp(&edges[i], &kNone, sizeof kNone) != 0) return mcErrorNotSupported;
  }
  return mcSuccess;
}
// `ask` writes edges, or nodes at their ends, and their number.
template <class Ask>
mcError_t askEdges(cudaGraphEdgeData* edges, size_t* count, Ask&& ask) {
  const size_t room = count == nullptr ? 0 : *count;
  const mcError_t error = ask();
  if (error == mcSuccess && edges != nullptr) std::memset(edges, 0, (*count < room ? *count : room) * sizeof *edges);
  return error;
}

}  // namespace mxmaca
