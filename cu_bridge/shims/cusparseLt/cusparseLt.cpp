// cuSPARSELt: version only.

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

extern "C" int cusparseLtGetVersion(const void*, int* version) {
  *version = MXMACA_CUDA_MAJOR == 12 ? 602 : 801;
  return 0;
}
#pragma GCC visibility pop
