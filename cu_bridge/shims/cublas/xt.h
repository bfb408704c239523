// cuBLASXt's handle. A handle is one of the library's like any other, with settings of its own.
#pragma once

#include <algorithm>
#include <vector>

#include "blas.h"

#pragma GCC visibility push(default)
#include "cublasXt.h"
#pragma GCC visibility pop

struct cublasXtContext : mxmaca::LibraryHandle {
  int blockDim = 2048;
  cublasXtPinnedMemMode_t pinning = CUBLASXT_PINNING_DISABLED;
  std::vector<int> devices;
};

MXMACA_OBJECT(cublasXtContext, CublasXt);
MXMACA_RANGE(cublasXtPinnedMemMode_t, CUBLASXT_PINNING_DISABLED, CUBLASXT_PINNING_ENABLED);
MXMACA_RANGE(cublasXtOpType_t, CUBLASXT_FLOAT, CUBLASXT_DOUBLECOMPLEX);
MXMACA_RANGE(cublasXtBlasOp_t, CUBLASXT_GEMM, CUBLASXT_TRMM);
