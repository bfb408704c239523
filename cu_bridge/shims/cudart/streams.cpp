// Streams, events, captures and graphs.

#include "convert.h"
#include "launching/graph_nodes.h"
#include "profiling/told.h"

#pragma GCC visibility push(default)
extern "C" {

#define SAME(name, parameters, call) \
  cudaError_t cuda##name parameters { return result(call); }
#define TOLD(name, parameters, call, like, drivers, number, ...)                        \
  cudaError_t cuda##name parameters {                                                   \
    const auto work = [&] { return result(call); };                                     \
    return (number) == 0 ? work() : toldOfRuntime((number), (like), work, __VA_ARGS__); \
  }
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
  struct Call {
    cudaStreamCallback_t callback;
    cudaStream_t stream;
    void* userData;
  };
  const auto run = [](void* data) {
    const Call& call = *static_cast<Call*>(data);
    call.callback(call.stream, result(mcStickyError()), call.userData);
    return mcSuccess;
  };
  // Callbacks cannot be captured.
  mcCaptureStatus status = mcCaptureNone;
  RETURN_IF_WRONG(mcStreamCaptureInfo(own(stream), &status, nullptr, nullptr, nullptr, nullptr));
  if (status != mcCaptureNone) return result(mcStreamCheck(own(stream)));
  return result(mcStreamSubmit(own(stream), "host", "callback", mcTaskWaits | mcTaskAlways, run,
                               new Call{callback, stream, userData},
                               [](void* data) { delete static_cast<Call*>(data); }));
}

// ---- Capture and graphs ---------------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return result(mcStreamBeginCaptureToGraph(own(stream), own(graph), own(dependencies), count, own(mode)));
}
#if MXMACA_CUDA_MAJOR >= 13
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData* edges, size_t count, unsigned int flags) {
  RETURN_IF_WRONG(checkEdges(edges, count));
#else
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes, size_t count,
                                                unsigned int flags) {
#endif
  RETURN_IF_WRONG(checkFlags(flags, cudaStreamSetCaptureDependencies));
  return result(mcStreamUpdateCapture(own(stream), own(nodes), count, flags == cudaStreamSetCaptureDependencies));
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
  const mcError_t error = mcGraphInstantiate(own(exec), own(graph));
  if (error != mcSuccess) return result(error);
  const bool freesFirst = (flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0;
  if (freesFirst) mcGraphExecFreesFirst(own(*exec));
  return result(mcGraphExecSetFlags(own(*exec), flags));
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  if (parameters == nullptr) return fail(mcErrorInvalidValue);
  parameters->errNode_out = nullptr;
  const cudaError_t error = cudaGraphInstantiate(exec, graph, parameters->flags);
  parameters->result_out = error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
  const bool uploads = error == cudaSuccess && (parameters->flags & cudaGraphInstantiateFlagUpload) != 0;
  return uploads ? cudaGraphUpload(*exec, parameters->uploadStream) : error;
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return result(mcGraphExecGetFlags(own(exec), flags));
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return result(mcGraphGetNodes(own(graph), own(nodes), count));
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  constexpr unsigned int kKnownFlags = 0x1ffff;  // each of them asks for details
  RETURN_IF_WRONG(checkFlags(flags, kKnownFlags));
  return result(mcGraphDebugDotPrint(own(graph), path, flags != 0 ? 1 : 0));
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
