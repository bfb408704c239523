// Graphs that programs build node by node, and what is asked about their nodes.

#include "contexts.h"
#include "launching/kept_attributes.h"
#include "profiling/node_types.h"

namespace {

// What a node does, as work on a stream.
CUresult submitTo(CUstream stream, const CUDA_KERNEL_NODE_PARAMS& kernel) {
  auto* const function = kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return cuLaunchKernel(function, kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ, kernel.blockDimX, kernel.blockDimY,
                        kernel.blockDimZ, kernel.sharedMemBytes, stream, kernel.kernelParams, kernel.extra);
}
CUresult submitTo(CUstream stream, const CUDA_MEMCPY3D& copy) {
  if (copy.Depth > 1) return result(mcSetLastError(mcErrorNotSupported, "a node of a graph that copies a volume"));
  return cuMemcpy3DAsync(&copy, stream);
}
CUresult submitTo(CUstream stream, const CUDA_MEMSET_NODE_PARAMS& fill) {
  const size_t pitch = fill.height <= 1 ? fill.width * fill.elementSize : fill.pitch;
  return result(
      mcMemset2DAsync(address(fill.dst), pitch, fill.value, fill.elementSize, fill.width, fill.height, own(stream)));
}
CUresult submitTo(CUstream stream, const CUDA_HOST_NODE_PARAMS& host) {
  return cuLaunchHostFunc(stream, host.fn, host.userData);
}
struct Record {
  CUevent event;
};
CUresult submitTo(CUstream stream, const Record& record) {
  return result(mcEventRecordExternal(own(record.event), own(stream)));
}
struct Wait {
  CUevent event;
};
CUresult submitTo(CUstream stream, const Wait& wait) {
  return result(mcStreamWaitEventExternal(own(stream), own(wait.event)));
}
struct Free {
  CUdeviceptr pointer;
};
CUresult submitTo(CUstream stream, const Free& free) { return result(mcFreeAsync(address(free.pointer), own(stream))); }

struct Interface {
  template <class Work>
  static mcError_t submit(mcStream_t stream, const Work& work) {
    return static_cast<mcError_t>(submitTo(reinterpret_cast<CUstream>(stream), work));
  }
  template <class Work>
  static mcError_t describe(mcGraphNode_t node, const Work& work) {
    return mcGraphNodeDescribe(node, &work, sizeof work);
  }
  // What a kernel's node launches is asked of the runtime: the program's arguments are not there any more.
  static mcError_t describe(mcGraphNode_t node, const CUDA_KERNEL_NODE_PARAMS&) {
    return mcGraphNodeDescribe(node, nullptr, 0);
  }
};
using Nodes = GraphNodes<Interface>;

template <class Work>
CUresult add(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count, const Work* work) {
  return result(Nodes::add(own(node), own(graph), own(dependencies), count, work));
}
template <class Work>
CUresult replace(CUgraphNode node, const Work* work) {
  return result(Nodes::replace(own(node), work));
}
template <class Work>
CUresult replace(CUgraphExec exec, CUgraphNode node, const Work* work) {
  return result(Nodes::replace(own(exec), own(node), work));
}

// The node is of that type.
mcError_t check(CUgraphNode node, CUgraphNodeType wanted, const void* to) {
  const char* kind = nullptr;
  const mcError_t error = mcGraphNodeKind(own(node), &kind);
  if (error != mcSuccess) return error;
  return to == nullptr || nodeType(kind) != wanted ? mcErrorInvalidValue : mcSuccess;
}
// As the program has given it. A captured operation was given as none of these structures.
template <class Shown>
CUresult show(CUgraphNode node, CUgraphNodeType type, Shown* shown) {
  RETURN_IF_WRONG(check(node, type, shown));
  return result(mcGraphNodeDescription(own(node), shown, sizeof *shown));
}

// A context that is given is one of a device; work is done in the one that is current.
mcError_t checkNodeContext(CUcontext context) {
  int device = 0;
  unsigned int part = 0;
  return context == nullptr || isContext(context, &device, &part) ? mcSuccess : mcErrorDeviceUninitialized;
}

template <class Ask>
CUresult ask(CUgraphEdgeData* edges, size_t* count, Ask&& ask) {
  return result(askEdges(edges, count, ask));
}

static_assert(sizeof(CUgraphNodeParams) == 256 && sizeof(CUDA_MEMCPY_NODE_PARAMS) <= 232, "CUDA's layout");

// The second form has a context behind.
CUDA_MEMSET_NODE_PARAMS fillOf(const CUDA_MEMSET_NODE_PARAMS_v2& fill) {
  return {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
}

CUresult addAny(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                CUgraphNodeParams* params) {
  RETURN_IF_NULL(params);
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return add(node, graph, dependencies, count, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return cuGraphAddMemcpyNode(node, graph, dependencies, count, &params->memcpy.copyParams, params->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill = fillOf(params->memset);
      return cuGraphAddMemsetNode(node, graph, dependencies, count, &fill, params->memset.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: return add(node, graph, dependencies, count, &params->host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return cuGraphAddChildGraphNode(node, graph, dependencies, count, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY: return cuGraphAddEmptyNode(node, graph, dependencies, count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return cuGraphAddEventWaitNode(node, graph, dependencies, count, params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return cuGraphAddEventRecordNode(node, graph, dependencies, count, params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return cuGraphAddMemAllocNode(node, graph, dependencies, count, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return cuGraphAddMemFreeNode(node, graph, dependencies, count, params->free.dptr);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      RETURN_IF_WRONG(checkNodeContext(params->conditional.ctx));
      return result(addConditional(own(node), own(graph), own(dependencies), count, params->conditional.handle,
                                   params->conditional.type, params->conditional.size,
                                   &params->conditional.phGraph_out));
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return result(mcSetLastError(mcErrorNotSupported, "a node of a graph of this type"));
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// `set` gets the parameters as the structure of their type.
template <class Set>
CUresult setAny(const CUgraphNodeParams* params, Set&& set) {
  RETURN_IF_NULL(params);
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return set(&params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return set(&params->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill = fillOf(params->memset);
      return set(&fill);
    }
    case CU_GRAPH_NODE_TYPE_HOST: return set(&params->host);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
      const Wait wait{params->eventWait.event};
      return set(&wait);
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
      const Record record{params->eventRecord.event};
      return set(&record);
    }
    default: return result(mcSetLastError(mcErrorNotSupported, "new parameters for a node of a graph of this type"));
  }
}

// Memory of the device alone; `accessDescs` name devices that reach it anyway.
mcError_t checkAllocation(const CUDA_MEM_ALLOC_NODE_PARAMS* p) {
  if (p == nullptr || p->bytesize == 0) return mcErrorInvalidValue;
  if (p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return mcErrorInvalidValue;
  if (p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return mcErrorInvalidValue;
  if (p->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return mcErrorNotSupported;
  if (p->accessDescCount > 0 && p->accessDescs == nullptr) return mcErrorInvalidValue;
  for (size_t i = 0; i < p->accessDescCount; ++i) {
    if (p->accessDescs[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return mcErrorInvalidValue;
    const mcError_t error = checkDevice(p->accessDescs[i].location.id);
    if (error != mcSuccess) return error;
  }
  return checkDevice(p->poolProps.location.id);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, 0));
  return result(mcGraphCreate(own(graph)));
}
CUresult cuGraphClone(CUgraph* clone, CUgraph original) { return result(mcGraphClone(own(clone), own(original))); }
CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  return result(mcGraphNodeFindInClone(own(node), own(original), own(clone)));
}
CUresult cuGraphDestroyNode(CUgraphNode node) { return result(mcGraphNodeDestroy(own(node))); }
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  const char* kind = nullptr;
  RETURN_IF_NULL(type);
  RETURN_IF_WRONG(mcGraphNodeKind(own(node), &kind));
  *type = static_cast<CUgraphNodeType>(nodeType(kind));
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return result(mcGraphGetNodes(own(graph), own(nodes), count));
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return result(mcGraphRootNodes(own(graph), own(nodes), count));
}
CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned int flags) {
  constexpr unsigned int kKnownFlags = 0x1ffff;  // each of them asks for details
  RETURN_IF_WRONG(checkFlags(flags, kKnownFlags));
  return result(mcGraphDebugDotPrint(own(graph), path, flags != 0 ? 1 : 0));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  RETURN_IF_WRONG(checkFlags(flags, kInstantiateFlags));
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return result(mcSetLastError(mcErrorNotSupported, "graphs that device code launches"));
  }
  RETURN_IF_WRONG(mcGraphInstantiate(own(exec), own(graph)));
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) mcGraphExecFreesFirst(own(*exec));
  return result(mcGraphExecSetFlags(own(*exec), flags));
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  RETURN_IF_NULL(params);
  params->hErrNode_out = nullptr;
  const CUresult error = cuGraphInstantiateWithFlags(exec, graph, params->flags);
  params->result_out = error == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  const bool uploads = error == CUDA_SUCCESS && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  return uploads ? cuGraphUpload(*exec, params->hUploadStream) : error;
}
CUresult cuGraphExecGetFlags(CUgraphExec exec, unsigned long long* flags) {
  return result(mcGraphExecGetFlags(own(exec), flags));
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  RETURN_IF_NULL(info);
  mcGraphUpdateResult update = mcGraphUpdateError;
  mcGraphNode_t node = nullptr;
  const mcError_t error = mcGraphExecUpdate(own(exec), own(graph), &update, &node);
  *info = {static_cast<CUgraphExecUpdateResult>(update), reinterpret_cast<CUgraphNode>(node), nullptr};
  return result(error);
}

// ---- Edges ----------------------------------------------------------------------------------------------------------

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges, size_t* count) {
  return ask(edges, count, [&] { return mcGraphEdges(own(graph), own(from), own(to), count); });
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* dependencies, CUgraphEdgeData* edges,
                                       size_t* count) {
  return ask(edges, count, [&] { return mcGraphNodeDependencies(own(node), own(dependencies), count); });
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* dependents, CUgraphEdgeData* edges,
                                         size_t* count) {
  return ask(edges, count, [&] { return mcGraphNodeDependents(own(node), own(dependents), count); });
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edges, size_t count) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return result(mcGraphAddDependencies(own(graph), own(from), own(to), count));
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edges, size_t count) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return result(mcGraphRemoveDependencies(own(graph), own(from), own(to), count));
}

// ---- Nodes ----------------------------------------------------------------------------------------------------------

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS* params) {
  return add(node, graph, dependencies, count, params);
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* params, CUcontext context) {
  RETURN_IF_WRONG(checkNodeContext(context));
  return add(node, graph, dependencies, count, params);
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  RETURN_IF_WRONG(checkNodeContext(context));
  return add(node, graph, dependencies, count, params);
}
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* params) {
  return add(node, graph, dependencies, count, params);
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                   CUevent event) {
  const Record record{event};
  return add(node, graph, dependencies, count, &record);
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                 CUevent event) {
  const Wait wait{event};
  return add(node, graph, dependencies, count, &wait);
}
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
  return result(mcGraphAddEmpty(own(graph), own(dependencies), count, own(node)));
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                  CUgraph child) {
  return result(mcGraphAddChild(own(graph), own(dependencies), count, own(child), own(node)));
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return result(mcGraphChild(own(node), own(graph)));
}
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext context,
                                        unsigned int defaultLaunchValue, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, CU_GRAPH_COND_ASSIGN_DEFAULT));
  RETURN_IF_WRONG(checkNodeContext(context));
  return result(mcGraphConditionCreate(handle, own(graph), defaultLaunchValue, flags == CU_GRAPH_COND_ASSIGN_DEFAULT));
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  RETURN_IF_WRONG(checkAllocation(params));
  int current = 0;
  RETURN_IF_WRONG(mcGetDevice(&current));
  RETURN_IF_WRONG(mcSetDevice(params->poolProps.location.id));
  CUDA_MEM_ALLOC_NODE_PARAMS made = *params;
  const auto submit = [](mcStream_t stream, void* data) {
    auto& wanted = *static_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(data);
    void* memory = nullptr;
    const mcError_t error = mcMallocAsync(&memory, wanted.bytesize, stream);
    wanted.dptr = pointer(memory);
    return error;
  };
  const mcError_t error = mcGraphRecord(own(graph), own(dependencies), count, submit, &made, own(node));
  mcSetDevice(current);
  RETURN_IF_WRONG(error);
  params->dptr = made.dptr;
  made.accessDescs = nullptr;  // the program's array
  made.accessDescCount = 0;
  return result(mcGraphNodeDescribe(own(*node), &made, sizeof made));
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return show(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params);
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                               CUdeviceptr pointer) {
  const Free free{pointer};
  return pointer == 0 ? CUDA_ERROR_INVALID_VALUE : add(node, graph, dependencies, count, &free);
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* pointer) {
  Free free{};
  const CUresult error = show(node, CU_GRAPH_NODE_TYPE_MEM_FREE, pointer == nullptr ? nullptr : &free);
  if (error == CUDA_SUCCESS) *pointer = free.pointer;
  return error;
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  RETURN_IF_WRONG(checkEdges(edges, count));
  return addAny(node, graph, dependencies, count, params);
}

