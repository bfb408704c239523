// What cuSOLVER's handles and parameters are.
#pragma once

#include "blas.h"

#pragma GCC visibility push(default)
#include "cusolverDn.h"
#pragma GCC visibility pop

// What the Jacobi methods would stop at. LAPACK's methods converge to the last place, and sort.
struct JacobiLimits {
  double tolerance = 0;
  int sweeps = 100;
  int sort = 1;
};
struct syevjInfo : JacobiLimits {};
struct gesvdjInfo : JacobiLimits {};
struct cusolverDnParams {
  int algorithms[2] = {};
};

MXMACA_OBJECT(cusolverDnContext, Cusolver);
MXMACA_OBJECT(syevjInfo, CusolverSyevj);
MXMACA_OBJECT(gesvdjInfo, CusolverGesvdj);
MXMACA_OBJECT(cusolverDnParams, CusolverParameters);
MXMACA_ANSWERS(cusolverStatus_t, CUSOLVER_STATUS_SUCCESS, CUSOLVER_STATUS_NOT_INITIALIZED,
               CUSOLVER_STATUS_INVALID_VALUE, CUSOLVER_STATUS_ALLOC_FAILED, CUSOLVER_STATUS_EXECUTION_FAILED);
MXMACA_RANGE(cusolverEigMode_t, CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR);
MXMACA_RANGE(cusolverEigType_t, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_TYPE_3);

namespace mxmaca {
namespace cusolver {

using Status = cusolverStatus_t;
using Index = int64_t;
constexpr Status kInvalidValue = CUSOLVER_STATUS_INVALID_VALUE;
constexpr Status kNotSupported = CUSOLVER_STATUS_NOT_SUPPORTED;

}  // namespace cusolver
}  // namespace mxmaca
