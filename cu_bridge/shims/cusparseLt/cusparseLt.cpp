// cuSPARSELt: version only.

#pragma GCC visibility push(default)
#include "mxmaca/versions/cusparselt.h"

namespace {
enum Status { kNotInitialized = 1, kInvalidValue = 3 };
}

extern "C" int cusparseLtGetVersion(const void* handle, int* version) {
  if (handle == nullptr) return kNotInitialized;
  if (version == nullptr) return kInvalidValue;
  *version = CUSPARSELT_VERSION;
  return 0;
}
#pragma GCC visibility pop
