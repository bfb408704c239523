// cuSOLVER: handles and parameters. What is computed is in families.h.

#include "objects.h"

using namespace mxmaca;
using Status = cusolverStatus_t;

namespace {
template <class Info, class Value>
Status set(Info* info, Value JacobiLimits::* field, Value value, bool valid) {
  MXMACA_REQUIRE(live(info) && valid);
  info->*field = value;
  return CUSOLVER_STATUS_SUCCESS;
}
template <class Info, class Value>
Status get(cusolverDnHandle_t handle, const Info* info, Value* value) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(live(info) && value != nullptr);
  *value = 0;
  return CUSOLVER_STATUS_SUCCESS;
}
}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cusolverDnCreate(cusolverDnHandle_t* handle) { return createHandle<Status>(handle); }
Status cusolverDnDestroy(cusolverDnHandle_t handle) { return destroyHandle<Status>(handle); }
Status cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) { return setStream<Status>(handle, stream); }
Status cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t* stream) {
  return getStream<Status>(handle, stream);
}
Status cusolverDnSetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t mode) {
  return setField<Status>(handle, &LibraryHandle::mathMode, mode,
                          mode == CUSOLVER_DETERMINISTIC_RESULTS || mode == CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS);
}
Status cusolverDnGetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t* mode) {
  MXMACA_RETURN_IF_FAILED(getField<Status>(handle, &LibraryHandle::mathMode, mode));
  if (*mode == 0) *mode = CUSOLVER_DETERMINISTIC_RESULTS;
  return CUSOLVER_STATUS_SUCCESS;
}

Status cusolverDnCreateParams(cusolverDnParams_t* params) { return createDescriptor<Status>(params); }
Status cusolverDnDestroyParams(cusolverDnParams_t params) { return destroyDescriptor<Status>(params); }
Status cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t function, cusolverAlgMode_t algorithm) {
  MXMACA_REQUIRE(live(params) && function >= CUSOLVERDN_GETRF && function <= CUSOLVERDN_POTRF);
  MXMACA_REQUIRE(algorithm >= CUSOLVER_ALG_0 && algorithm <= CUSOLVER_ALG_2);
  params->algorithms[function] = algorithm;
  return CUSOLVER_STATUS_SUCCESS;
}
Status cusolverDnCreateSyevjInfo(syevjInfo_t* info) { return createDescriptor<Status>(info); }
Status cusolverDnDestroySyevjInfo(syevjInfo_t info) { return destroyDescriptor<Status>(info); }
Status cusolverDnCreateGesvdjInfo(gesvdjInfo_t* info) { return createDescriptor<Status>(info); }
Status cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info) { return destroyDescriptor<Status>(info); }
// LAPACK's methods stand for Jacobi's: no sweep is made, and what is left off the diagonal is 0.
#define JACOBI_LIMITS(method)                                                                                 \
  Status cusolverDnX##method##SetTolerance(method##Info_t info, double tolerance) {                           \
    return set(info, &JacobiLimits::tolerance, tolerance, tolerance >= 0);                                    \
  }                                                                                                           \
  Status cusolverDnX##method##SetMaxSweeps(method##Info_t info, int sweeps) {                                 \
    return set(info, &JacobiLimits::sweeps, sweeps, sweeps >= 0);                                             \
  }                                                                                                           \
  Status cusolverDnX##method##SetSortEig(method##Info_t info, int sort) {                                     \
    return set(info, &JacobiLimits::sort, sort, sort == 0 || sort == 1);                                      \
  }                                                                                                           \
  Status cusolverDnX##method##GetResidual(cusolverDnHandle_t handle, method##Info_t info, double* residual) { \
    return get(handle, info, residual);                                                                       \
  }                                                                                                           \
  Status cusolverDnX##method##GetSweeps(cusolverDnHandle_t handle, method##Info_t info, int* sweeps) {        \
    return get(handle, info, sweeps);                                                                         \
  }
JACOBI_LIMITS(syevj)
JACOBI_LIMITS(gesvdj)

Status cusolverGetVersion(int* version) { return getVersion<Status>(version, CUSOLVER_VERSION); }
Status cusolverGetProperty(libraryPropertyType type, int* value) {
  return getProperty<Status>(type, value, CUSOLVER_VER_MAJOR, CUSOLVER_VER_MINOR, CUSOLVER_VER_PATCH);
}

}  // extern "C"
#pragma GCC visibility pop
