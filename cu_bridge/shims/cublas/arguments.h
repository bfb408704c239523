// Arguments of cuBLAS's functions. Scalars are read through their pointers whatever the pointer mode: simulated device
// memory is memory of the host, and work is complete when its launch returns.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "blas.h"
#include "gemm.h"
#include "numbers.h"

namespace mxmaca {
namespace cublas {

using Status = cublasStatus_t;
using Index = int64_t;

constexpr Status kInvalidValue = CUBLAS_STATUS_INVALID_VALUE;
constexpr Status kNotSupported = CUBLAS_STATUS_NOT_SUPPORTED;
inline bool known(cudaDataType type) { return elementBytes(type) != 0; }

using mxmaca::valid;
inline bool valid(cublasGemmAlgo_t algorithm) {
  return (algorithm >= CUBLAS_GEMM_DEFAULT && algorithm <= CUBLAS_GEMM_ALGO23) ||
         (algorithm >= CUBLAS_GEMM_DEFAULT_TENSOR_OP && algorithm <= CUBLAS_GEMM_ALGO15_TENSOR_OP) ||
         algorithm == CUBLAS_GEMM_AUTOTUNE;
}
// BLAS walks a vector with a negative increment from its far end.
inline Index first(Index n, Index increment) { return increment < 0 ? (1 - n) * increment : 0; }

}  // namespace cublas
}  // namespace mxmaca
