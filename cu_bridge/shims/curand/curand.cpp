// cuRAND: version only. Upstream links the library and calls nothing of it.

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

extern "C" int curandGetVersion(int* version) {
  *version = MXMACA_CUDA_MAJOR == 12 ? 10305 : 10400;
  return 0;
}
#pragma GCC visibility pop
