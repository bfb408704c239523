// Attributes of streams and of graphs' kernel nodes: both interfaces have the same ones, and what one sets the other
// sees.
//
// But for a cooperative grid each is a preference: which memory a cache keeps, how the host waits, which work goes
// first, which fences order what. The order in which work runs here is one that every preference allows, so a value is
// checked, kept, and given back.
#pragma once

#include <algorithm>
#include <iterator>

#include "attributes.h"
#include "graph_nodes.h"

namespace mxmaca {

inline cudaLaunchAttributeValue defaultAttribute(int attribute) {
  cudaLaunchAttributeValue value{};
  if (attribute == cudaLaunchAttributeSynchronizationPolicy) value.syncPolicy = cudaSyncPolicyAuto;
  if (attribute == cudaLaunchAttributeMemSyncDomainMap) value.memSyncDomainMap.remote = 1;
  if (attribute == cudaLaunchAttributeClusterDimension) value.clusterDim = {1, 1, 1};
  if (attribute == cudaLaunchAttributePreferredClusterDimension) value.preferredClusterDim = {1, 1, 1};
  if (attribute == cudaLaunchAttributePreferredSharedMemoryCarveout) value.sharedMemCarveout = ~0U;
  return value;
}

constexpr int kStreamAttributes[] = {cudaLaunchAttributeAccessPolicyWindow, cudaLaunchAttributeSynchronizationPolicy,
                                     cudaLaunchAttributePriority, cudaLaunchAttributeMemSyncDomainMap,
                                     cudaLaunchAttributeMemSyncDomain};
// The first may fail where the others are copied, so that nothing of a copy is left behind.
constexpr int kNodeAttributes[] = {cudaLaunchAttributeCooperative,
                                   cudaLaunchAttributeAccessPolicyWindow,
                                   cudaLaunchAttributeClusterDimension,
                                   cudaLaunchAttributeClusterSchedulingPolicyPreference,
                                   cudaLaunchAttributePriority,
                                   cudaLaunchAttributeMemSyncDomainMap,
                                   cudaLaunchAttributeMemSyncDomain,
                                   cudaLaunchAttributePreferredClusterDimension,
                                   cudaLaunchAttributeDeviceUpdatableKernelNode,
                                   cudaLaunchAttributePreferredSharedMemoryCarveout,
                                   cudaLaunchAttributeNvlinkUtilCentricScheduling};
template <size_t count>
bool isAmong(const int (&attributes)[count], int attribute) {
  return std::find(std::begin(attributes), std::end(attributes), attribute) != std::end(attributes);
}

// Of a window: the device keeps no lines of its cache apart, so the largest one has no bytes.
inline bool isWindow(const cudaAccessPolicyWindow& window) {
  const bool properties = window.hitProp >= cudaAccessPropertyNormal &&
                          window.hitProp <= cudaAccessPropertyPersisting &&
                          window.missProp >= cudaAccessPropertyNormal && window.missProp <= cudaAccessPropertyStreaming;
  return properties && window.hitRatio >= 0 && window.hitRatio <= 1 && window.num_bytes == 0;
}

inline mcError_t checkAttribute(mcDim3 grid, int attribute, const cudaLaunchAttributeValue& value,
                                LaunchWishes* wishes) {
  mcError_t error = readAttribute(grid, {static_cast<cudaLaunchAttributeID>(attribute), {}, value}, wishes);
  if (attribute == cudaLaunchAttributeAccessPolicyWindow && !isWindow(value.accessPolicyWindow)) {
    error = mcErrorInvalidValue;
  }
  if (error == mcSuccess) return error;
  return mcSetLastError(error, error == mcErrorNotSupported ? "an attribute that this device does not have" : nullptr);
}
inline mcError_t wrong() { return mcSetLastError(mcErrorInvalidValue, nullptr); }

// ---- Streams --------------------------------------------------------------------------------------------------------

inline mcError_t setStreamAttribute(mcStream_t stream, int attribute, const cudaLaunchAttributeValue* value) {
  unsigned long long id = 0;
  mcError_t error = mcStreamGetId(stream, &id);
  if (error != mcSuccess) return error;
  if (value == nullptr || !isAmong(kStreamAttributes, attribute)) return wrong();
  LaunchWishes wishes;
  error = checkAttribute({1, 1, 1}, attribute, *value, &wishes);
  return error != mcSuccess ? error : mcStreamKeep(stream, attribute, value, sizeof *value);
}

// The stream's own priority stands until the attribute is set.
inline mcError_t getStreamAttribute(mcStream_t stream, int attribute, cudaLaunchAttributeValue* value) {
  if (value == nullptr || !isAmong(kStreamAttributes, attribute)) return wrong();
  const mcError_t error = mcStreamKept(stream, attribute, value, sizeof *value);
  if (error != mcErrorNotSupported) return error;
  *value = defaultAttribute(attribute);
  return attribute == cudaLaunchAttributePriority ? mcStreamGetPriority(stream, &value->priority) : mcSuccess;
}

inline mcError_t copyStreamAttributes(mcStream_t to, mcStream_t from) {
  for (const int attribute : kStreamAttributes) {
    cudaLaunchAttributeValue value{};
    mcError_t error = mcStreamKept(from, attribute, &value, sizeof value);
    if (error != mcSuccess && error != mcErrorNotSupported) return error;
    error = mcStreamKeep(to, attribute, &value, error == mcSuccess ? sizeof value : 0);
    if (error != mcSuccess) return error;
  }
  return mcSuccess;
}

// ---- Kernel nodes of graphs -----------------------------------------------------------------------------------------

struct CooperativeLaunch {
  static mcError_t submit(mcStream_t stream, const mcKernelLaunch& kernel) {
    return mcLaunchCooperative(kernel.hostFunction, kernel.grid, kernel.block, kernel.arguments, kernel.sharedBytes,
                               stream);
  }
  static mcError_t describe(mcGraphNode_t node, const mcKernelLaunch&) { return mcGraphNodeDescribe(node, nullptr, 0); }
};

// InvalidValue: it is no node that launches a kernel of the program's.
inline mcError_t kernelOf(mcGraphNode_t node, mcKernelLaunch* launch) {
  const mcError_t error = mcGraphKernelLaunch(node, launch);
  return error == mcErrorInvalidDeviceFunction ? wrong() : error;
}

inline mcError_t setNodeAttribute(mcGraphNode_t node, int attribute, const cudaLaunchAttributeValue* value) {
  mcKernelLaunch launch{};
  mcError_t error = kernelOf(node, &launch);
  if (error != mcSuccess) return error;
  if (value == nullptr || !isAmong(kNodeAttributes, attribute)) return wrong();
  LaunchWishes wishes;
  error = checkAttribute(launch.grid, attribute, *value, &wishes);
  if (error != mcSuccess) return error;
  if (attribute != cudaLaunchAttributeCooperative) return mcGraphNodeKeep(node, attribute, value, sizeof *value);
  if (wishes.cooperative == (launch.cooperative != 0)) return mcSuccess;
  if (!wishes.cooperative) {
    return mcSetLastError(mcErrorNotSupported, "a node of a graph that is cooperative no longer");
  }
  return GraphNodes<CooperativeLaunch>::replace(node, &launch);
}

inline mcError_t getNodeAttribute(mcGraphNode_t node, int attribute, cudaLaunchAttributeValue* value) {
  mcKernelLaunch launch{};
  mcError_t error = kernelOf(node, &launch);
  if (error != mcSuccess) return error;
  if (value == nullptr || !isAmong(kNodeAttributes, attribute)) return wrong();
  error = mcGraphNodeKept(node, attribute, value, sizeof *value);
  if (error != mcErrorNotSupported) return error;
  *value = defaultAttribute(attribute);
  if (attribute == cudaLaunchAttributeCooperative) value->cooperative = launch.cooperative;
  return mcSuccess;
}

inline mcError_t copyNodeAttributes(mcGraphNode_t to, mcGraphNode_t from) {
  mcKernelLaunch launch{};
  mcError_t error = kernelOf(to, &launch);
  for (const int attribute : kNodeAttributes) {
    cudaLaunchAttributeValue value{};
    if (error == mcSuccess) error = getNodeAttribute(from, attribute, &value);
    if (error == mcSuccess) error = setNodeAttribute(to, attribute, &value);
  }
  return error;
}

}  // namespace mxmaca
