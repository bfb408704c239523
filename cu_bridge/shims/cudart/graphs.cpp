// Graphs that programs build node by node, and changes of those that can be launched.

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "convert.h"

namespace {

// What a node does, as work on a stream.
struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  cudaMemcpyKind kind;
};
cudaError_t submitTo(cudaStream_t stream, const cudaKernelNodeParams& kernel) {
  if (kernel.func == nullptr || (kernel.kernelParams != nullptr && kernel.extra != nullptr)) {
    return cudaErrorInvalidValue;
  }
  if (kernel.extra != nullptr) return unsupported("a node of a graph with the arguments of its kernel in one buffer");
  return cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim, kernel.kernelParams, kernel.sharedMemBytes,
                          stream);
}
cudaError_t submitTo(cudaStream_t stream, const Copy& copy) {
  return cudaMemcpyAsync(copy.to, copy.from, copy.bytes, copy.kind, stream);
}
cudaError_t submitTo(cudaStream_t stream, const cudaMemcpy3DParms& copy) {
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
cudaError_t submitTo(cudaStream_t stream, const cudaMemsetParams& fill) {
  return result(mcMemset2DAsync(fill.dst, fill.height <= 1 ? fill.width * fill.elementSize : fill.pitch, fill.value,
                                fill.elementSize, fill.width, fill.height, own(stream)));
}
cudaError_t submitTo(cudaStream_t stream, const cudaHostNodeParams& host) {
  return cudaLaunchHostFunc(stream, host.fn, host.userData);
}
struct Record {
  cudaEvent_t event;
};
cudaError_t submitTo(cudaStream_t stream, const Record& record) {
  return result(mcEventRecordExternal(own(record.event), own(stream)));
}
struct Wait {
  cudaEvent_t event;
};
cudaError_t submitTo(cudaStream_t stream, const Wait& wait) {
  return result(mcStreamWaitEventExternal(own(stream), own(wait.event)));
}

template <class Work>
cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                const Work* work) {
  if (work == nullptr) return fail(mcErrorInvalidValue);
  const auto submit = [](mcStream_t stream, void* data) {
    return static_cast<mcError_t>(submitTo(reinterpret_cast<cudaStream_t>(stream), *static_cast<const Work*>(data)));
  };
  return result(mcGraphRecord(own(graph), own(dependencies), count, submit, const_cast<Work*>(work), own(node)));
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

cudaError_t addConditional(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                           cudaConditionalNodeParams* conditional) {
  constexpr unsigned kMost = 64;
  if (conditional->size > kMost) return unsupported("a conditional node of a graph with more than 64 bodies");
  auto bodies = std::make_unique<cudaGraph_t[]>(kMost);
  const auto kind = static_cast<mcGraphConditionKind>(conditional->type);
  const mcError_t error = mcGraphAddConditional(own(graph), own(dependencies), count, conditional->handle, kind,
                                                conditional->size, own(bodies.get()), own(node));
  if (error != mcSuccess) return result(error);
  // The program reads the array as long as the node lives. It goes when another node gets the handle.
  static std::mutex mutex;
  static std::map<cudaGraphNode_t, std::unique_ptr<cudaGraph_t[]>> bodiesOf;
  conditional->phGraph_out = bodies.get();
  const std::lock_guard<std::mutex> lock(mutex);
  bodiesOf[*node] = std::move(bodies);
  return cudaSuccess;
}

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
      return addConditional(node, graph, dependencies, count, &parameters->conditional);
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree: return unsupported("a node of a graph of this type");
  }
  return fail(mcErrorInvalidValue);
}

// Edges carry no data here.
template <class Ask>
cudaError_t askEdges(cudaGraphEdgeData* edges, size_t* count, Ask&& ask) {
  const size_t room = count == nullptr ? 0 : *count;
  const mcError_t error = ask();
  if (error == mcSuccess && edges != nullptr) std::memset(edges, 0, (*count < room ? *count : room) * sizeof *edges);
  return result(error);
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
  static constexpr struct {
    const char* kind;
    cudaGraphNodeType type;
  } kKinds[] = {
      {"memcpy", cudaGraphNodeTypeMemcpy},
      {"memset", cudaGraphNodeTypeMemset},
      {"host", cudaGraphNodeTypeHost},
      {"graph", cudaGraphNodeTypeGraph},
      {"empty", cudaGraphNodeTypeEmpty},
      {"event wait", cudaGraphNodeTypeWaitEvent},
      {"conditional", cudaGraphNodeTypeConditional},
      {"event record", cudaGraphNodeTypeEventRecord},
      {"mem alloc", cudaGraphNodeTypeMemAlloc},
      {"mem free", cudaGraphNodeTypeMemFree},
  };
  if (type == nullptr) return fail(mcErrorInvalidValue);
  const char* kind = nullptr;
  const mcError_t error = mcGraphNodeKind(own(node), &kind);
  if (error != mcSuccess) return result(error);
  *type = cudaGraphNodeTypeKernel;  // operators and collectives too
  for (const auto& known : kKinds) {
    if (std::strcmp(known.kind, kind) == 0) *type = known.type;
  }
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
  return askEdges(edges, count, [&] { return mcGraphEdges(own(graph), own(from), own(to), count); });
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents, cudaGraphEdgeData* edges,
                                           size_t* count) {
  return askEdges(edges, count, [&] { return mcGraphNodeDependents(own(node), own(dependents), count); });
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                                         size_t* count) {
  return askEdges(edges, count, [&] { return mcGraphNodeDependencies(own(node), own(dependencies), count); });
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
  return askEdges(nullptr, count, [&] { return mcGraphEdges(own(graph), own(from), own(to), count); });
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents, size_t* count) {
  return askEdges(nullptr, count, [&] { return mcGraphNodeDependents(own(node), own(dependents), count); });
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count) {
  return askEdges(nullptr, count, [&] { return mcGraphNodeDependencies(own(node), own(dependencies), count); });
}
#endif

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