// ---- What nodes do --------------------------------------------------------------------------------------------------

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  RETURN_IF_WRONG(check(node, CU_GRAPH_NODE_TYPE_KERNEL, params));
  mcKernelLaunch launch{};
  RETURN_IF_WRONG(mcGraphKernelLaunch(own(node), &launch));
  *params = {};
  params->func = reinterpret_cast<CUfunction>(const_cast<void*>(launch.hostFunction));
  params->gridDimX = launch.grid.x;
  params->gridDimY = launch.grid.y;
  params->gridDimZ = launch.grid.z;
  params->blockDimX = launch.block.x;
  params->blockDimY = launch.block.y;
  params->blockDimZ = launch.block.z;
  params->sharedMemBytes = static_cast<unsigned>(launch.sharedBytes);
  params->kernelParams = launch.arguments;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
  return result(setNodeAttribute(own(node), attribute, reinterpret_cast<const cudaLaunchAttributeValue*>(value)));
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue* value) {
  return result(getNodeAttribute(own(node), attribute, reinterpret_cast<cudaLaunchAttributeValue*>(value)));
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  return result(copyNodeAttributes(own(to), own(from)));
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  return show(node, CU_GRAPH_NODE_TYPE_MEMCPY, params);
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  return show(node, CU_GRAPH_NODE_TYPE_MEMSET, params);
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  return show(node, CU_GRAPH_NODE_TYPE_HOST, params);
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  Record record{};
  const CUresult error = show(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event == nullptr ? nullptr : &record);
  if (error == CUDA_SUCCESS) *event = record.event;
  return error;
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  Wait wait{};
  const CUresult error = show(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event == nullptr ? nullptr : &wait);
  if (error == CUDA_SUCCESS) *event = wait.event;
  return error;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return replace(node, params);
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) { return replace(node, params); }
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return replace(node, params);
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return replace(node, params);
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  const Record record{event};
  return replace(node, &record);
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  const Wait wait{event};
  return replace(node, &wait);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return replace(exec, node, params);
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                        CUcontext context) {
  RETURN_IF_WRONG(checkNodeContext(context));
  return replace(exec, node, params);
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
                                        CUcontext context) {
  RETURN_IF_WRONG(checkNodeContext(context));
  return replace(exec, node, params);
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return replace(exec, node, params);
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  const Record record{event};
  return replace(exec, node, &record);
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  const Wait wait{event};
  return replace(exec, node, &wait);
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return result(mcGraphExecReplaceChild(own(exec), own(node), own(child)));
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return setAny(params, [node](const auto* work) { return replace(node, work); });
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  if (params != nullptr && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    return cuGraphExecChildGraphNodeSetParams(exec, node, params->graph.graph);
  }
  return setAny(params, [exec, node](const auto* work) { return replace(exec, node, work); });
}
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  return result(mcGraphExecEnable(own(exec), own(node), enabled != 0));
}
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int* enabled) {
  int value = 0;
  RETURN_IF_NULL(enabled);
  RETURN_IF_WRONG(mcGraphExecEnabled(own(exec), own(node), &value));
  *enabled = value != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

// ---- Objects that live as long as a graph ---------------------------------------------------------------------------

CUresult cuUserObjectCreate(CUuserObject* object, void* pointer, CUhostFn destroy, unsigned int references,
                            unsigned int flags) {
  RETURN_IF_WRONG(valueError(flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  return result(mcUserObjectCreate(own(object), pointer, destroy, references));
}
CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  return result(mcUserObjectRetain(own(object), count));
}
CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  return result(mcUserObjectRelease(own(object), count));
}
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, CU_GRAPH_USER_OBJECT_MOVE));
  return result(mcGraphRetainUserObject(own(graph), own(object), count, flags == CU_GRAPH_USER_OBJECT_MOVE));
}
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  return result(mcGraphReleaseUserObject(own(graph), own(object), count));
}

// The first forms, for programs of before CUDA 12.3, and for callers that look symbols up by name.
#undef cuGraphGetEdges
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuGraphAddDependencies
#undef cuGraphRemoveDependencies
#undef cuGraphAddNode
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* dependencies, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, dependencies, nullptr, count);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* dependents, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, dependents, nullptr, count);
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* params) {
  return addAny(node, graph, dependencies, count, params);
}

}  // extern "C"
#pragma GCC visibility pop
