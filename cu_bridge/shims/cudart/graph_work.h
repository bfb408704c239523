// The work of graphs' nodes: how each kind is recorded, and how it takes the place of another's.
#pragma once

#include "convert.h"
#include "launching/graph_nodes.h"

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
mcError_t describe(mcGraphNode_t node, const Work& work) {
  return mcGraphNodeDescribe(node, &work, sizeof work);
}
inline mcError_t describe(mcGraphNode_t node, const cudaKernelNodeParams&) {
  return mcGraphNodeDescribe(node, nullptr, 0);
}
inline mcError_t describe(mcGraphNode_t node, const Copy& copy) {
  cudaMemcpy3DParms shown{};
  shown.srcPtr = {const_cast<void*>(copy.from), copy.bytes, copy.bytes, 1};
  shown.dstPtr = {copy.to, copy.bytes, copy.bytes, 1};
  shown.extent = {copy.bytes, 1, 1};
  shown.kind = copy.kind;
  return mcGraphNodeDescribe(node, &shown, sizeof shown);
}

struct Interface {
  template <class Work>
  static mcError_t submit(mcStream_t stream, const Work& work) {
    return static_cast<mcError_t>(submitTo(reinterpret_cast<cudaStream_t>(stream), work));
  }
  template <class Work>
  static mcError_t describe(mcGraphNode_t node, const Work& work) {
    return mxmaca::cudart::describe(node, work);
  }
};
using Nodes = GraphNodes<Interface>;

template <class Work>
cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                const Work* work) {
  return result(Nodes::add(own(node), own(graph), own(dependencies), count, work));
}
template <class Work>
cudaError_t replace(cudaGraphExec_t exec, cudaGraphNode_t node, const Work* work) {
  return result(Nodes::replace(own(exec), own(node), work));
}
template <class Work>
cudaError_t replace(cudaGraphNode_t node, const Work* work) {
  return result(Nodes::replace(own(node), work));
}

}  // namespace mxmaca::cudart
