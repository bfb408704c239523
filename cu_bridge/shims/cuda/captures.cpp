// Captures of the driver interface: what there is to know of one, and what it goes on from.

#include "launching/graph_nodes.h"
#include "result.h"

namespace {

CUresult captureInfo(CUstream stream, cudaStreamCaptureStatus* status, unsigned long long* id, CUgraph* graph,
                     const CUgraphNode** dependencies, size_t* count) {
  return result(mcStreamCaptureInfo(own(stream), own(status), id, own(graph), own(dependencies), count));
}

CUresult updateDependencies(CUstream stream, CUgraphNode* nodes, size_t count, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaStreamSetCaptureDependencies));
  return result(mcStreamUpdateCapture(own(stream), own(nodes), count, flags == cudaStreamSetCaptureDependencies));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return result(mcStreamBeginCaptureToGraph(own(stream), own(graph), own(dependencies), count, own(mode)));
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return captureInfo(stream, status, id, graph, dependencies, count);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, const CUgraphEdgeData** edges,
                                   size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // no edge carries data
  return captureInfo(stream, status, id, graph, dependencies, count);
}

#undef cuStreamUpdateCaptureDependencies
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count, unsigned int flags) {
  return updateDependencies(stream, nodes, count, flags);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* edges,
                                              size_t count, unsigned int flags) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return updateDependencies(stream, nodes, count, flags);
}

}  // extern "C"
#pragma GCC visibility pop
