// cuSOLVER: handles work, computation is refused.

#include "handle.h"

#pragma GCC visibility push(default)
#include "cusolverDn.h"

using mxmaca::handleOf;

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  if (handle == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  return mxmaca::createHandle(handle) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  if (handle == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  mxmaca::destroyHandle(handle);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  handleOf(handle)->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t* stream) {
  if (handle == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  *stream = static_cast<cudaStream_t>(handleOf(handle)->stream);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverGetVersion(int* version) {
  *version = MXMACA_CUDA_MAJOR == 12 ? 11601 : 12000;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
