// CUPTI: subscriptions, which can be made and ended and of which no callback is called. Activity records are in
// activity.cpp. What would have to return a measured value (events, metrics) is refused.

#include <cstddef>
#include <cstdint>

#include "handle_table.h"
#include "records.h"
#include "refuse.h"
#include "status.h"

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

using namespace mxmaca::cupti;

namespace {
constexpr mxmaca::StatusName kStatuses[] = {
    MXMACA_STATUS(kSuccess, "CUPTI_SUCCESS"),
    MXMACA_STATUS(kInvalidParameter, "CUPTI_ERROR_INVALID_PARAMETER"),
    MXMACA_STATUS(kParameterSizeNotSufficient, "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT"),
    MXMACA_STATUS(kMaxLimitReached, "CUPTI_ERROR_MAX_LIMIT_REACHED"),
    MXMACA_STATUS(kQueueEmpty, "CUPTI_ERROR_QUEUE_EMPTY"),
    MXMACA_STATUS(kInvalidKind, "CUPTI_ERROR_INVALID_KIND"),
    MXMACA_STATUS(kNotSupported, "CUPTI_ERROR_NOT_SUPPORTED"),
    MXMACA_STATUS(kUnknown, "CUPTI_ERROR_UNKNOWN"),
};

struct Subscriber {
  void* callback;
  void* userData;
};

mc::HandleTable<Subscriber> subscribers;

constexpr int kLastDomain = 6;  // that this release knows
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
  const char* const found = mxmaca::statusText(kStatuses, status, &mxmaca::StatusName::text, nullptr);
  if (found == nullptr) return kInvalidParameter;
  *text = found;
  return kSuccess;
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

}  // extern "C"
#pragma GCC visibility pop
