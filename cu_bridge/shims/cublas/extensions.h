// Families beyond BLAS: batches of factorisations, sums of matrices, and types chosen at run time.
#pragma once

#include "level1.h"
#include "level3.h"

namespace mxmaca {
namespace cublas {

template <class T>
Status geam(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, const T* alpha, const T* A, Index lda,
            const T* beta, const T* B, Index ldb, T* C, Index ldc) {
  MXMACA_REQUIRE(valid(transa) && valid(transb) && m >= 0 && n >= 0 && ldc >= least(m));
  MXMACA_REQUIRE(lda >= least(transa == CUBLAS_OP_N ? m : n) && ldb >= least(transb == CUBLAS_OP_N ? m : n));
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
  // What counts nothing may be missing: callers transpose with beta 0 and no B.
  MXMACA_REQUIRE(m == 0 || n == 0 || (A != nullptr || *alpha == T(0)));
  MXMACA_REQUIRE(m == 0 || n == 0 || (B != nullptr || *beta == T(0)));
  MXMACA_REQUIRE(A != C || (transa == CUBLAS_OP_N && lda == ldc));
  MXMACA_REQUIRE(B != C || (transb == CUBLAS_OP_N && ldb == ldc));
  reachData();
  const auto term = [](T factor, cublasOperation_t op, const T* X, Index ld, Index i, Index j) {
    if (factor == T(0)) return T(0);
    const T value = op == CUBLAS_OP_N ? X[i + j * ld] : X[j + i * ld];
    return factor * (op == CUBLAS_OP_C ? conjugate(value) : value);
  };
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) {
      C[i + j * ldc] = term(*alpha, transa, A, lda, i, j) + term(*beta, transb, B, ldb, i, j);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status dgmm(cublasSideMode_t mode, Index m, Index n, const T* A, Index lda, const T* x, Index incx, T* C, Index ldc) {
  MXMACA_REQUIRE(valid(mode) && m >= 0 && n >= 0 && lda >= least(m) && ldc >= least(m));
  reachData();
  x += first(mode == CUBLAS_SIDE_LEFT ? m : n, incx);
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) {
      C[i + j * ldc] = A[i + j * lda] * x[(mode == CUBLAS_SIDE_LEFT ? i : j) * incx];
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

// LU without row exchanges, for callers that give no room for them. Returns the first zero pivot, from 1, or 0.
template <class T>
int factorWithoutPivots(Index n, T* A, Index lda) {
  reachData();
  int info = 0;
  for (Index k = 0; k < n; ++k) {
    const T pivot = A[k + k * lda];
    if (pivot == T(0)) {
      if (info == 0) info = static_cast<int>(k + 1);
      continue;
    }
    for (Index i = k + 1; i < n; ++i) A[i + k * lda] /= pivot;
    for (Index j = k + 1; j < n; ++j) {
      const T factor = A[k + j * lda];
      for (Index i = k + 1; i < n; ++i) A[i + j * lda] -= A[i + k * lda] * factor;
    }
  }
  return info;
}
template <class T>
int factor(Index n, T* A, Index lda, int* pivots) {
  if (pivots == nullptr) return factorWithoutPivots(n, A, lda);
  std::vector<BlasInt> wide(static_cast<size_t>(n));
  const BlasInt info = MXMACA_BLAS(T, "LAPACKE_?getrf", BlasInt(int, BlasInt, BlasInt, T*, BlasInt, BlasInt*))(
      kColumnMajor, n, n, A, lda, wide.data());
  std::copy(wide.begin(), wide.end(), pivots);
  return static_cast<int>(info);
}
template <class T>
int zeroOnDiagonal(Index n, const T* A, Index lda) {
  for (Index i = 0; i < n; ++i) {
    if (A[i + i * lda] == T(0)) return static_cast<int>(i + 1);
  }
  return 0;
}
template <class T>
Status getrfBatched(Index n, T* const* A, Index lda, int* P, int* info, Index batch) {
  MXMACA_REQUIRE(n >= 0 && lda >= least(n) && batch >= 0 && info != nullptr);
  for (Index i = 0; i < batch; ++i) info[i] = factor(n, at(A, i), lda, P != nullptr ? P + i * n : nullptr);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
void invert(Index n, const T* A, Index lda, const int* P, T* C, Index ldc, int* info) {
  const std::vector<BlasInt> wide = widePivots(P, n);
  for (Index j = 0; j < n; ++j) std::copy(A + j * lda, A + j * lda + n, C + j * ldc);
  *info = zeroOnDiagonal(n, C, ldc);
  if (*info != 0) return;
  *info = static_cast<int>(MXMACA_BLAS(T, "LAPACKE_?getri", BlasInt(int, BlasInt, T*, BlasInt, const BlasInt*))(
      kColumnMajor, n, C, ldc, wide.data()));
}
template <class T>
Status getriBatched(Index n, const T* const* A, Index lda, const int* P, T* const* C, Index ldc, int* info,
                    Index batch) {
  MXMACA_REQUIRE(n >= 0 && lda >= least(n) && ldc >= least(n) && batch >= 0 && info != nullptr);
  for (Index i = 0; i < batch; ++i)
    invert(n, at(A, i), lda, P != nullptr ? P + i * n : nullptr, at(C, i), ldc, info + i);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status getrsBatched(cublasOperation_t trans, Index n, Index nrhs, const T* const* A, Index lda, const int* P,
                    T* const* B, Index ldb, int* info, Index batch) {
  MXMACA_REQUIRE(info != nullptr);
  const auto wrong = [&]() -> int {  // the number of the first wrong argument, as LAPACK counts them
    if (!valid(trans)) return -1;
    if (n < 0) return -2;
    if (nrhs < 0) return -3;
    if (lda < least(n)) return -5;
    if (ldb < least(n)) return -8;
    return batch < 0 ? -10 : 0;
  };
  *info = wrong();
  MXMACA_REQUIRE(*info == 0);
  for (Index i = 0; i < batch; ++i) {
    const std::vector<BlasInt> wide = widePivots(P != nullptr ? P + i * n : nullptr, n);
    MXMACA_BLAS(T, "LAPACKE_?getrs",
                BlasInt(int, char, BlasInt, BlasInt, const T*, BlasInt, const BlasInt*, T*, BlasInt))
    (kColumnMajor, letter(trans), n, nrhs, at(A, i), lda, wide.data(), at(B, i), ldb);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status geqrfBatched(Index m, Index n, T* const* A, Index lda, T* const* Tau, int* info, Index batch) {
  MXMACA_REQUIRE(info != nullptr);
  *info = m < 0 ? -1 : n < 0 ? -2 : lda < least(m) ? -4 : batch < 0 ? -7 : 0;
  MXMACA_REQUIRE(*info == 0);
  for (Index i = 0; i < batch; ++i) {
    MXMACA_BLAS(T, "LAPACKE_?geqrf", BlasInt(int, BlasInt, BlasInt, T*, BlasInt, T*))
    (kColumnMajor, m, n, at(A, i), lda, at(Tau, i));
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status gelsBatched(cublasOperation_t trans, Index m, Index n, Index nrhs, T* const* A, Index lda, T* const* C,
                   Index ldc, int* info, int* devInfo, Index batch) {
  MXMACA_REQUIRE(info != nullptr);
  *info = !valid(trans) ? -1 : m < 0 ? -2 : n < 0 ? -3 : nrhs < 0 ? -4 : lda < least(m) ? -6 : ldc < least(m) ? -8 : 0;
  MXMACA_REQUIRE(*info == 0 && batch >= 0);
  if (trans != CUBLAS_OP_N || m < n) return CUBLAS_STATUS_NOT_SUPPORTED;  // as on the device
  for (Index i = 0; i < batch; ++i) {
    const BlasInt zero =
        MXMACA_BLAS(T, "LAPACKE_?gels", BlasInt(int, char, BlasInt, BlasInt, BlasInt, T*, BlasInt, T*, BlasInt))(
            kColumnMajor, 'N', m, n, nrhs, at(A, i), lda, at(C, i), ldc);
    if (devInfo != nullptr) devInfo[i] = static_cast<int>(zero);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status matinvBatched(Index n, const T* const* A, Index lda, T* const* Ainv, Index ldInverse, int* info, Index batch) {
  MXMACA_REQUIRE(n >= 0 && lda >= least(n) && ldInverse >= least(n) && batch >= 0 && info != nullptr);
  MXMACA_REQUIRE(n <= 32);  // the device's own limit
  std::vector<T> copy(static_cast<size_t>(n * n));
  std::vector<int> pivots(static_cast<size_t>(n));
  for (Index i = 0; i < batch; ++i) {
    for (Index j = 0; j < n; ++j) std::copy(at(A, i) + j * lda, at(A, i) + j * lda + n, copy.data() + j * n);
    info[i] = factor(n, copy.data(), least(n), pivots.data());
    if (info[i] == 0) invert(n, copy.data(), least(n), pivots.data(), at(Ainv, i), ldInverse, info + i);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status tpttr(cublasFillMode_t uplo, Index n, const T* AP, T* A, Index lda) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  reachData();
  for (Index j = 0; j < n; ++j) {
    const Index low = uplo == CUBLAS_FILL_MODE_LOWER ? j : 0;
    const Index high = uplo == CUBLAS_FILL_MODE_LOWER ? n : j + 1;
    for (Index i = low; i < high; ++i) A[i + j * lda] = *AP++;
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status trttp(cublasFillMode_t uplo, Index n, const T* A, Index lda, T* AP) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  reachData();
  for (Index j = 0; j < n; ++j) {
    const Index low = uplo == CUBLAS_FILL_MODE_LOWER ? j : 0;
    const Index high = uplo == CUBLAS_FILL_MODE_LOWER ? n : j + 1;
    for (Index i = low; i < high; ++i) *AP++ = A[i + j * lda];
  }
  return CUBLAS_STATUS_SUCCESS;
}

// ---- Types chosen at run time ---------------------------------------------------------------------------------------
// Which types go together, and what a product of them is computed in; false if cuBLAS has no such combination.
bool productTypes(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c, Product* product);

Status gemmEx(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const void* alpha,
              const void* A, cudaDataType aType, Index lda, const void* B, cudaDataType bType, Index ldb,
              const void* beta, void* C, cudaDataType cType, Index ldc, cublasComputeType_t compute, cublasGemmAlgo_t);
Status gemmBatchedEx(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const void* alpha,
                     const void* const* A, cudaDataType aType, Index lda, const void* const* B, cudaDataType bType,
                     Index ldb, const void* beta, void* const* C, cudaDataType cType, Index ldc, Index batch,
                     cublasComputeType_t compute, cublasGemmAlgo_t);
Status gemmStridedBatchedEx(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k,
                            const void* alpha, const void* A, cudaDataType aType, Index lda, Index strideA,
                            const void* B, cudaDataType bType, Index ldb, Index strideB, const void* beta, void* C,
                            cudaDataType cType, Index ldc, Index strideC, Index batch, cublasComputeType_t compute,
                            cublasGemmAlgo_t);
// The scalar of a group, in the type that its products are computed in; null if there is no such combination of types.
const void* groupScalar(const void* scalars, Index group, cublasComputeType_t compute, cudaDataType a, cudaDataType b,
                        cudaDataType c);
template <class Integer>
Status gemmGroupedBatchedEx(const cublasOperation_t* transa, const cublasOperation_t* transb, const Integer* m,
                            const Integer* n, const Integer* k, const void* alpha, const void* const* A,
                            cudaDataType aType, const Integer* lda, const void* const* B, cudaDataType bType,
                            const Integer* ldb, const void* beta, void* const* C, cudaDataType cType,
                            const Integer* ldc, Index groups, const Integer* sizes, cublasComputeType_t compute) {
  MXMACA_REQUIRE(groups >= 0 && alpha != nullptr && beta != nullptr);
  if (groupScalar(alpha, 0, compute, aType, bType, cType) == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Status status = checkGroups(transa, transb, m, n, k, A, lda, B, ldb, C, ldc, groups, sizes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  for (Index g = 0, first = 0; g < groups; first += sizes[g++]) {
    const Status status = gemmBatchedEx(
        transa[g], transb[g], m[g], n[g], k[g], groupScalar(alpha, g, compute, aType, bType, cType), A + first, aType,
        lda[g], B + first, bType, ldb[g], groupScalar(beta, g, compute, aType, bType, cType), C + first, cType, ldc[g],
        static_cast<Index>(sizes[g]), compute, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}
Status axpyEx(Index n, const void* alpha, cudaDataType alphaType, const void* x, cudaDataType xType, Index incx,
              void* y, cudaDataType yType, Index incy, cudaDataType executionType);
Status dotEx(Index n, const void* x, cudaDataType xType, Index incx, const void* y, cudaDataType yType, Index incy,
             void* result, cudaDataType resultType, cudaDataType executionType);
Status dotcEx(Index n, const void* x, cudaDataType xType, Index incx, const void* y, cudaDataType yType, Index incy,
              void* result, cudaDataType resultType, cudaDataType executionType);
Status nrm2Ex(Index n, const void* x, cudaDataType xType, Index incx, void* result, cudaDataType resultType,
              cudaDataType executionType);
Status scalEx(Index n, const void* alpha, cudaDataType alphaType, void* x, cudaDataType xType, Index incx,
              cudaDataType executionType);
// The place of the element of the greatest, or least, magnitude, counted from 1; 0 in an empty vector.
Status extremeEx(Index n, const void* x, cudaDataType xType, Index incx, bool least, Index* result);
template <class Integer>
Status amaxEx(Index n, const void* x, cudaDataType xType, Index incx, Integer* result) {
  MXMACA_REQUIRE(result != nullptr);
  Index found = 0;
  const Status status = extremeEx(n, x, xType, incx, false, &found);
  if (status == CUBLAS_STATUS_SUCCESS) *result = static_cast<Integer>(found);
  return status;
}
template <class Integer>
Status aminEx(Index n, const void* x, cudaDataType xType, Index incx, Integer* result) {
  MXMACA_REQUIRE(result != nullptr);
  Index found = 0;
  const Status status = extremeEx(n, x, xType, incx, true, &found);
  if (status == CUBLAS_STATUS_SUCCESS) *result = static_cast<Integer>(found);
  return status;
}
Status asumEx(Index n, const void* x, cudaDataType xType, Index incx, void* result, cudaDataType resultType,
              cudaDataType executionType);
Status copyEx(Index n, const void* x, cudaDataType xType, Index incx, void* y, cudaDataType yType, Index incy);
Status swapEx(Index n, void* x, cudaDataType xType, Index incx, void* y, cudaDataType yType, Index incy);
Status rotEx(Index n, void* x, cudaDataType xType, Index incx, void* y, cudaDataType yType, Index incy, const void* c,
             const void* s, cudaDataType csType, cudaDataType executionType);

// SgemmEx, CgemmEx: alpha and beta have the type that is computed in.
template <class T>
Status gemmTypedEx(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const T* alpha,
                   const void* A, cudaDataType aType, Index lda, const void* B, cudaDataType bType, Index ldb,
                   const T* beta, void* C, cudaDataType cType, Index ldc) {
  return gemmEx(transa, transb, m, n, k, alpha, A, aType, lda, B, bType, ldb, beta, C, cType, ldc, CUBLAS_COMPUTE_32F,
                CUBLAS_GEMM_DEFAULT);
}

}  // namespace cublas
}  // namespace mxmaca
