// What cuSOLVER's handles and parameters are.
#pragma once

#include "handle.h"

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
