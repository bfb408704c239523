// Eigenvalues of symmetric and Hermitian matrices, and the reductions that lead to them and to singular values.
#pragma once

#include "results.h"

namespace mxmaca {
namespace cusolver {

template <class T>
Status syevd_bufferSize(cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, const T*, Index lda, const Real<T>*,
                        int* lwork) {
  MXMACA_REQUIRE(valid(jobz) && valid(uplo) && n >= 0 && lda >= least(n));
  return needsNone(lwork);
}
template <class T>
Status syevd(cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, T* A, Index lda, Real<T>* W, T*, Index,
             int* info) {
  MXMACA_REQUIRE(valid(jobz) && valid(uplo) && n >= 0 && lda >= least(n));
  return report(info, MXMACA_BLAS(T, kComplex<T> ? "LAPACKE_?heevd" : "LAPACKE_?syevd",
                                  BlasInt(int, char, char, BlasInt, T*, BlasInt, Real<T>*))(
                          kColumnMajor, letter(jobz), letter(uplo), n, A, lda, W));
}
template <class T>
Status sygvd_bufferSize(cusolverEigType_t type, cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, const T*,
                        Index lda, const T*, Index ldb, const Real<T>*, int* lwork) {
  MXMACA_REQUIRE(valid(type) && valid(jobz) && valid(uplo) && n >= 0 && lda >= least(n) && ldb >= least(n));
  return needsNone(lwork);
}
template <class T>
Status sygvd(cusolverEigType_t type, cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, T* A, Index lda, T* B,
             Index ldb, Real<T>* W, T*, Index, int* info) {
  MXMACA_REQUIRE(valid(type) && valid(jobz) && valid(uplo) && n >= 0 && lda >= least(n) && ldb >= least(n));
  return report(info, MXMACA_BLAS(T, kComplex<T> ? "LAPACKE_?hegvd" : "LAPACKE_?sygvd",
                                  BlasInt(int, BlasInt, char, char, BlasInt, T*, BlasInt, T*, BlasInt, Real<T>*))(
                          kColumnMajor, type, letter(jobz), letter(uplo), n, A, lda, B, ldb, W));
}
template <class T>
Status syevj_bufferSize(cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, const T* A, Index lda, const Real<T>* W,
                        int* lwork, syevjInfo_t) {
  return syevd_bufferSize(jobz, uplo, n, A, lda, W, lwork);
}
template <class T>
Status syevj(cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, T* A, Index lda, Real<T>* W, T* work, Index lwork,
             int* info, syevjInfo_t) {
  return syevd(jobz, uplo, n, A, lda, W, work, lwork, info);
}
template <class T>
Status syevjBatched_bufferSize(cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, const T* A, Index lda,
                               const Real<T>* W, int* lwork, syevjInfo_t, Index batch) {
  MXMACA_REQUIRE(batch >= 0);
  return syevd_bufferSize(jobz, uplo, n, A, lda, W, lwork);
}
template <class T>
Status syevjBatched(cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, T* A, Index lda, Real<T>* W, T* work,
                    Index lwork, int* info, syevjInfo_t, Index batch) {
  MXMACA_REQUIRE(batch >= 0 && info != nullptr);
  Status status = CUSOLVER_STATUS_SUCCESS;
  for (Index i = 0; i < batch && status == CUSOLVER_STATUS_SUCCESS; ++i) {
    status = syevd(jobz, uplo, n, A + i * lda * n, lda, W + i * n, work, lwork, info + i);
  }
  return status;
}

// Of the values in ascending order those that a range takes: from number `first` on, `count`.
template <class T>
bool validRange(cusolverEigRange_t range, Index n, Real<T> low, Real<T> high, Index first, Index last) {
  if (range == CUSOLVER_EIG_RANGE_I) return n == 0 || (first >= 1 && first <= last && last <= n);
  return range == CUSOLVER_EIG_RANGE_ALL || (range == CUSOLVER_EIG_RANGE_V && low < high);
}
// Puts what the range takes to the front, values and, where they are wanted, the columns of vectors.
template <class T>
Index keepRange(cusolverEigMode_t jobz, cusolverEigRange_t range, Index n, T* A, Index lda, Real<T>* W, Real<T> low,
                Real<T> high, Index first, Index last) {
  Index begin = 0, end = n;
  if (range == CUSOLVER_EIG_RANGE_I && n != 0) begin = first - 1, end = last;
  if (range == CUSOLVER_EIG_RANGE_V) {  // low < w <= high
    begin = std::upper_bound(W, W + n, low) - W;
    end = std::upper_bound(W, W + n, high) - W;
  }
  if (begin == 0) return end;
  std::copy(W + begin, W + end, W);
  for (Index column = begin; jobz == CUSOLVER_EIG_MODE_VECTOR && column < end; ++column) {
    std::copy(A + column * lda, A + column * lda + n, A + (column - begin) * lda);
  }
  return end - begin;
}

template <class T>
Status syevdx_bufferSize(cusolverEigMode_t jobz, cusolverEigRange_t range, cublasFillMode_t uplo, Index n, const T*,
                         Index lda, Real<T> low, Real<T> high, Index first, Index last, int*, const Real<T>*,
                         int* lwork) {
  MXMACA_REQUIRE(valid(jobz) && valid(uplo) && n >= 0 && lda >= least(n));
  MXMACA_REQUIRE(validRange<T>(range, n, low, high, first, last));
  return needsNone(lwork);
}
template <class T>
Status syevdx(cusolverEigMode_t jobz, cusolverEigRange_t range, cublasFillMode_t uplo, Index n, T* A, Index lda,
              Real<T> low, Real<T> high, Index first, Index last, int* found, Real<T>* W, T* work, Index lwork,
              int* info) {
  MXMACA_REQUIRE(found != nullptr && validRange<T>(range, n, low, high, first, last));
  const Status status = syevd(jobz, uplo, n, A, lda, W, work, lwork, info);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  *found = static_cast<int>(keepRange(jobz, range, n, A, lda, W, low, high, first, last));
  return status;
}
template <class T>
Status sygvdx_bufferSize(cusolverEigType_t type, cusolverEigMode_t jobz, cusolverEigRange_t range,
                         cublasFillMode_t uplo, Index n, const T*, Index lda, const T*, Index ldb, Real<T> low,
                         Real<T> high, Index first, Index last, int*, const Real<T>*, int* lwork) {
  MXMACA_REQUIRE(valid(type) && valid(jobz) && valid(uplo) && n >= 0 && lda >= least(n) && ldb >= least(n));
  MXMACA_REQUIRE(validRange<T>(range, n, low, high, first, last));
  return needsNone(lwork);
}
template <class T>
Status sygvdx(cusolverEigType_t type, cusolverEigMode_t jobz, cusolverEigRange_t range, cublasFillMode_t uplo, Index n,
              T* A, Index lda, T* B, Index ldb, Real<T> low, Real<T> high, Index first, Index last, int* found,
              Real<T>* W, T* work, Index lwork, int* info) {
  MXMACA_REQUIRE(found != nullptr && validRange<T>(range, n, low, high, first, last));
  const Status status = sygvd(type, jobz, uplo, n, A, lda, B, ldb, W, work, lwork, info);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  *found = static_cast<int>(keepRange(jobz, range, n, A, lda, W, low, high, first, last));
  return status;
}
template <class T>
Status sygvj_bufferSize(cusolverEigType_t type, cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, const T* A,
                        Index lda, const T* B, Index ldb, const Real<T>* W, int* lwork, syevjInfo_t) {
  return sygvd_bufferSize(type, jobz, uplo, n, A, lda, B, ldb, W, lwork);
}
template <class T>
Status sygvj(cusolverEigType_t type, cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, T* A, Index lda, T* B,
             Index ldb, Real<T>* W, T* work, Index lwork, int* info, syevjInfo_t) {
  return sygvd(type, jobz, uplo, n, A, lda, B, ldb, W, work, lwork, info);
}

// ---- Reduction to two diagonals -------------------------------------------------------------------------------------
template <class T>
Status sytrd_bufferSize(cublasFillMode_t uplo, Index n, const T*, Index lda, const Real<T>*, const Real<T>*, const T*,
                        int* lwork) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  return needsNone(lwork);
}
template <class T>
Status sytrd(cublasFillMode_t uplo, Index n, T* A, Index lda, Real<T>* D, Real<T>* E, T* tau, T*, Index, int* info) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  return report(info, MXMACA_BLAS(T, kComplex<T> ? "LAPACKE_?hetrd" : "LAPACKE_?sytrd",
                                  BlasInt(int, char, BlasInt, T*, BlasInt, Real<T>*, Real<T>*, T*))(
                          kColumnMajor, letter(uplo), n, A, lda, D, E, tau));
}
template <class T>
Status orgtr_bufferSize(cublasFillMode_t uplo, Index n, const T*, Index lda, const T*, int* lwork) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  return needsNone(lwork);
}
template <class T>
Status orgtr(cublasFillMode_t uplo, Index n, T* A, Index lda, const T* tau, T*, Index, int* info) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  return report(info, MXMACA_BLAS(T, kComplex<T> ? "LAPACKE_?ungtr" : "LAPACKE_?orgtr",
                                  BlasInt(int, char, BlasInt, T*, BlasInt, const T*))(kColumnMajor, letter(uplo), n, A,
                                                                                      lda, tau));
}
template <class T>
bool turns(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t& trans, Index m, Index n, Index lda,
           Index ldc) {
  if (!valid(side) || !valid(uplo) || !valid(trans) || m < 0 || n < 0) return false;
  if (kComplex<T> && trans == CUBLAS_OP_T) return false;
  if (!kComplex<T> && trans == CUBLAS_OP_C) trans = CUBLAS_OP_T;
  return lda >= least(side == CUBLAS_SIDE_LEFT ? m : n) && ldc >= least(m);
}
template <class T>
Status ormtr_bufferSize(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, Index m, Index n,
                        const T*, Index lda, const T*, const T*, Index ldc, int* lwork) {
  MXMACA_REQUIRE(turns<T>(side, uplo, trans, m, n, lda, ldc));
  return needsNone(lwork);
}
template <class T>
Status ormtr(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, Index m, Index n, const T* A,
             Index lda, const T* tau, T* C, Index ldc, T*, Index, int* info) {
  MXMACA_REQUIRE(turns<T>(side, uplo, trans, m, n, lda, ldc));
  return report(info,
                MXMACA_BLAS(T, kComplex<T> ? "LAPACKE_?unmtr" : "LAPACKE_?ormtr",
                            BlasInt(int, char, char, char, BlasInt, BlasInt, const T*, BlasInt, const T*, T*, BlasInt))(
                    kColumnMajor, letter(side), letter(uplo), letter(trans), m, n, A, lda, tau, C, ldc));
}
template <class T>
Status gebrd_bufferSize(Index m, Index n, int* lwork) {
  MXMACA_REQUIRE(m >= 0 && n >= 0);
  return needsNone(lwork);
}
template <class T>
Status gebrd(Index m, Index n, T* A, Index lda, Real<T>* D, Real<T>* E, T* tauQ, T* tauP, T*, Index, int* info) {
  MXMACA_REQUIRE(n >= 0 && m >= n && lda >= least(m));  // as cuSOLVER has it
  return report(
      info, MXMACA_BLAS(T, "LAPACKE_?gebrd", BlasInt(int, BlasInt, BlasInt, T*, BlasInt, Real<T>*, Real<T>*, T*, T*))(
                kColumnMajor, m, n, A, lda, D, E, tauQ, tauP));
}
inline bool bears(cublasSideMode_t side, Index m, Index n, Index k, Index lda) {
  if (!valid(side) || m < 0 || n < 0 || k < 0 || lda < least(m)) return false;
  return side == CUBLAS_SIDE_LEFT ? m >= n && n >= std::min(m, k) : n >= m && m >= std::min(n, k);
}
template <class T>
Status orgbr_bufferSize(cublasSideMode_t side, Index m, Index n, Index k, const T*, Index lda, const T*, int* lwork) {
  MXMACA_REQUIRE(bears(side, m, n, k, lda));
  return needsNone(lwork);
}
template <class T>
Status orgbr(cublasSideMode_t side, Index m, Index n, Index k, T* A, Index lda, const T* tau, T*, Index, int* info) {
  MXMACA_REQUIRE(bears(side, m, n, k, lda));
  return report(info, MXMACA_BLAS(T, kComplex<T> ? "LAPACKE_?ungbr" : "LAPACKE_?orgbr",
                                  BlasInt(int, char, BlasInt, BlasInt, BlasInt, T*, BlasInt, const T*))(
                          kColumnMajor, side == CUBLAS_SIDE_LEFT ? 'Q' : 'P', m, n, k, A, lda, tau));
}

}  // namespace cusolver
}  // namespace mxmaca
