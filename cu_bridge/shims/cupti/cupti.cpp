// CUPTI: the simulated device's work runs on the host, inside the calls that launch it, and gives no activity records.
// So subscriptions and collections can be started and stopped, and deliver nothing; the profiler then shows the CPU's
// rows. What would have to return a measured value (events, metrics) is refused.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "refuse.h"

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

namespace {
enum Status { kSuccess = 0, kInvalidParameter = 1, kMaxLimitReached = 12, kQueueEmpty = 18, kNotSupported = 27 };

struct Subscriber {
  void* callback;
  void* userData;
};

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
  *text = status == kSuccess            ? "CUPTI_SUCCESS"
          : status == kInvalidParameter ? "CUPTI_ERROR_INVALID_PARAMETER"
          : status == kMaxLimitReached  ? "CUPTI_ERROR_MAX_LIMIT_REACHED"
          : status == kQueueEmpty       ? "CUPTI_ERROR_QUEUE_EMPTY"
          : status == kNotSupported     ? "CUPTI_ERROR_NOT_SUPPORTED"
                                        : "CUPTI_ERROR_UNKNOWN";
  return kSuccess;
}

int cuptiSubscribe(Subscriber** subscriber, void* callback, void* userData) {
  if (subscriber == nullptr) return kInvalidParameter;
  *subscriber = new Subscriber{callback, userData};
  return kSuccess;
}
int cuptiUnsubscribe(Subscriber* subscriber) {
  delete subscriber;
  return kSuccess;
}
int cuptiEnableCallback(uint32_t, Subscriber* subscriber, int, uint32_t) {
  return subscriber == nullptr ? kInvalidParameter : kSuccess;
}
int cuptiEnableDomain(uint32_t, Subscriber* subscriber, int) {
  return subscriber == nullptr ? kInvalidParameter : kSuccess;
}
int cuptiFinalize(void) { return kSuccess; }

int cuptiActivityRegisterCallbacks(void* requestBuffer, void* completeBuffer) {
  return requestBuffer == nullptr || completeBuffer == nullptr ? kInvalidParameter : kSuccess;
}
int cuptiActivityRegisterTimestampCallback(void* callback) {
  return callback == nullptr ? kInvalidParameter : kSuccess;
}
int cuptiActivityEnable(int) { return kSuccess; }
int cuptiActivityDisable(int) { return kSuccess; }
int cuptiActivityEnableRuntimeApi(uint32_t, uint8_t) { return kSuccess; }
int cuptiActivityEnableDriverApi(uint32_t, uint8_t) { return kSuccess; }
int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) { return kSuccess; }
int cuptiActivitySetAttribute(int, size_t* size, void* value) {
  return size == nullptr || value == nullptr ? kInvalidParameter : kSuccess;
}
int cuptiActivityFlushAll(uint32_t) { return kSuccess; }
int cuptiActivityGetNextRecord(uint8_t*, size_t, void**) { return kMaxLimitReached; }
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  if (dropped == nullptr) return kInvalidParameter;
  *dropped = 0;
  return kSuccess;
}
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  correlationIds(kind).push_back(id);
  return kSuccess;
}
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  std::vector<uint64_t>& ids = correlationIds(kind);
  if (ids.empty()) return kQueueEmpty;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
