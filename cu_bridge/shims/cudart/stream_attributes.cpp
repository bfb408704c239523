// Attributes of streams.
//
// Each is a preference: which memory a cache keeps, how the host waits, which stream goes first, which fences order
// what. The order in which work runs here is one that every preference allows, so a value is checked, kept, and given
// back.

#include <map>
#include <mutex>

#include "convert.h"

namespace {

// A stream's id is never given twice, unlike its handle.
using Key = std::pair<unsigned long long, int>;
std::mutex mutex;
std::map<Key, cudaLaunchAttributeValue>& values() {
  static auto* const all = new std::map<Key, cudaLaunchAttributeValue>;  // streams may be used while the process ends
  return *all;
}

cudaLaunchAttributeValue defaultOf(int attribute) {
  cudaLaunchAttributeValue value{};
  if (attribute == cudaLaunchAttributeSynchronizationPolicy) value.syncPolicy = cudaSyncPolicyAuto;
  if (attribute == cudaLaunchAttributeMemSyncDomainMap) value.memSyncDomainMap.remote = 1;
  return value;
}

bool isOfStreams(int attribute) {
  return attribute == cudaLaunchAttributeAccessPolicyWindow || attribute == cudaLaunchAttributeSynchronizationPolicy ||
         attribute == cudaLaunchAttributePriority || attribute == cudaLaunchAttributeMemSyncDomainMap ||
         attribute == cudaLaunchAttributeMemSyncDomain;
}

// Of a window: the device keeps no lines of its cache apart, so the largest one has no bytes.
bool isWindow(const cudaAccessPolicyWindow& window) {
  const bool properties = window.hitProp >= cudaAccessPropertyNormal &&
                          window.hitProp <= cudaAccessPropertyPersisting &&
                          window.missProp >= cudaAccessPropertyNormal && window.missProp <= cudaAccessPropertyStreaming;
  return properties && window.hitRatio >= 0 && window.hitRatio <= 1 && window.num_bytes == 0;
}

bool isValue(int attribute, const cudaLaunchAttributeValue& value) {
  switch (attribute) {
    case cudaLaunchAttributeAccessPolicyWindow: return isWindow(value.accessPolicyWindow);
    case cudaLaunchAttributeSynchronizationPolicy:
      return value.syncPolicy >= cudaSyncPolicyAuto && value.syncPolicy <= cudaSyncPolicyBlockingSync;
    case cudaLaunchAttributeMemSyncDomain: return value.memSyncDomain <= cudaLaunchMemSyncDomainRemote;
    default: return true;
  }
}

// The stream's own priority stands until the attribute is set.
mcError_t valueOf(mcStream_t stream, int attribute, cudaLaunchAttributeValue* value) {
  unsigned long long id = 0;
  const mcError_t error = mcStreamGetId(stream, &id);
  if (error != mcSuccess) return error;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = values().find({id, attribute});
  *value = found == values().end() ? defaultOf(attribute) : found->second;
  if (found == values().end() && attribute == cudaLaunchAttributePriority) {
    return mcStreamGetPriority(stream, &value->priority);
  }
  return mcSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
  unsigned long long id = 0;
  const mcError_t error = mcStreamGetId(own(stream), &id);
  if (error != mcSuccess) return result(error);
  if (value == nullptr || !isOfStreams(attribute) || !isValue(attribute, *value)) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(mutex);
  values()[{id, attribute}] = *value;
  return cudaSuccess;
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
  if (value == nullptr || !isOfStreams(attribute)) return fail(mcErrorInvalidValue);
  return result(valueOf(own(stream), attribute, value));
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  unsigned long long source = 0, target = 0;
  mcError_t error = mcStreamGetId(own(from), &source);
  if (error == mcSuccess) error = mcStreamGetId(own(to), &target);
  if (error != mcSuccess) return result(error);
  const std::lock_guard<std::mutex> lock(mutex);
  for (int attribute = 0; attribute <= cudaLaunchAttributeMemSyncDomain; ++attribute) {
    const auto found = values().find({source, attribute});
    if (found != values().end()) {
      values()[{target, attribute}] = found->second;
    } else {
      values().erase({target, attribute});
    }
  }
  return cudaSuccess;
}

cudaError_t cudaCtxResetPersistingL2Cache(void) { return result(mcStickyError()); }

}  // extern "C"
#pragma GCC visibility pop
