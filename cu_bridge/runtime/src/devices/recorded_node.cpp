// Nodes that a program adds by themselves: what they do is submitted to a stream, which a capture turns into a node.

#include "capture/capture.h"
#include "capture/graph_node.h"
#include "state/state.h"

using namespace mc;

mcError_t mcGraphRecord(mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count,
                        mcError_t (*submit)(mcStream_t stream, void* data), void* data, mcGraphNode_t* node) {
  if (node == nullptr || !graphs.contains(graph) || (dependencies == nullptr && count != 0)) {
    return fail(mcErrorInvalidValue);
  }
  // The thread's work on captured streams would run now.
  if (captureSuspended()) return fail(mcErrorIllegalState);
  mcStream_t stream = nullptr;
  mcError_t error = mcStreamCreateWithPriority(&stream, 1, 0);
  if (error != mcSuccess) return error;
  const size_t before = graph->nodes.size();
  error = beginCapture(stream, mcCaptureModeRelaxed, {graph, dependencies, count, true});
  if (error == mcSuccess) {
    error = submit(stream, data);
    mcGraph_t same = nullptr;
    const mcError_t end = mcStreamEndCapture(stream, &same);
    if (error == mcSuccess) error = end;
  }
  static_cast<void>(mcStreamDestroy(stream));
  if (error == mcSuccess && graph->nodes.size() != before + 1) error = mcErrorInvalidValue;
  if (error != mcSuccess) {
    graph->nodes.resize(before);
    return fail(error);
  }
  *node = graph->nodes.back().get();
  return mcSuccess;
}
