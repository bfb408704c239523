// What graphs' nodes do: asked for, and changed, in a graph and in one that can be launched.

#include "graph_work.h"

namespace {

// The node is of that type.
mcError_t check(cudaGraphNode_t node, cudaGraphNodeType wanted, const void* to) {
  cudaGraphNodeType type{};
  const cudaError_t problem = cudaGraphNodeGetType(node, &type);
  if (problem != cudaSuccess) return static_cast<mcError_t>(problem);
  return to == nullptr || type != wanted ? mcErrorInvalidValue : mcSuccess;
}

// As the program has given them. A captured operation was given as none of these structures.
template <class Shown>
cudaError_t show(cudaGraphNode_t node, cudaGraphNodeType type, Shown* shown) {
  RETURN_IF_WRONG(check(node, type, shown));
  const mcError_t error = mcGraphNodeDescription(own(node), shown, sizeof *shown);
  return error == mcErrorNotSupported ? unsupported("the parameters of a captured node of a graph") : result(error);
}

// Where a variable of the device lies, from `offset` on.
cudaError_t addressOf(const void* symbol, size_t offset, size_t bytes, char** address) {
  size_t size = 0;
  const cudaError_t error = cudaGetSymbolSize(&size, symbol);
  if (error != cudaSuccess) return error;
  if (offset > size || bytes > size - offset) return fail(mcErrorInvalidValue);
  void* first = nullptr;
  const cudaError_t problem = cudaGetSymbolAddress(&first, symbol);
  *address = static_cast<char*>(first) + offset;
  return problem;
}
// A copy to a variable, or from one.
template <class Use>
cudaError_t withCopyTo(const void* symbol, const void* src, size_t bytes, size_t offset, cudaMemcpyKind kind,
                       Use&& use) {
  char* to = nullptr;
  const cudaError_t error = addressOf(symbol, offset, bytes, &to);
  if (error != cudaSuccess) return error;
  const Copy copy{to, src, bytes, kind};
  return use(&copy);
}
template <class Use>
cudaError_t withCopyFrom(void* dst, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, Use&& use) {
  char* from = nullptr;
  const cudaError_t error = addressOf(symbol, offset, bytes, &from);
  if (error != cudaSuccess) return error;
  const Copy copy{dst, from, bytes, kind};
  return use(&copy);
}

// `set` gets the parameters as the structure of their type.
template <class Set>
cudaError_t setAny(const cudaGraphNodeParams* parameters, Set&& set) {
  if (parameters == nullptr) return fail(mcErrorInvalidValue);
  switch (parameters->type) {
    case cudaGraphNodeTypeKernel: return set(&parameters->kernel);
    case cudaGraphNodeTypeMemcpy: return set(&parameters->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: return set(&parameters->memset);
    case cudaGraphNodeTypeHost: return set(&parameters->host);
    case cudaGraphNodeTypeWaitEvent: {
      const Wait wait{parameters->eventWait.event};
      return set(&wait);
    }
    case cudaGraphNodeTypeEventRecord: {
      const Record record{parameters->eventRecord.event};
      return set(&record);
    }
    default: return unsupported("new parameters for a node of a graph of this type");
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters) {
  if (parameters == nullptr) return fail(mcErrorInvalidValue);
  cudaGraphNodeType type{};
  const cudaError_t problem = cudaGraphNodeGetType(node, &type);
  if (problem != cudaSuccess) return problem;
  if (type != cudaGraphNodeTypeKernel) return fail(mcErrorInvalidValue);
  mcKernelLaunch launch{};
  const mcError_t error = mcGraphKernelLaunch(own(node), &launch);
  if (error != mcSuccess) return result(error);
  *parameters = {};
  parameters->func = const_cast<void*>(launch.hostFunction);
  parameters->gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
  parameters->blockDim = {launch.block.x, launch.block.y, launch.block.z};
  parameters->sharedMemBytes = static_cast<unsigned>(launch.sharedBytes);
  parameters->kernelParams = launch.arguments;
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
  return replace(node, parameters);
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters) {
  return replace(node, parameters);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src, size_t bytes,
                                           cudaMemcpyKind kind) {
  const Copy copy{dst, src, bytes, kind};
  return replace(node, &copy);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters) {
  return replace(node, parameters);
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters) {
  return replace(node, parameters);
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  const Record record{event};
  return replace(node, &record);
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  const Wait wait{event};
  return replace(node, &wait);
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  const Record record{event};
  return replace(exec, node, &record);
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  const Wait wait{event};
  return replace(exec, node, &wait);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters) {
  return replace(exec, node, parameters);
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  return replace(exec, node, parameters);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* dst, const void* src,
                                               size_t bytes, cudaMemcpyKind kind) {
  const Copy copy{dst, src, bytes, kind};
  return replace(exec, node, &copy);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters) {
  return replace(exec, node, parameters);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* parameters) {
  return replace(exec, node, parameters);
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled) {
  return result(mcGraphExecEnable(own(exec), own(node), enabled != 0));
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* parameters) {
  return show(node, cudaGraphNodeTypeMemcpy, parameters);
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* parameters) {
  return show(node, cudaGraphNodeTypeMemset, parameters);
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* parameters) {
  return show(node, cudaGraphNodeTypeHost, parameters);
}
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  Record record{};
  const cudaError_t error = show(node, cudaGraphNodeTypeEventRecord, event == nullptr ? nullptr : &record);
  if (error == cudaSuccess) *event = record.event;
  return error;
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  Wait wait{};
  const cudaError_t error = show(node, cudaGraphNodeTypeWaitEvent, event == nullptr ? nullptr : &wait);
  if (error == cudaSuccess) *event = wait.event;
  return error;
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  return setAny(parameters, [node](const auto* work) { return replace(node, work); });
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  if (parameters != nullptr && parameters->type == cudaGraphNodeTypeGraph) {
    return cudaGraphExecChildGraphNodeSetParams(exec, node, parameters->graph.graph);
  }
  return setAny(parameters, [exec, node](const auto* work) { return replace(exec, node, work); });
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return result(mcGraphExecReplaceChild(own(exec), own(node), own(child)));
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count, const void* symbol,
                                           const void* src, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return withCopyTo(symbol, src, bytes, offset, kind,
                    [&](const Copy* copy) { return add(node, graph, dependencies, count, copy); });
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count, void* dst,
                                             const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return withCopyFrom(dst, symbol, bytes, offset, kind,
                      [&](const Copy* copy) { return add(node, graph, dependencies, count, copy); });
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* src,
                                                 size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return withCopyTo(symbol, src, bytes, offset, kind, [&](const Copy* copy) { return replace(node, copy); });
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* dst, const void* symbol, size_t bytes,
                                                   size_t offset, cudaMemcpyKind kind) {
  return withCopyFrom(dst, symbol, bytes, offset, kind, [&](const Copy* copy) { return replace(node, copy); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void* symbol,
                                                     const void* src, size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind) {
  return withCopyTo(symbol, src, bytes, offset, kind, [&](const Copy* copy) { return replace(exec, node, copy); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* dst,
                                                       const void* symbol, size_t bytes, size_t offset,
                                                       cudaMemcpyKind kind) {
  return withCopyFrom(dst, symbol, bytes, offset, kind, [&](const Copy* copy) { return replace(exec, node, copy); });
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int* enabled) {
  if (enabled == nullptr) return fail(mcErrorInvalidValue);
  int value = 0;
  const mcError_t error = mcGraphExecEnabled(own(exec), own(node), &value);
  if (error == mcSuccess) *enabled = value != 0 ? 1 : 0;
  return result(error);
}

}  // extern "C"
#pragma GCC visibility pop
