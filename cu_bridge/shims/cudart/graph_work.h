// The work of graphs' nodes: how each kind is recorded, and how it takes the place of another's.
#pragma once

#include "convert.h"

namespace mxmaca::cudart {

// What a node does, as work on a stream.
struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  cudaMemcpyKind kind;
};
inline cudaError_t submitTo(cudaStream_t stream, const cudaKernelNodeParams& kernel) {
  if (kernel.func == nullptr || (kernel.kernelParams != nullptr && kernel.extra != nullptr)) {
    return cudaErrorInvalidValue;
  }
  if (kernel.extra != nullptr) return unsupported("a node of a graph with the arguments of its kernel in one buffer");
  return cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim, kernel.kernelParams, kernel.sharedMemBytes,
                          stream);
}
inline cudaError_t submitTo(cudaStream_t stream, const Copy& copy) {
  return cudaMemcpyAsync(copy.to, copy.from, copy.bytes, copy.kind, stream);
}
inline cudaError_t submitTo(cudaStream_t stream, const cudaMemcpy3DParms& copy) {
  if (copy.srcArray != nullptr || copy.dstArray != nullptr)
    return unsupported("a node of a graph that copies an array");
  if (copy.extent.depth > 1) return unsupported("a node of a graph that copies a volume");
  const auto start = [](const cudaPitchedPtr& pointer, const cudaPos& position) {
    const size_t rows = position.z * pointer.ysize + position.y;
    return static_cast<char*>(pointer.ptr) + rows * pointer.pitch + position.x;
  };
  char* const to = start(copy.dstPtr, copy.dstPos);
  const char* const from = start(copy.srcPtr, copy.srcPos);
  const size_t rows = copy.extent.depth == 0 ? 0 : copy.extent.height;
  if (rows <= 1) return cudaMemcpyAsync(to, from, rows * copy.extent.width, copy.kind, stream);
  return cudaMemcpy2DAsync(to, copy.dstPtr.pitch, from, copy.srcPtr.pitch, copy.extent.width, rows, copy.kind, stream);
}
inline cudaError_t submitTo(cudaStream_t stream, const cudaMemsetParams& fill) {
  return result(mcMemset2DAsync(fill.dst, fill.height <= 1 ? fill.width * fill.elementSize : fill.pitch, fill.value,
                                fill.elementSize, fill.width, fill.height, own(stream)));
}
inline cudaError_t submitTo(cudaStream_t stream, const cudaHostNodeParams& host) {
  return cudaLaunchHostFunc(stream, host.fn, host.userData);
}
struct Record {
  cudaEvent_t event;
};
inline cudaError_t submitTo(cudaStream_t stream, const Record& record) {
  return result(mcEventRecordExternal(own(record.event), own(stream)));
}
struct Wait {
  cudaEvent_t event;
};
inline cudaError_t submitTo(cudaStream_t stream, const Wait& wait) {
  return result(mcStreamWaitEventExternal(own(stream), own(wait.event)));
}

// What programs may ask of a node that they have made, as they have given it; kernels and memory are asked elsewhere.
template <class Work>
const void* shownOf(const Work& work, size_t* bytes) {
  *bytes = sizeof work;
  return &work;
}
inline const void* shownOf(const cudaKernelNodeParams&, size_t* bytes) {
  *bytes = 0;
  return nullptr;
}
inline cudaMemcpy3DParms asVolume(const Copy& copy) {
  cudaMemcpy3DParms shown{};
  shown.srcPtr = {const_cast<void*>(copy.from), copy.bytes, copy.bytes, 1};
  shown.dstPtr = {copy.to, copy.bytes, copy.bytes, 1};
  shown.extent = {copy.bytes, 1, 1};
  shown.kind = copy.kind;
  return shown;
}

template <class Work>
cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                const Work* work) {
  if (work == nullptr) return fail(mcErrorInvalidValue);
  const auto submit = [](mcStream_t stream, void* data) {
    return static_cast<mcError_t>(submitTo(reinterpret_cast<cudaStream_t>(stream), *static_cast<const Work*>(data)));
  };
  const mcError_t error =
      mcGraphRecord(own(graph), own(dependencies), count, submit, const_cast<Work*>(work), own(node));
  if (error != mcSuccess) return result(error);
  size_t bytes = 0;
  const void* const shown = shownOf(*work, &bytes);
  return result(mcGraphNodeDescribe(own(*node), shown, bytes));
}
inline cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                       const Copy* copy) {
  const cudaError_t error = add<Copy>(node, graph, dependencies, count, copy);
  if (error != cudaSuccess) return error;
  const cudaMemcpy3DParms shown = asVolume(*copy);
  return result(mcGraphNodeDescribe(own(*node), &shown, sizeof shown));
}

// A node with `work` is made, for the time of `use`.
template <class Work, class Use>
cudaError_t withNode(const Work* work, Use&& use) {
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaGraphCreate(&graph, 0);
  if (error != cudaSuccess) return error;
  cudaGraphNode_t made = nullptr;
  error = add(&made, graph, nullptr, 0, work);
  if (error == cudaSuccess) error = result(use(own(made)));
  cudaGraphDestroy(graph);
  return error;
}

// The work of an executable graph's node becomes `work`.
template <class Work>
cudaError_t replace(cudaGraphExec_t exec, cudaGraphNode_t node, const Work* work) {
  return withNode(work, [&](mcGraphNode_t by) { return mcGraphExecReplace(own(exec), own(node), by); });
}

// The work of a graph's node becomes `work`.
template <class Work>
cudaError_t replace(cudaGraphNode_t node, const Work* work) {
  return withNode(work, [&](mcGraphNode_t by) { return mcGraphNodeReplace(own(node), by); });
}

}  // namespace mxmaca::cudart
