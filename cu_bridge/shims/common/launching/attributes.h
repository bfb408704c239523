// What the attributes of a launch ask for: both interfaces have the same ones. See Note [Launch attributes].
//
// Note [Launch attributes]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// An attribute asks for one of three things. Something that a program sees: a grid whose blocks all run at once, an
// event that is recorded. That is done, or refused where the device has none of it (clusters need compute capability
// 9.0, and this device has 8.0). A preference: caches, priorities, when the next kernel may begin. The order in which
// work runs here is one that every preference allows. And something that is no attribute, or no value of one: an error.
#pragma once

#include "checks.h"
#include "mc_runtime.h"
#include "own.h"

#pragma GCC visibility push(default)
#include "cuda_runtime_api.h"
#pragma GCC visibility pop

namespace mxmaca {

// What the attributes of a launch ask for.
struct LaunchWishes {
  bool cooperative = false;
  cudaEvent_t recorded[2] = {};  // after the launch
  int events = 0;
};

inline mcError_t checkCluster(const mcDim3& grid, unsigned int x, unsigned int y, unsigned int z) {
  if (x == 0 || y == 0 || z == 0) return mcErrorInvalidValue;
  if (grid.x % x != 0 || grid.y % y != 0 || grid.z % z != 0) {
    return mcErrorInvalidClusterSize;
  }
  return x * y * z == 1 ? mcSuccess : mcErrorNotSupported;
}

// The event is recorded when the launch's blocks have run, which is when the launch returns.
inline mcError_t addEvent(LaunchWishes* wishes, cudaEvent_t event, int flags, bool triggerKnown) {
  if (flags < 0 || flags > cudaEventRecordExternal || !triggerKnown) return mcErrorInvalidValue;
  if (flags != 0) return mcErrorNotSupported;
  if (wishes->events == 2) return mcErrorInvalidValue;  // one of each kind
  wishes->recorded[wishes->events++] = event;
  return mcSuccess;
}

inline mcError_t readAttribute(const mcDim3& grid, const cudaLaunchAttribute& attribute, LaunchWishes* wishes) {
  const cudaLaunchAttributeValue& value = attribute.val;
  switch (static_cast<int>(attribute.id)) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap: return mcSuccess;
    case cudaLaunchAttributeCooperative:
      wishes->cooperative = value.cooperative != 0;
      return valueError(value.cooperative == 0 || value.cooperative == 1);
    case cudaLaunchAttributeSynchronizationPolicy: return valueError(value.syncPolicy >= 1 && value.syncPolicy <= 4);
    case cudaLaunchAttributeClusterDimension:
      return checkCluster(grid, value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
    case cudaLaunchAttributePreferredClusterDimension:
      return checkCluster(grid, value.preferredClusterDim.x, value.preferredClusterDim.y, value.preferredClusterDim.z);
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      return valueError(value.clusterSchedulingPolicyPreference >= 0 && value.clusterSchedulingPolicyPreference <= 2);
    case cudaLaunchAttributeProgrammaticStreamSerialization:
      return valueError(value.programmaticStreamSerializationAllowed == 0 ||
                        value.programmaticStreamSerializationAllowed == 1);
    case cudaLaunchAttributeProgrammaticEvent: {
      const int trigger = value.programmaticEvent.triggerAtBlockStart;
      return addEvent(wishes, value.programmaticEvent.event, value.programmaticEvent.flags,
                      trigger == 0 || trigger == 1);
    }
    case cudaLaunchAttributeLaunchCompletionEvent:
      return addEvent(wishes, value.launchCompletionEvent.event, value.launchCompletionEvent.flags, true);
    case cudaLaunchAttributeMemSyncDomain: return valueError(value.memSyncDomain == 0 || value.memSyncDomain == 1);
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      return value.deviceUpdatableKernelNode.deviceUpdatable == 0 ? mcSuccess : mcErrorNotSupported;
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
      return valueError(value.sharedMemCarveout <= 100 || value.sharedMemCarveout == ~0U);
    case cudaLaunchAttributeNvlinkUtilCentricScheduling: return valueError(value.nvlinkUtilCentricScheduling <= 1);
    default: return mcErrorInvalidValue;
  }
}

// Reads all of them. `detail`: what is to be said about a refusal.
inline mcError_t readAttributes(const mcDim3& grid, const cudaLaunchAttribute* attributes, unsigned int count,
                                LaunchWishes* wishes, const char** detail) {
  *detail = nullptr;
  if (count != 0 && attributes == nullptr) return mcErrorInvalidValue;
  for (unsigned int i = 0; i < count; ++i) {
    const mcError_t error = readAttribute(grid, attributes[i], wishes);
    if (error == mcErrorNotSupported) *detail = "an attribute of a launch that this device does not have";
    if (error != mcSuccess) return error;
  }
  // Unknown events are found before the kernel runs.
  for (int i = 0; i < wishes->events; ++i) {
    const mcError_t error = mcEventCheck(own(wishes->recorded[i]));
    if (error == mcErrorInvalidResourceHandle) return error;
  }
  return mcSuccess;
}

}  // namespace mxmaca
