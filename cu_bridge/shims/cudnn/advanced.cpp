// Functions that torch's headers name and its libraries do not need, so that no list generates their refusals.
#include "cudnn.h"
#include "refuse.h"

namespace {

cudnnStatus_t refused(const char* function) {
  return static_cast<cudnnStatus_t>(
      mxmaca::refuse("libcudnn.so.9", function, CUDNN_STATUS_NOT_SUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED"));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cudnnStatus_t cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t, cudnnDataType_t) { return refused(__func__); }

cudnnStatus_t cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t, cudnnDataType_t, cudnnLossNormalizationMode_t,
                                           cudnnNanPropagation_t, int) {
  return refused(__func__);
}

}  // extern "C"
#pragma GCC visibility pop
