// cuBLASLt: handles and descriptors exist, computation is refused.

#include "handle.h"

#pragma GCC visibility push(default)
#include "cublasLt.h"

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return mxmaca::createHandle(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  mxmaca::destroyHandle(handle);
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion(void) { return MXMACA_CUDA_MAJOR == 12 ? 120405 : 130100; }

}  // extern "C"
#pragma GCC visibility pop
