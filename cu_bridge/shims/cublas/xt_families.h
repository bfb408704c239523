// What each family of xt_functions.txt computes: what cuBLAS's own does, and products with a packed matrix.
#pragma once

#include "families.h"
#include "xt.h"

namespace mxmaca {
namespace cublas {

// A symmetric matrix whose triangle is packed, column after column.
template <class T>
Status spmm(cublasSideMode_t side, cublasFillMode_t uplo, Index m, Index n, const T* alpha, const T* AP, const T* B,
            Index ldb, const T* beta, T* C, Index ldc) {
  MXMACA_REQUIRE(valid(side) && valid(uplo) && m >= 0 && n >= 0 && ldb >= least(m) && ldc >= least(m));
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
  reachData();
  const Index size = m == 0 || n == 0 ? 0 : side == CUBLAS_SIDE_LEFT ? m : n;
  std::vector<T> full(static_cast<size_t>(size * size));
  for (Index j = 0, next = 0; j < size; ++j) {
    const bool lower = uplo == CUBLAS_FILL_MODE_LOWER;
    for (Index i = lower ? j : 0; i < (lower ? size : j + 1); ++i) full[static_cast<size_t>(i + j * size)] = AP[next++];
  }
  return symm(side, uplo, m, n, alpha, full.data(), side == CUBLAS_SIDE_LEFT ? least(m) : least(n), B, ldb, beta, C,
              ldc);
}

}  // namespace cublas
}  // namespace mxmaca
