// CUPTI: the simulated device gives no activity records through it. The profiler asks, and goes on with the CPU's.

#include <cstdint>

#include "refuse.h"

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

namespace mxmaca {

// The profiler reports on its own what it could not get; asking is no mistake of the user's.
long refuse(const char*, const char*, int status, const char*) { return status; }

}  // namespace mxmaca

extern "C" {

int cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return 1;
  *version = MXMACA_CUDA_MAJOR == 12 ? 22 : 130000;
  return 0;
}

int cuptiGetResultString(int status, const char** text) {
  if (text == nullptr) return 1;
  *text = status == 0 ? "CUPTI_SUCCESS" : "CUPTI_ERROR_NOT_SUPPORTED";
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
