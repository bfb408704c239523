// CUPTI: the simulated device's work runs on the host, inside the calls that launch it, and gives no activity records.
// So subscriptions and collections can be started and stopped, and deliver nothing; the profiler then shows the CPU's
// rows. What would have to return a measured value (events, metrics) is refused.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "handle_table.h"
#include "refuse.h"

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

namespace {
enum Status {
  kSuccess = 0,
  kInvalidParameter = 1,
  kParameterSizeNotSufficient = 10,
  kMaxLimitReached = 12,
  kQueueEmpty = 18,
  kInvalidKind = 21,
  kNotSupported = 27,
  kUnknown = 999
};

struct Subscriber {
  void* callback;
  void* userData;
};

mc::HandleTable<Subscriber> subscribers;

// The numbers that this release knows, and those of releases to come within reason: a profiler asks for kinds that it knows.
constexpr int kLastActivityKind = 63;
constexpr int kLastDomain = 6, kLastAttribute = 15, kLastCorrelationKind = 15;

bool isBetween(int least, int number, int most) { return number >= least && number <= most; }
int checkKind(int kind) { return isBetween(1, kind, kLastActivityKind) ? kSuccess : kInvalidKind; }

// Ids that the profiler pushes around a call, by kind.
std::vector<uint64_t>& correlationIds(int kind) {
  static thread_local std::map<int, std::vector<uint64_t>> stacks;
  return stacks[kind];
}
}  // namespace

namespace mxmaca {

// The profiler says on its own what it could not get.
long refuse(const char*, const char*, int status, const char*) { return status; }

}  // namespace mxmaca

extern "C" {

int cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return kInvalidParameter;
  *version = MXMACA_CUDA_MAJOR == 12 ? 22 : 130000;
  return kSuccess;
}

int cuptiGetResultString(int status, const char** text) {
  if (text == nullptr) return kInvalidParameter;
  switch (status) {
    case kSuccess: *text = "CUPTI_SUCCESS"; return kSuccess;
    case kInvalidParameter: *text = "CUPTI_ERROR_INVALID_PARAMETER"; return kSuccess;
    case kParameterSizeNotSufficient: *text = "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT"; return kSuccess;
    case kMaxLimitReached: *text = "CUPTI_ERROR_MAX_LIMIT_REACHED"; return kSuccess;
    case kQueueEmpty: *text = "CUPTI_ERROR_QUEUE_EMPTY"; return kSuccess;
    case kInvalidKind: *text = "CUPTI_ERROR_INVALID_KIND"; return kSuccess;
    case kNotSupported: *text = "CUPTI_ERROR_NOT_SUPPORTED"; return kSuccess;
    case kUnknown: *text = "CUPTI_ERROR_UNKNOWN"; return kSuccess;
    default: return kInvalidParameter;
  }
}

int cuptiSubscribe(Subscriber** subscriber, void* callback, void* userData) {
  if (subscriber == nullptr) return kInvalidParameter;
  *subscriber = subscribers.create(callback, userData);
  return kSuccess;
}
int cuptiUnsubscribe(Subscriber* subscriber) { return subscribers.destroy(subscriber) ? kSuccess : kInvalidParameter; }
int cuptiEnableCallback(uint32_t, Subscriber* subscriber, int domain, uint32_t) {
  return subscribers.contains(subscriber) && isBetween(1, domain, kLastDomain) ? kSuccess : kInvalidParameter;
}
int cuptiEnableDomain(uint32_t, Subscriber* subscriber, int domain) {
  return subscribers.contains(subscriber) && isBetween(1, domain, kLastDomain) ? kSuccess : kInvalidParameter;
}
int cuptiFinalize(void) { return kSuccess; }

int cuptiActivityRegisterCallbacks(void* requestBuffer, void* completeBuffer) {
  return requestBuffer == nullptr || completeBuffer == nullptr ? kInvalidParameter : kSuccess;
}
int cuptiActivityRegisterTimestampCallback(void* callback) {
  return callback == nullptr ? kInvalidParameter : kSuccess;
}
int cuptiActivityEnable(int kind) { return checkKind(kind); }
int cuptiActivityDisable(int kind) { return checkKind(kind); }
int cuptiActivityEnableRuntimeApi(uint32_t, uint8_t) { return kSuccess; }
int cuptiActivityEnableDriverApi(uint32_t, uint8_t) { return kSuccess; }
int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) { return kSuccess; }
int cuptiActivitySetAttribute(int attribute, size_t* size, void* value) {
  if (size == nullptr || value == nullptr || !isBetween(0, attribute, kLastAttribute)) return kInvalidParameter;
  return *size == 0 ? kParameterSizeNotSufficient : kSuccess;
}
int cuptiActivityFlushAll(uint32_t) { return kSuccess; }
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t, void** record) {
  return buffer == nullptr || record == nullptr ? kInvalidParameter : kMaxLimitReached;
}
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  if (dropped == nullptr) return kInvalidParameter;
  *dropped = 0;
  return kSuccess;
}
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  if (!isBetween(1, kind, kLastCorrelationKind)) return kInvalidParameter;
  correlationIds(kind).push_back(id);
  return kSuccess;
}
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  if (!isBetween(1, kind, kLastCorrelationKind)) return kInvalidParameter;
  std::vector<uint64_t>& ids = correlationIds(kind);
  if (ids.empty()) return kQueueEmpty;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
