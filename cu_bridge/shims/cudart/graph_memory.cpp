// Memory that a graph takes and gives back, as nodes that programs add: the work is that of captured allocations.

#include <map>
#include <mutex>

#include "convert.h"
#include "device_facts.h"
#include "launching/graph_memory.h"

namespace {

struct Allocation {
  size_t bytes;
  void* pointer;
};

// What programs may ask of the nodes that they have added. An entry goes when another node gets the handle.
std::mutex mutex;
std::map<cudaGraphNode_t, cudaMemAllocNodeParams> allocations;
std::map<cudaGraphNode_t, void*> frees;

// Memory of the device alone; `accessDescs` name devices that reach it anyway.
mcError_t checkAllocation(const cudaMemAllocNodeParams* p) {
  if (p == nullptr || p->bytesize == 0) return mcErrorInvalidValue;
  if (p->poolProps.allocType != cudaMemAllocationTypePinned) return mcErrorInvalidValue;
  if (p->poolProps.location.type != cudaMemLocationTypeDevice) return mcErrorInvalidValue;
  if (p->poolProps.handleTypes != cudaMemHandleTypeNone) return mcErrorNotSupported;
  if (p->accessDescCount > 0 && p->accessDescs == nullptr) return mcErrorInvalidValue;
  for (size_t i = 0; i < p->accessDescCount; ++i) {
    if (p->accessDescs[i].location.type != cudaMemLocationTypeDevice) return mcErrorInvalidValue;
    const mcError_t error = mxmaca::checkDevice(p->accessDescs[i].location.id);
    if (error != mcSuccess) return error;
  }
  return mxmaca::checkDevice(p->poolProps.location.id);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, cudaMemAllocNodeParams* params) {
  RETURN_IF_WRONG(checkAllocation(params));
  int current = 0;
  RETURN_IF_WRONG(mcGetDevice(&current));
  RETURN_IF_WRONG(mcSetDevice(params->poolProps.location.id));
  Allocation made{params->bytesize, nullptr};
  const auto submit = [](mcStream_t stream, void* data) {
    auto& wanted = *static_cast<Allocation*>(data);
    return mcMallocAsync(&wanted.pointer, wanted.bytes, stream);
  };
  const mcError_t error = mcGraphRecord(own(graph), own(dependencies), count, submit, &made, own(node));
  mcSetDevice(current);
  if (error != mcSuccess) return result(error);
  params->dptr = made.pointer;
  const std::lock_guard<std::mutex> lock(mutex);
  allocations[*node] = *params;
  allocations[*node].accessDescs = nullptr;  // the program's array
  allocations[*node].accessDescCount = 0;
  return cudaSuccess;
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* params) {
  cudaGraphNodeType type;
  const cudaError_t error = cudaGraphNodeGetType(node, &type);
  if (error != cudaSuccess) return error;
  if (params == nullptr || type != cudaGraphNodeTypeMemAlloc) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = allocations.find(node);
  if (found == allocations.end()) return unsupported("the parameters of an allocation that was captured or cloned");
  *params = found->second;
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                    size_t count, void* pointer) {
  if (pointer == nullptr) return fail(mcErrorInvalidValue);
  const auto submit = [](mcStream_t stream, void* data) { return mcFreeAsync(data, stream); };
  const mcError_t error = mcGraphRecord(own(graph), own(dependencies), count, submit, pointer, own(node));
  if (error != mcSuccess) return result(error);
  const std::lock_guard<std::mutex> lock(mutex);
  frees[*node] = pointer;
  return cudaSuccess;
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer) {
  cudaGraphNodeType type;
  const cudaError_t error = cudaGraphNodeGetType(node, &type);
  if (error != cudaSuccess) return error;
  if (pointer == nullptr || type != cudaGraphNodeTypeMemFree) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = frees.find(node);
  if (found == frees.end()) return unsupported("the parameters of a free that was captured or cloned");
  *static_cast<void**>(pointer) = found->second;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return result(mxmaca::getGraphMemory(device, attribute, value));
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return result(mxmaca::setGraphMemory(device, attribute, value));
}

// What no graph needs any more is given back at once.
cudaError_t cudaDeviceGraphMemTrim(int device) {
  RETURN_IF_WRONG(mxmaca::checkDevice(device));
  return cudaSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
