// Graphs that programs build node by node, and what can be asked about their shape.

#include "graph_work.h"
#include "profiling/node_types.h"

namespace {

cudaError_t addNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                    cudaGraphNodeParams* parameters) {
  if (parameters == nullptr) return fail(mcErrorInvalidValue);
  switch (parameters->type) {
    case cudaGraphNodeTypeKernel: return add(node, graph, dependencies, count, &parameters->kernel);
    case cudaGraphNodeTypeMemcpy: return add(node, graph, dependencies, count, &parameters->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: return add(node, graph, dependencies, count, &parameters->memset);
    case cudaGraphNodeTypeHost: return add(node, graph, dependencies, count, &parameters->host);
    case cudaGraphNodeTypeGraph:
      return cudaGraphAddChildGraphNode(node, graph, dependencies, count, parameters->graph.graph);
    case cudaGraphNodeTypeEmpty: return cudaGraphAddEmptyNode(node, graph, dependencies, count);
    case cudaGraphNodeTypeWaitEvent:
      return cudaGraphAddEventWaitNode(node, graph, dependencies, count, parameters->eventWait.event);
    case cudaGraphNodeTypeEventRecord:
      return cudaGraphAddEventRecordNode(node, graph, dependencies, count, parameters->eventRecord.event);
    case cudaGraphNodeTypeConditional:
      return result(addConditional(own(node), own(graph), own(dependencies), count, parameters->conditional.handle,
                                   parameters->conditional.type, parameters->conditional.size,
                                   &parameters->conditional.phGraph_out));
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree: return unsupported("a node of a graph of this type");
  }
  return fail(mcErrorInvalidValue);
}

template <class Ask>
cudaError_t ask(cudaGraphEdgeData* edges, size_t* count, Ask&& ask) {
  return result(askEdges(edges, count, ask));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, 0));
  return result(mcGraphCreate(own(graph)));
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return result(mcGraphClone(own(clone), own(original)));
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return result(mcGraphNodeFindInClone(own(node), own(original), own(clone)));
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { return result(mcGraphNodeDestroy(own(node))); }

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (type == nullptr) return fail(mcErrorInvalidValue);
  const char* kind = nullptr;
  const mcError_t error = mcGraphNodeKind(own(node), &kind);
  if (error != mcSuccess) return result(error);
  *type = static_cast<cudaGraphNodeType>(mxmaca::nodeType(kind));
  return cudaSuccess;
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return result(mcGraphRootNodes(own(graph), own(nodes), count));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaKernelNodeParams* parameters) {
  return add(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemcpy3DParms* parameters) {
  return add(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  const Copy copy{dst, src, bytes, kind};
  return add(node, graph, dependencies, count, &copy);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemsetParams* parameters) {
  return add(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 size_t count, const cudaHostNodeParams* parameters) {
  return add(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                        size_t count, cudaEvent_t event) {
  const Record record{event};
  return add(node, graph, dependencies, count, &record);
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                      size_t count, cudaEvent_t event) {
  const Wait wait{event};
  return add(node, graph, dependencies, count, &wait);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  size_t count) {
  return result(mcGraphAddEmpty(own(graph), own(dependencies), count, own(node)));
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       size_t count, cudaGraph_t child) {
  return result(mcGraphAddChild(own(graph), own(dependencies), count, own(child), own(node)));
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return result(mcGraphChild(own(node), own(graph)));
}
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned int defaultLaunchValue, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaGraphCondAssignDefault));
  return result(mcGraphConditionCreate(handle, own(graph), defaultLaunchValue, flags == cudaGraphCondAssignDefault));
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned int references,
                                 unsigned int flags) {
  if (flags != cudaUserObjectNoDestructorSync) return fail(mcErrorInvalidValue);
  return result(mcUserObjectCreate(own(object), pointer, destroy, references));
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  return result(mcUserObjectRetain(own(object), count));
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return result(mcUserObjectRelease(own(object), count));
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaGraphUserObjectMove));
  return result(mcGraphRetainUserObject(own(graph), own(object), count, flags == cudaGraphUserObjectMove));
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  return result(mcGraphReleaseUserObject(own(graph), own(object), count));
}

#if MXMACA_CUDA_MAJOR >= 13
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return addNode(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges, size_t count) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return result(mcGraphAddDependencies(own(graph), own(from), own(to), count));
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edges, size_t count) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return result(mcGraphRemoveDependencies(own(graph), own(from), own(to), count));
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
  return ask(edges, count, [&] { return mcGraphEdges(own(graph), own(from), own(to), count); });
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents, cudaGraphEdgeData* edges,
                                           size_t* count) {
  return ask(edges, count, [&] { return mcGraphNodeDependents(own(node), own(dependents), count); });
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                                         size_t* count) {
  return ask(edges, count, [&] { return mcGraphNodeDependencies(own(node), own(dependencies), count); });
}
#else
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             size_t count, cudaGraphNodeParams* parameters) {
  return addNode(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     size_t count) {
  return result(mcGraphAddDependencies(own(graph), own(from), own(to), count));
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        size_t count) {
  return result(mcGraphRemoveDependencies(own(graph), own(from), own(to), count));
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  return ask(nullptr, count, [&] { return mcGraphEdges(own(graph), own(from), own(to), count); });
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents, size_t* count) {
  return ask(nullptr, count, [&] { return mcGraphNodeDependents(own(node), own(dependents), count); });
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count) {
  return ask(nullptr, count, [&] { return mcGraphNodeDependencies(own(node), own(dependencies), count); });
}
#endif

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  if (info == nullptr) return fail(mcErrorInvalidValue);
  mcGraphUpdateResult update = mcGraphUpdateError;
  mcGraphNode_t node = nullptr;
  const mcError_t error = mcGraphExecUpdate(own(exec), own(graph), &update, &node);
  *info = {static_cast<cudaGraphExecUpdateResult>(update), reinterpret_cast<cudaGraphNode_t>(node), nullptr};
  return result(error);
}

}  // extern "C"
#pragma GCC visibility pop
