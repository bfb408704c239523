// What cuSOLVER's handles and parameters are.
#pragma once

#include <vector>

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
// How iterative refinement goes. The program has to set solver and precisions.
struct cusolverDnIRSParams {
  cusolverIRSRefinement_t solver = CUSOLVER_IRS_REFINE_NOT_SET;
  cusolverPrecType_t main = {}, lowest = {};
  double tolerance = 0;  // 0: the default, half of the unit in the last place of 1
  int iterations = 50, innerIterations = 50;
  double innerTolerance = 1e-4;
  bool fallsBack = true;
};
// What a refined solution took.
struct cusolverDnIRSInfos {
  int iterations = 0, mostIterations = 0;
  bool wantsHistory = false;
  // Two columns, of one row more than iterations are allowed: the number of iterations, and the norm of the residual.
  std::vector<float> history;
  std::vector<double> wideHistory;
};

MXMACA_OBJECT(cusolverDnContext, Cusolver);
MXMACA_OBJECT(syevjInfo, CusolverSyevj);
MXMACA_OBJECT(gesvdjInfo, CusolverGesvdj);
MXMACA_OBJECT(cusolverDnParams, CusolverParameters);
MXMACA_OBJECT(cusolverDnIRSParams, CusolverRefinement);
MXMACA_OBJECT(cusolverDnIRSInfos, CusolverRefined);
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
