// cuBLASXt: handles and their settings. Which device computes what, in tiles of which size, changes no value here.

#include "xt.h"

using namespace mxmaca;
using Status = cublasStatus_t;

namespace {

template <class Field, class Value>
Status set(cublasXtHandle_t handle, Field cublasXtContext::* field, Value value, bool good) {
  if (!live(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(good);
  handle->*field = value;
  return CUBLAS_STATUS_SUCCESS;
}
template <class Field>
Status get(cublasXtHandle_t handle, Field cublasXtContext::* field, Field* value) {
  if (!live(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(value != nullptr);
  *value = handle->*field;
  return CUBLAS_STATUS_SUCCESS;
}

bool areDevices(int count, const int* devices) {
  int known = 0;
  if (count <= 0 || devices == nullptr || mcGetDeviceCount(&known) != mcSuccess) return false;
  for (int i = 0; i < count; ++i) {
    if (devices[i] < 0 || devices[i] >= known || std::count(devices, devices + i, devices[i]) != 0) return false;
  }
  return true;
}

// A part of a product on the host is taken for products alone, as documented, and is computed with the rest of it.
Status checkHybrid(cublasXtHandle_t handle, cublasXtBlasOp_t function, cublasXtOpType_t type) {
  if (!live(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(valid(function) && valid(type));
  return function == CUBLASXT_GEMM ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace

MXMACA_EXPORT Status cublasXtCreate(cublasXtHandle_t* handle) {
  MXMACA_REQUIRE(handle != nullptr);
  int count = 0;
  if (mcGetDeviceCount(&count) != mcSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mcCaptureForbids() != mcSuccess) return CUBLAS_STATUS_ALLOC_FAILED;
  auto created = std::unique_ptr<cublasXtContext>(new (std::nothrow) cublasXtContext);
  return createObject(handle, std::move(created)) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
MXMACA_EXPORT Status cublasXtDestroy(cublasXtHandle_t handle) {
  if (!destroyObject(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  mcCaptureForbids();  // its memory is freed: the handle goes, and so does a capture that forbids it
  return CUBLAS_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cublasXtGetNumBoards(int nbDevices, int deviceId[], int* nbBoards) {
  MXMACA_REQUIRE(areDevices(nbDevices, deviceId) && nbBoards != nullptr);
  *nbBoards = nbDevices;
  return CUBLAS_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cublasXtMaxBoards(int* nbGpuBoards) {
  MXMACA_REQUIRE(nbGpuBoards != nullptr);
  return mcGetDeviceCount(nbGpuBoards) == mcSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
MXMACA_EXPORT Status cublasXtDeviceSelect(cublasXtHandle_t handle, int nbDevices, int deviceId[]) {
  if (!live(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(areDevices(nbDevices, deviceId));
  handle->devices.assign(deviceId, deviceId + nbDevices);
  return CUBLAS_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cublasXtSetBlockDim(cublasXtHandle_t handle, int blockDim) {
  return set(handle, &cublasXtContext::blockDim, blockDim, blockDim > 0);
}
MXMACA_EXPORT Status cublasXtGetBlockDim(cublasXtHandle_t handle, int* blockDim) {
  return get(handle, &cublasXtContext::blockDim, blockDim);
}
MXMACA_EXPORT Status cublasXtSetPinningMemMode(cublasXtHandle_t handle, cublasXtPinnedMemMode_t mode) {
  return set(handle, &cublasXtContext::pinning, mode, valid(mode));
}
MXMACA_EXPORT Status cublasXtGetPinningMemMode(cublasXtHandle_t handle, cublasXtPinnedMemMode_t* mode) {
  return get(handle, &cublasXtContext::pinning, mode);
}
MXMACA_EXPORT Status cublasXtSetCpuRoutine(cublasXtHandle_t handle, cublasXtBlasOp_t blasOp, cublasXtOpType_t type,
                                           void* blasFunctor) {
  // The device is the host's processor: a share for a routine of the program's would take nothing off it.
  static_cast<void>(blasFunctor);
  return checkHybrid(handle, blasOp, type);
}
MXMACA_EXPORT Status cublasXtSetCpuRatio(cublasXtHandle_t handle, cublasXtBlasOp_t blasOp, cublasXtOpType_t type,
                                         float ratio) {
  MXMACA_RETURN_IF_FAILED(checkHybrid(handle, blasOp, type));
  MXMACA_REQUIRE(ratio >= 0 && ratio <= 1);
  return CUBLAS_STATUS_SUCCESS;
}
