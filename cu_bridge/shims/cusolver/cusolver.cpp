// cuSOLVER: handles and parameters. What is computed is in families.h.

#include "handle.h"

#pragma GCC visibility push(default)
#include "cusolverDn.h"

using mxmaca::handleOf;

// What the Jacobi methods would stop at. LAPACK's methods converge to the last place, and sort.
struct syevjInfo {
  double tolerance = 0;
  int sweeps = 100;
  int sort = 1;
};
struct gesvdjInfo : syevjInfo {};
struct cusolverDnParams {
  int algorithms[2] = {};
};

namespace {
template <class Info>
cusolverStatus_t create(Info** info) {
  if (info == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  *info = new Info;
  return CUSOLVER_STATUS_SUCCESS;
}
template <class Info>
cusolverStatus_t destroy(Info* info) {
  delete info;
  return CUSOLVER_STATUS_SUCCESS;
}
template <class Info, class Field, class Value>
cusolverStatus_t set(Info* info, Field field, Value value, bool valid) {
  if (info == nullptr || !valid) return CUSOLVER_STATUS_INVALID_VALUE;
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
cusolverStatus_t cusolverDnSetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t mode) {
  if (handle == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (mode != CUSOLVER_DETERMINISTIC_RESULTS && mode != CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS) {
    return CUSOLVER_STATUS_INVALID_VALUE;
  }
  handleOf(handle)->mathMode = mode;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnGetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t* mode) {
  if (handle == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  const int kept = handleOf(handle)->mathMode;
  *mode = kept == 0 ? CUSOLVER_DETERMINISTIC_RESULTS : static_cast<cusolverDeterministicMode_t>(kept);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) { return create(params); }
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) { return destroy(params); }
cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t function,
                                         cusolverAlgMode_t algorithm) {
  if (params == nullptr || function < CUSOLVERDN_GETRF || function > CUSOLVERDN_POTRF) {
    return CUSOLVER_STATUS_INVALID_VALUE;
  }
  params->algorithms[function] = algorithm;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t* info) { return create(info); }
cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t info) { return destroy(info); }
cusolverStatus_t cusolverDnXsyevjSetTolerance(syevjInfo_t info, double tolerance) {
  return set(info, &syevjInfo::tolerance, tolerance, tolerance >= 0);
}
cusolverStatus_t cusolverDnXsyevjSetMaxSweeps(syevjInfo_t info, int sweeps) {
  return set(info, &syevjInfo::sweeps, sweeps, sweeps >= 0);
}
cusolverStatus_t cusolverDnXsyevjSetSortEig(syevjInfo_t info, int sort) {
  return set(info, &syevjInfo::sort, sort, true);
}
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* info) { return create(info); }
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info) { return destroy(info); }
cusolverStatus_t cusolverDnXgesvdjSetTolerance(gesvdjInfo_t info, double tolerance) {
  return set(info, &gesvdjInfo::tolerance, tolerance, tolerance >= 0);
}
cusolverStatus_t cusolverDnXgesvdjSetMaxSweeps(gesvdjInfo_t info, int sweeps) {
  return set(info, &gesvdjInfo::sweeps, sweeps, sweeps >= 0);
}
cusolverStatus_t cusolverDnXgesvdjSetSortEig(gesvdjInfo_t info, int sort) {
  return set(info, &gesvdjInfo::sort, sort, true);
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
