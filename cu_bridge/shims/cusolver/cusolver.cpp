// cuSOLVER: handles and parameters. What is computed is in families.h.

#include "objects.h"

#pragma GCC visibility push(default)

using mxmaca::handleOf;
using mxmaca::live;

namespace {
template <class Info>
cusolverStatus_t create(Info** info) {
  if (info == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  auto created = std::unique_ptr<Info>(new (std::nothrow) Info);
  return mxmaca::createObject(info, std::move(created)) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
template <class Info>
cusolverStatus_t destroy(Info* info) {
  return mxmaca::destroyObject(info) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}
template <class Info, class Field, class Value>
cusolverStatus_t set(Info* info, Field field, Value value, bool valid) {
  if (!live(info) || !valid) return CUSOLVER_STATUS_INVALID_VALUE;
  info->*field = value;
  return CUSOLVER_STATUS_SUCCESS;
}
}  // namespace

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  if (handle == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  return mxmaca::createHandle(handle) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  return mxmaca::destroyHandle(handle) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (!mxmaca::isStream(stream)) return CUSOLVER_STATUS_INVALID_VALUE;
  handleOf(handle)->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t* stream) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (stream == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  *stream = static_cast<cudaStream_t>(handleOf(handle)->stream);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t mode) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (mode != CUSOLVER_DETERMINISTIC_RESULTS && mode != CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS) {
    return CUSOLVER_STATUS_INVALID_VALUE;
  }
  handleOf(handle)->mathMode = mode;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnGetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t* mode) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (mode == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  const int kept = handleOf(handle)->mathMode;
  *mode = kept == 0 ? CUSOLVER_DETERMINISTIC_RESULTS : static_cast<cusolverDeterministicMode_t>(kept);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) { return create(params); }
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) { return destroy(params); }
cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t function,
                                         cusolverAlgMode_t algorithm) {
  const bool known = function >= CUSOLVERDN_GETRF && function <= CUSOLVERDN_POTRF && algorithm >= CUSOLVER_ALG_0 &&
                     algorithm <= CUSOLVER_ALG_2;
  if (!live(params) || !known) {
    return CUSOLVER_STATUS_INVALID_VALUE;
  }
  params->algorithms[function] = algorithm;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t* info) { return create(info); }
cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t info) { return destroy(info); }
cusolverStatus_t cusolverDnXsyevjSetTolerance(syevjInfo_t info, double tolerance) {
  return set(info, &JacobiLimits::tolerance, tolerance, tolerance >= 0);
}
cusolverStatus_t cusolverDnXsyevjSetMaxSweeps(syevjInfo_t info, int sweeps) {
  return set(info, &JacobiLimits::sweeps, sweeps, sweeps >= 0);
}
cusolverStatus_t cusolverDnXsyevjSetSortEig(syevjInfo_t info, int sort) {
  return set(info, &JacobiLimits::sort, sort, sort == 0 || sort == 1);
}
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* info) { return create(info); }
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info) { return destroy(info); }
cusolverStatus_t cusolverDnXgesvdjSetTolerance(gesvdjInfo_t info, double tolerance) {
  return set(info, &JacobiLimits::tolerance, tolerance, tolerance >= 0);
}
cusolverStatus_t cusolverDnXgesvdjSetMaxSweeps(gesvdjInfo_t info, int sweeps) {
  return set(info, &JacobiLimits::sweeps, sweeps, sweeps >= 0);
}
cusolverStatus_t cusolverDnXgesvdjSetSortEig(gesvdjInfo_t info, int sort) {
  return set(info, &JacobiLimits::sort, sort, sort == 0 || sort == 1);
}

cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int* value) {
  int version = 0;
  cusolverGetVersion(&version);
  const int parts[] = {version / 1000, version / 100 % 10, version % 100};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) return CUSOLVER_STATUS_INVALID_VALUE;
  *value = parts[type];
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverGetVersion(int* version) {
  if (version == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  *version = MXMACA_CUDA_MAJOR == 12 ? 11601 : 12000;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
