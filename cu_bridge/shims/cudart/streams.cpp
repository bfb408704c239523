// Streams, events, captures and graphs.

#include <cstring>

#include "convert.h"

#pragma GCC visibility push(default)
extern "C" {

#define SAME(name, parameters, call) \
  cudaError_t cuda##name parameters { return result(call); }
#include "same_functions.inc"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  mcContextSet(1);
  return result(mcStreamCreateWithPriority(own(stream), flags, priority));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaEventWaitExternal));
  return result((flags & cudaEventWaitExternal) != 0 ? mcStreamWaitEventExternal(own(stream), own(event))
                                                     : mcStreamWaitEvent(own(stream), own(event)));
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return result(mcStreamGetId(own(stream), id));
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return result(mcStreamGetDevice(own(stream), device));
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags) {
  if (callback == nullptr || flags != 0) return fail(mcErrorInvalidValue);
  const mcError_t error = mcStreamCheck(own(stream));
  if (error == mcSuccess) callback(stream, cudaSuccess, userData);
  return result(error);
}

// ---- Capture and graphs ---------------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                          size_t, cudaStreamCaptureMode) {
  return unsupported("cudaStreamBeginCaptureToGraph");
}

namespace {
cudaError_t captureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                        cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count) {
  return result(mcStreamCaptureInfo(own(stream), own(status), id, own(graph), own(dependencies), count));
}
}  // namespace

#if MXMACA_CUDA_MAJOR >= 13
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // no edge carries data
  return captureInfo(stream, status, id, graph, dependencies, count);
}
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count) {
  return captureInfo(stream, status, id, graph, dependencies, count);
}
#endif

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
                                        cudaGraphInstantiateFlagDeviceLaunch |
                                        cudaGraphInstantiateFlagUseNodePriority));
  if ((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0) return unsupported("graphs that device code launches");
  return result(mcGraphInstantiate(own(exec), own(graph)));
}
#if MXMACA_CUDA_MAJOR >= 13
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                                         size_t* count) {
  const size_t room = count == nullptr ? 0 : *count;
  const mcError_t error = mcGraphNodeDependencies(own(node), own(dependencies), count);
  if (error == mcSuccess && edges != nullptr) std::memset(edges, 0, (*count < room ? *count : room) * sizeof *edges);
  return result(error);
}
#else
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count) {
  return result(mcGraphNodeDependencies(own(node), own(dependencies), count));
}
#endif
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return result(mcGraphGetNodes(own(graph), own(nodes), count));
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  constexpr unsigned int kKnownFlags = 0x1ffff;  // all of them: the file has one amount of detail
  RETURN_IF_WRONG(checkFlags(flags, kKnownFlags));
  return result(mcGraphDebugDotPrint(own(graph), path));
}

// ---- Events ---------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  mcContextSet(1);
  return result(mcEventCreate(own(event), flags));
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaEventRecordExternal));
  return result((flags & cudaEventRecordExternal) != 0 ? mcEventRecordExternal(own(event), own(stream))
                                                       : mcEventRecord(own(event), own(stream)));
}

}  // extern "C"
#pragma GCC visibility pop
