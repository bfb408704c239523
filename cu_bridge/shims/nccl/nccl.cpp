// NCCL: version, error texts and groups; communicators and collectives are refused.

#include "mc_runtime.h"
#include "refuse.h"

#include <cstdio>

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

namespace {
thread_local const char* lastRefused = "";
}

namespace mxmaca {

long refuse(const char* library, const char* function, int status, const char* statusName) {
  lastRefused = function;
  mcReportRefusal(library, function, statusName);
  return status;
}

}  // namespace mxmaca

extern "C" {

int ncclGetVersion(int* version) {
  if (version == nullptr) return 4;
  *version = MXMACA_CUDA_MAJOR == 12 ? 22105 : 22907;
  return 0;
}

const char* ncclGetErrorString(int status) {
  constexpr const char* kTexts[] = {
      "no error",         "unhandled cuda error", "unhandled system error",      "internal error",
      "invalid argument", "invalid usage",        "remote process exited or there was a network error",
      "NCCL operation in progress"};
  return status >= 0 && status < 8 ? kTexts[status] : "unknown result code";
}

const char* ncclGetLastError(void*) {
  static thread_local char text[160];
  text[0] = '\0';
  if (lastRefused[0] != '\0') {
    std::snprintf(text, sizeof text, "%s is not implemented for the simulated device", lastRefused);
  }
  return text;
}

// A group of no operations is complete.
int ncclGroupStart(void) { return 0; }
int ncclGroupEnd(void) { return 0; }

}  // extern "C"
#pragma GCC visibility pop
