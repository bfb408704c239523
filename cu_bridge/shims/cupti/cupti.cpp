// CUPTI: statuses, and the end. Activity records are in activity.cpp, subscriptions in callbacks.cpp. What would have
// to return a measured value (events, metrics) is refused.

#include <cstddef>
#include <cstdint>

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

// A call of the runtime for a profiler's question leaves no error to the program.
int found(mcError_t error) {
  if (error == mcSuccess) return kSuccess;
  mcGetLastError();
  return kInvalidParameter;
}

#define NOT_SUPPORTED(name) \
  int name(void) { return kNotSupported; }
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

// The numbers that records of kernels, copies and fills carry.
int cuptiGetGraphId(void* graph, uint32_t* id) { return found(mcGraphGetId(static_cast<mcGraph_t>(graph), id)); }
int cuptiGetGraphExecId(void* exec, uint32_t* id) {
  return found(mcGraphExecGetId(static_cast<mcGraphExec_t>(exec), id));
}
int cuptiGetGraphNodeId(void* node, uint64_t* id) {
  unsigned long long number = 0;
  const int status =
      id == nullptr ? kInvalidParameter : found(mcGraphNodeGetId(static_cast<mcGraphNode_t>(node), &number));
  if (status == kSuccess) *id = number;
  return status;
}
int cuptiGetContextId(void* context, uint32_t* id) {
  if (context == nullptr || id == nullptr) return kInvalidParameter;
  *id = kContext;
  return kSuccess;
}

// Where in a kernel the time goes: there is no program counter to be sampled.
NOT_SUPPORTED(cuptiPCSamplingEnable)
NOT_SUPPORTED(cuptiPCSamplingDisable)
NOT_SUPPORTED(cuptiPCSamplingStart)
NOT_SUPPORTED(cuptiPCSamplingStop)
NOT_SUPPORTED(cuptiPCSamplingGetData)
NOT_SUPPORTED(cuptiPCSamplingGetNumStallReasons)
NOT_SUPPORTED(cuptiPCSamplingGetStallReasons)
NOT_SUPPORTED(cuptiPCSamplingSetConfigurationAttribute)
NOT_SUPPORTED(cuptiGetCubinCrc)
NOT_SUPPORTED(cuptiGetSassToSourceCorrelation)

// The end of whatever was asked for; a program may begin again.
int cuptiFinalize(void) {
  endCallbacks();
  endActivities();
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
