// cuFFT: version only; plans and transforms are refused.

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

extern "C" int cufftGetVersion(int* version) {
  *version = MXMACA_CUDA_MAJOR == 12 ? 11201 : 12000;
  return 0;
}
#pragma GCC visibility pop
