// What each family of functions.txt computes, through LAPACK. No workspace is needed: it takes its own from the host.
#pragma once

#include "eigenvalues.h"

namespace mxmaca {
namespace cusolver {

// ---- Cholesky -------------------------------------------------------------------------------------------------------
template <class T>
Status potrf_bufferSize(cublasFillMode_t uplo, Index n, T*, Index lda, int* lwork) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  return needsNone(lwork);
}
template <class T>
Status potrf(cublasFillMode_t uplo, Index n, T* A, Index lda, T*, Index, int* info) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  return report(info, MXMACA_BLAS(T, "LAPACKE_?potrf", BlasInt(int, char, BlasInt, T*, BlasInt))(
                          kColumnMajor, letter(uplo), n, A, lda));
}
template <class T>
Status potrs(cublasFillMode_t uplo, Index n, Index nrhs, const T* A, Index lda, T* B, Index ldb, int* info) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && nrhs >= 0 && lda >= least(n) && ldb >= least(n));
  return report(info,
                MXMACA_BLAS(T, "LAPACKE_?potrs", BlasInt(int, char, BlasInt, BlasInt, const T*, BlasInt, T*, BlasInt))(
                    kColumnMajor, letter(uplo), n, nrhs, A, lda, B, ldb));
}
template <class T>
Status potri_bufferSize(cublasFillMode_t uplo, Index n, T* A, Index lda, int* lwork) {
  return potrf_bufferSize(uplo, n, A, lda, lwork);
}
template <class T>
Status potri(cublasFillMode_t uplo, Index n, T* A, Index lda, T*, Index, int* info) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  return report(info, MXMACA_BLAS(T, "LAPACKE_?potri", BlasInt(int, char, BlasInt, T*, BlasInt))(
                          kColumnMajor, letter(uplo), n, A, lda));
}
template <class T>
Status potrfBatched(cublasFillMode_t uplo, Index n, T** A, Index lda, int* info, Index batch) {
  MXMACA_REQUIRE(batch >= 0 && info != nullptr);
  Status status = CUSOLVER_STATUS_SUCCESS;
  for (Index i = 0; i < batch && status == CUSOLVER_STATUS_SUCCESS; ++i) {
    status = potrf<T>(uplo, n, at(A, i), lda, nullptr, 0, info + i);
  }
  return status;
}
template <class T>
Status potrsBatched(cublasFillMode_t uplo, Index n, Index nrhs, T** A, Index lda, T** B, Index ldb, int* info,
                    Index batch) {
  MXMACA_REQUIRE(batch >= 0);
  Status status = CUSOLVER_STATUS_SUCCESS;
  for (Index i = 0; i < batch && status == CUSOLVER_STATUS_SUCCESS; ++i) {
    status = potrs<T>(uplo, n, nrhs, at(A, i), lda, at(B, i), ldb, info);
  }
  return status;
}

// ---- LU and LDL -----------------------------------------------------------------------------------------------------
template <class T>
Status getrf_bufferSize(Index m, Index n, T*, Index lda, int* lwork) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && lda >= least(m));
  return needsNone(lwork);
}
template <class T>
BlasInt factor(Index m, Index n, T* A, Index lda, BlasInt* pivots) {
  return MXMACA_BLAS(T, "LAPACKE_?getrf", BlasInt(int, BlasInt, BlasInt, T*, BlasInt, BlasInt*))(kColumnMajor, m, n, A,
                                                                                                 lda, pivots);
}
// LU without row exchanges, for callers that give no room for them.
template <class T>
BlasInt factorWithoutPivots(Index m, Index n, T* A, Index lda) {
  reachData();
  BlasInt info = 0;
  for (Index k = 0; k < std::min(m, n); ++k) {
    const T pivot = A[k + k * lda];
    if (pivot == T(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (Index i = k + 1; i < m; ++i) A[i + k * lda] /= pivot;
    for (Index j = k + 1; j < n; ++j) {
      const T scale = A[k + j * lda];
      for (Index i = k + 1; i < m; ++i) A[i + j * lda] -= A[i + k * lda] * scale;
    }
  }
  return info;
}
template <class T>
Status getrf(Index m, Index n, T* A, Index lda, T*, int* pivots, int* info) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && lda >= least(m));
  if (pivots == nullptr) return report(info, factorWithoutPivots(m, n, A, lda));
  std::vector<BlasInt> wide(static_cast<size_t>(std::min(m, n)));
  const BlasInt found = factor(m, n, A, lda, wide.data());
  std::copy(wide.begin(), wide.end(), pivots);
  return report(info, found);
}
template <class T>
Status solve(cublasOperation_t trans, Index n, Index nrhs, const T* A, Index lda, const BlasInt* pivots, T* B,
             Index ldb, int* info) {
  return report(info, MXMACA_BLAS(T, "LAPACKE_?getrs",
                                  BlasInt(int, char, BlasInt, BlasInt, const T*, BlasInt, const BlasInt*, T*, BlasInt))(
                          kColumnMajor, letter(trans), n, nrhs, A, lda, pivots, B, ldb));
}
template <class T, class Integer>
Status getrs(cublasOperation_t trans, Index n, Index nrhs, const T* A, Index lda, const Integer* pivots, T* B,
             Index ldb, int* info) {
  MXMACA_REQUIRE(valid(trans) && n >= 0 && nrhs >= 0 && lda >= least(n) && ldb >= least(n));
  return solve(trans, n, nrhs, A, lda, widePivots(pivots, n).data(), B, ldb, info);
}
template <class T>
Status sytrf_bufferSize(Index n, T*, Index lda, int* lwork) {
  MXMACA_REQUIRE(n >= 0 && lda >= least(n));
  return needsNone(lwork);
}
template <class T>
Status sytrf(cublasFillMode_t uplo, Index n, T* A, Index lda, int* pivots, T*, Index, int* info) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  if (pivots == nullptr) return CUSOLVER_STATUS_NOT_SUPPORTED;  // LDL without pivots is not LAPACK's
  std::vector<BlasInt> wide(static_cast<size_t>(n));
  const BlasInt found = MXMACA_BLAS(T, "LAPACKE_?sytrf", BlasInt(int, char, BlasInt, T*, BlasInt, BlasInt*))(
      kColumnMajor, letter(uplo), n, A, lda, wide.data());
  std::copy(wide.begin(), wide.end(), pivots);
  return report(info, found);
}

// ---- QR -------------------------------------------------------------------------------------------------------------
template <class T>
Status geqrf_bufferSize(Index m, Index n, T*, Index lda, int* lwork) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && lda >= least(m));
  return needsNone(lwork);
}
template <class T>
Status geqrf(Index m, Index n, T* A, Index lda, T* tau, T*, Index, int* info) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && lda >= least(m));
  return report(info, MXMACA_BLAS(T, "LAPACKE_?geqrf", BlasInt(int, BlasInt, BlasInt, T*, BlasInt, T*))(
                          kColumnMajor, m, n, A, lda, tau));
}
template <class T>
Status orgqr_bufferSize(Index m, Index n, Index k, const T*, Index lda, const T*, int* lwork) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && n <= m && k >= 0 && k <= n && lda >= least(m));
  return needsNone(lwork);
}
template <class T>
Status orgqr(Index m, Index n, Index k, T* A, Index lda, const T* tau, T*, Index, int* info) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && n <= m && k >= 0 && k <= n && lda >= least(m));
  return report(info, MXMACA_BLAS(T, kComplex<T> ? "LAPACKE_?ungqr" : "LAPACKE_?orgqr",
                                  BlasInt(int, BlasInt, BlasInt, BlasInt, T*, BlasInt, const T*))(kColumnMajor, m, n, k,
                                                                                                  A, lda, tau));
}
template <class T>
bool reflects(cublasSideMode_t side, cublasOperation_t& trans, Index m, Index n, Index k, Index lda, Index ldc) {
  if (!valid(side) || !valid(trans) || m < 0 || n < 0 || k < 0) return false;
  const Index order = side == CUBLAS_SIDE_LEFT ? m : n;
  if (kComplex<T> ? trans == CUBLAS_OP_T : false) return false;
  if (!kComplex<T> && trans == CUBLAS_OP_C) trans = CUBLAS_OP_T;
  return k <= order && lda >= least(order) && ldc >= least(m);
}
template <class T>
Status ormqr_bufferSize(cublasSideMode_t side, cublasOperation_t trans, Index m, Index n, Index k, const T*, Index lda,
                        const T*, const T*, Index ldc, int* lwork) {
  MXMACA_REQUIRE(reflects<T>(side, trans, m, n, k, lda, ldc));
  return needsNone(lwork);
}
template <class T>
Status ormqr(cublasSideMode_t side, cublasOperation_t trans, Index m, Index n, Index k, const T* A, Index lda,
             const T* tau, T* C, Index ldc, T*, Index, int* info) {
  MXMACA_REQUIRE(reflects<T>(side, trans, m, n, k, lda, ldc));
  return report(
      info, MXMACA_BLAS(T, kComplex<T> ? "LAPACKE_?unmqr" : "LAPACKE_?ormqr",
                        BlasInt(int, char, char, BlasInt, BlasInt, BlasInt, const T*, BlasInt, const T*, T*, BlasInt))(
                kColumnMajor, letter(side), letter(trans), m, n, k, A, lda, tau, C, ldc));
}

// ---- Singular values ------------------------------------------------------------------------------------------------
template <class T>
Status gesvd_bufferSize(Index m, Index n, int* lwork) {
  MXMACA_REQUIRE(m >= 0 && n >= 0);
  return needsNone(lwork);
}
inline bool validJob(signed char job) { return job == 'A' || job == 'S' || job == 'O' || job == 'N'; }
template <class T>
Status gesvd(signed char jobu, signed char jobvt, Index m, Index n, T* A, Index lda, Real<T>* S, T* U, Index ldu, T* VT,
             Index ldvt, T*, Index, Real<T>* rwork, int* info) {
  MXMACA_REQUIRE(validJob(jobu) && validJob(jobvt) && !(jobu == 'O' && jobvt == 'O') && m >= 0 && n >= 0 && m >= n);
  MXMACA_REQUIRE(n == 0 || ((jobu != 'A' && jobu != 'S') || U != nullptr));
  MXMACA_REQUIRE(n == 0 || ((jobvt != 'A' && jobvt != 'S') || VT != nullptr));
  MXMACA_REQUIRE(lda >= least(m) && ((jobu != 'A' && jobu != 'S') || ldu >= least(m)));
  MXMACA_REQUIRE(ldvt >= (jobvt == 'A' || jobvt == 'S' ? least(n) : 1) && ldu >= 1);
  std::vector<Real<T>> unconverged(static_cast<size_t>(least(n)));
  const BlasInt found = MXMACA_BLAS(
      T, "LAPACKE_?gesvd",
      BlasInt(int, char, char, BlasInt, BlasInt, T*, BlasInt, Real<T>*, T*, BlasInt, T*, BlasInt, Real<T>*))(
      kColumnMajor, static_cast<char>(jobu), static_cast<char>(jobvt), m, n, A, lda, S, U, ldu, VT, ldvt,
      unconverged.data());
  if (rwork != nullptr && n > 1) std::copy(unconverged.begin(), unconverged.begin() + n - 1, rwork);
  return report(info, found);
}

// The decomposition with V instead of its transpose. `columns` of U and V are wanted, at most those that exist.
template <class T>
BlasInt decompose(bool vectors, Index m, Index n, T* A, Index lda, Real<T>* S, T* U, Index ldu, T* V, Index ldv,
                  Index columnsU, Index columnsV) {
  if (m == 0 || n == 0) return 0;
  const Index rank = std::min(m, n);
  const bool full = vectors && (columnsU > rank || columnsV > rank);
  const Index widthU = full ? m : rank;
  const Index widthV = full ? n : rank;
  std::vector<T> left(static_cast<size_t>(vectors ? m * widthU : 1));
  std::vector<T> right(static_cast<size_t>(vectors ? widthV * n : 1));
  const BlasInt found = MXMACA_BLAS(
      T, "LAPACKE_?gesdd", BlasInt(int, char, BlasInt, BlasInt, T*, BlasInt, Real<T>*, T*, BlasInt, T*, BlasInt))(
      kColumnMajor,
      !vectors ? 'N'
      : full   ? 'A'
               : 'S',
      m, n, A, lda, S, left.data(), m, right.data(), vectors ? widthV : 1);
  if (vectors) {
    for (Index j = 0; j < std::min(columnsU, widthU); ++j) {
      std::copy(left.data() + j * m, left.data() + (j + 1) * m, U + j * ldu);
    }
    for (Index j = 0; j < std::min(columnsV, widthV); ++j) {
      for (Index i = 0; i < n; ++i) V[i + j * ldv] = conjugate(right[static_cast<size_t>(j + i * widthV)]);
    }
  }
  return found;
}
template <class T>
Status gesvdj(cusolverEigMode_t jobz, int econ, Index m, Index n, T* A, Index lda, Real<T>* S, T* U, Index ldu, T* V,
              Index ldv, T*, Index, int* info, gesvdjInfo_t) {
  MXMACA_REQUIRE(valid(jobz) && m >= 0 && n >= 0 && lda >= least(m));
  const bool vectors = jobz == CUSOLVER_EIG_MODE_VECTOR;
  MXMACA_REQUIRE(!vectors || (ldu >= least(m) && ldv >= least(n)));
  const Index rank = std::min(m, n);
  MXMACA_REQUIRE(!vectors || rank == 0 || (U != nullptr && V != nullptr));
  return report(info, decompose(vectors, m, n, A, lda, S, U, ldu, V, ldv, econ != 0 ? rank : m, econ != 0 ? rank : n));
}
template <class T>
Status gesvdj_bufferSize(cusolverEigMode_t jobz, int, Index m, Index n, const T*, Index lda, const Real<T>*, const T*,
                         Index ldu, const T*, Index ldv, int* lwork, gesvdjInfo_t) {
  MXMACA_REQUIRE(valid(jobz) && m >= 0 && n >= 0 && lda >= least(m));
  MXMACA_REQUIRE(jobz == CUSOLVER_EIG_MODE_NOVECTOR || (ldu >= least(m) && ldv >= least(n)));
  return needsNone(lwork);
}
template <class T>
Status gesvdjBatched_bufferSize(cusolverEigMode_t jobz, Index m, Index n, const T* A, Index lda, const Real<T>* S,
                                const T* U, Index ldu, const T* V, Index ldv, int* lwork, gesvdjInfo_t params,
                                Index batch) {
  MXMACA_REQUIRE(batch >= 0);
  return gesvdj_bufferSize(jobz, 0, m, n, A, lda, S, U, ldu, V, ldv, lwork, params);
}
template <class T>
Status gesvdjBatched(cusolverEigMode_t jobz, Index m, Index n, T* A, Index lda, Real<T>* S, T* U, Index ldu, T* V,
                     Index ldv, T* work, Index lwork, int* info, gesvdjInfo_t params, Index batch) {
  MXMACA_REQUIRE(batch >= 0 && info != nullptr && m <= 32 && n <= 32);  // the device's own limit
  Status status = CUSOLVER_STATUS_SUCCESS;
  for (Index i = 0; i < batch && status == CUSOLVER_STATUS_SUCCESS; ++i) {
    status = gesvdj(jobz, 0, m, n, A + i * lda * n, lda, S + i * std::min(m, n), U + i * ldu * m, ldu, V + i * ldv * n,
                    ldv, work, lwork, info + i, params);
  }
  return status;
}
template <class T>
Status gesvdaStridedBatched_bufferSize(cusolverEigMode_t jobz, Index rank, Index m, Index n, const T*, Index lda, Index,
                                       const Real<T>*, Index, const T*, Index ldu, Index, const T*, Index ldv, Index,
                                       int* lwork, Index batch) {
  MXMACA_REQUIRE(valid(jobz) && m >= 0 && n >= 0 && rank >= 0 && rank <= std::min(m, n) && lda >= least(m));
  MXMACA_REQUIRE(batch >= 0 && (jobz == CUSOLVER_EIG_MODE_NOVECTOR || (ldu >= least(m) && ldv >= least(n))));
  return needsNone(lwork);
}
template <class T>
Status gesvdaStridedBatched(cusolverEigMode_t jobz, Index rank, Index m, Index n, const T* A, Index lda, Index strideA,
                            Real<T>* S, Index strideS, T* U, Index ldu, Index strideU, T* V, Index ldv, Index strideV,
                            T*, Index, int* info, double* residual, Index batch) {
  MXMACA_REQUIRE(valid(jobz) && m >= 0 && n >= 0 && rank >= 0 && rank <= std::min(m, n) && lda >= least(m));
  const bool vectors = jobz == CUSOLVER_EIG_MODE_VECTOR;
  MXMACA_REQUIRE(batch >= 0 && info != nullptr && (!vectors || (ldu >= least(m) && ldv >= least(n))));
  MXMACA_REQUIRE(!vectors || rank == 0 || batch == 0 || (U != nullptr && V != nullptr));
  reachData();
  std::vector<T> copy(static_cast<size_t>(m * n));
  std::vector<Real<T>> values(static_cast<size_t>(least(std::min(m, n))));
  for (Index i = 0; i < batch; ++i) {
    const T* const from = A + i * strideA;  // stays as it is
    for (Index j = 0; j < n; ++j) std::copy(from + j * lda, from + j * lda + m, copy.data() + j * m);
    T* const u = U + i * strideU;
    T* const v = V + i * strideV;
    info[i] =
        static_cast<int>(decompose(vectors, m, n, copy.data(), least(m), values.data(), u, ldu, v, ldv, rank, rank));
    Real<T>* const s = S + i * strideS;
    std::copy(values.begin(), values.begin() + rank, s);
    if (residual == nullptr || !vectors) continue;
    double sum = 0;  // of |A - U S V'|^2
    for (Index column = 0; column < n; ++column) {
      for (Index row = 0; row < m; ++row) {
        T difference = from[row + column * lda];
        for (Index l = 0; l < rank; ++l) difference -= u[row + l * ldu] * s[l] * conjugate(v[column + l * ldv]);
        sum += static_cast<double>(std::norm(difference));
      }
    }
    residual[i] = std::sqrt(sum);
  }
  return CUSOLVER_STATUS_SUCCESS;
}

// ---- Types chosen at run time ---------------------------------------------------------------------------------------
// Calls `work` with the type; both other types must go with it.
template <class Work>
Status withType(cudaDataType type, Work&& work) {
  switch (type) {
    case CUDA_R_32F: return work(Typed<float>());
    case CUDA_R_64F: return work(Typed<double>());
    case CUDA_C_32F: return work(Typed<std::complex<float>>());
    case CUDA_C_64F: return work(Typed<std::complex<double>>());
    default: return CUSOLVER_STATUS_NOT_SUPPORTED;
  }
}
inline cudaDataType realOf(cudaDataType type) {
  return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}
#define MXMACA_TYPED(type, Name, ...) MXMACA_WITH_TYPE(withType, type, Name, __VA_ARGS__)

inline Status Xpotrf_bufferSize(cusolverDnParams_t, cublasFillMode_t uplo, Index n, cudaDataType, const void*,
                                Index lda, cudaDataType, size_t* device, size_t* host) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n));
  return needsNone(device, host);
}
inline Status Xpotrf(cusolverDnParams_t, cublasFillMode_t uplo, Index n, cudaDataType type, void* A, Index lda,
                     cudaDataType compute, void*, size_t, void*, size_t, int* info) {
  if (compute != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  return MXMACA_TYPED(type, T, return potrf<T>(uplo, n, static_cast<T*>(A), lda, nullptr, 0, info););
}
inline Status Xpotrs(cusolverDnParams_t, cublasFillMode_t uplo, Index n, Index nrhs, cudaDataType type, const void* A,
                     Index lda, cudaDataType typeB, void* B, Index ldb, int* info) {
  if (typeB != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  return MXMACA_TYPED(type, T,
                      return potrs<T>(uplo, n, nrhs, static_cast<const T*>(A), lda, static_cast<T*>(B), ldb, info););
}
inline Status Xgetrf_bufferSize(cusolverDnParams_t, Index m, Index n, cudaDataType, const void*, Index lda,
                                cudaDataType, size_t* device, size_t* host) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && lda >= least(m));
  return needsNone(device, host);
}
inline Status Xgetrf(cusolverDnParams_t, Index m, Index n, cudaDataType type, void* A, Index lda, int64_t* pivots,
                     cudaDataType compute, void*, size_t, void*, size_t, int* info) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && lda >= least(m));
  if (compute != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  return MXMACA_TYPED(type, T, {
    auto* const matrix = static_cast<T*>(A);
    return report(info, pivots == nullptr ? factorWithoutPivots(m, n, matrix, lda) : factor(m, n, matrix, lda, pivots));
  });
}
inline Status Xgetrs(cusolverDnParams_t, cublasOperation_t trans, Index n, Index nrhs, cudaDataType type, const void* A,
                     Index lda, const int64_t* pivots, cudaDataType typeB, void* B, Index ldb, int* info) {
  if (typeB != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  return MXMACA_TYPED(
      type, T, return getrs<T>(trans, n, nrhs, static_cast<const T*>(A), lda, pivots, static_cast<T*>(B), ldb, info););
}
inline Status Xgeqrf_bufferSize(cusolverDnParams_t, Index m, Index n, cudaDataType, const void*, Index lda,
                                cudaDataType, const void*, cudaDataType, size_t* device, size_t* host) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && lda >= least(m));
  return needsNone(device, host);
}
inline Status Xgeqrf(cusolverDnParams_t, Index m, Index n, cudaDataType type, void* A, Index lda, cudaDataType typeTau,
                     void* tau, cudaDataType compute, void*, size_t, void*, size_t, int* info) {
  if (typeTau != type || compute != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  return MXMACA_TYPED(type, T, return geqrf<T>(m, n, static_cast<T*>(A), lda, static_cast<T*>(tau), nullptr, 0, info););
}
inline Status Xsyevd_bufferSize(cusolverDnParams_t, cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n,
                                cudaDataType, const void*, Index lda, cudaDataType, const void*, cudaDataType,
                                size_t* device, size_t* host) {
  MXMACA_REQUIRE(valid(jobz) && valid(uplo) && n >= 0 && lda >= least(n));
  return needsNone(device, host);
}
inline Status Xsyevd(cusolverDnParams_t, cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n, cudaDataType type,
                     void* A, Index lda, cudaDataType typeW, void* W, cudaDataType compute, void*, size_t, void*,
                     size_t, int* info) {
  if (typeW != realOf(type) || compute != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  return MXMACA_TYPED(
      type, T, return syevd<T>(jobz, uplo, n, static_cast<T*>(A), lda, static_cast<Real<T>*>(W), nullptr, 0, info););
}
inline Status Xsyevdx_bufferSize(cusolverDnParams_t, cusolverEigMode_t jobz, cusolverEigRange_t range,
                                 cublasFillMode_t uplo, Index n, cudaDataType type, const void*, Index lda,
                                 const void* low, const void* high, Index first, Index last, int64_t*, cudaDataType,
                                 const void*, cudaDataType, size_t* device, size_t* host) {
  MXMACA_REQUIRE(valid(jobz) && valid(uplo) && n >= 0 && lda >= least(n));
  MXMACA_REQUIRE(range != CUSOLVER_EIG_RANGE_V || (low != nullptr && high != nullptr));
  return MXMACA_TYPED(type, T, {
    const auto at = [](const void* limit) {
      return limit == nullptr ? Real<T>() : *static_cast<const Real<T>*>(limit);
    };
    MXMACA_REQUIRE(validRange<T>(range, n, at(low), at(high), first, last));
    return needsNone(device, host);
  });
}
inline Status Xsyevdx(cusolverDnParams_t, cusolverEigMode_t jobz, cusolverEigRange_t range, cublasFillMode_t uplo,
                      Index n, cudaDataType type, void* A, Index lda, const void* low, const void* high, Index first,
                      Index last, int64_t* found, cudaDataType typeW, void* W, cudaDataType compute, void*, size_t,
                      void*, size_t, int* info) {
  if (typeW != realOf(type) || compute != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  MXMACA_REQUIRE(found != nullptr && (range != CUSOLVER_EIG_RANGE_V || (low != nullptr && high != nullptr)));
  return MXMACA_TYPED(type, T, {
    const auto at = [](const void* limit) {
      return limit == nullptr ? Real<T>() : *static_cast<const Real<T>*>(limit);
    };
    int count = 0;
    const Status status = syevdx<T>(jobz, range, uplo, n, static_cast<T*>(A), lda, at(low), at(high), first, last,
                                    &count, static_cast<Real<T>*>(W), nullptr, 0, info);
    if (status == CUSOLVER_STATUS_SUCCESS) *found = count;
    return status;
  });
}
inline Status Xgesvd_bufferSize(cusolverDnParams_t, signed char jobu, signed char jobvt, Index m, Index n, cudaDataType,
                                const void*, Index lda, cudaDataType, const void*, cudaDataType, const void*, Index,
                                cudaDataType, const void*, Index, cudaDataType, size_t* device, size_t* host) {
  MXMACA_REQUIRE(validJob(jobu) && validJob(jobvt) && m >= 0 && n >= 0 && lda >= least(m));
  return needsNone(device, host);
}
inline Status Xgesvd(cusolverDnParams_t, signed char jobu, signed char jobvt, Index m, Index n, cudaDataType type,
                     void* A, Index lda, cudaDataType typeS, void* S, cudaDataType typeU, void* U, Index ldu,
                     cudaDataType typeVT, void* VT, Index ldvt, cudaDataType compute, void*, size_t, void*, size_t,
                     int* info) {
  if (typeS != realOf(type) || typeU != type || typeVT != type || compute != type) {
    return CUSOLVER_STATUS_NOT_SUPPORTED;
  }
  return MXMACA_TYPED(type, T,
                      return gesvd<T>(jobu, jobvt, m, n, static_cast<T*>(A), lda, static_cast<Real<T>*>(S),
                                      static_cast<T*>(U), ldu, static_cast<T*>(VT), ldvt, nullptr, 0, nullptr, info););
}
inline Status Xgesvdp_bufferSize(cusolverDnParams_t, cusolverEigMode_t jobz, int, Index m, Index n, cudaDataType,
                                 const void*, Index lda, cudaDataType, const void*, cudaDataType, const void*,
                                 Index ldu, cudaDataType, const void*, Index ldv, cudaDataType, size_t* device,
                                 size_t* host) {
  MXMACA_REQUIRE(valid(jobz) && m >= 0 && n >= 0 && lda >= least(m));
  MXMACA_REQUIRE(jobz == CUSOLVER_EIG_MODE_NOVECTOR || (ldu >= least(m) && ldv >= least(n)));
  return needsNone(device, host);
}
// By LAPACK's method, which disturbs no singular value: the error that is told is 0.
inline Status Xgesvdp(cusolverDnParams_t, cusolverEigMode_t jobz, int econ, Index m, Index n, cudaDataType type,
                      void* A, Index lda, cudaDataType typeS, void* S, cudaDataType typeU, void* U, Index ldu,
                      cudaDataType typeV, void* V, Index ldv, cudaDataType compute, void*, size_t, void*, size_t,
                      int* info, double* error) {
  if (typeS != realOf(type) || typeU != type || typeV != type || compute != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  MXMACA_REQUIRE(error != nullptr);
  return MXMACA_TYPED(type, T, {
    const Status status = gesvdj<T>(jobz, econ, m, n, static_cast<T*>(A), lda, static_cast<Real<T>*>(S),
                                    static_cast<T*>(U), ldu, static_cast<T*>(V), ldv, nullptr, 0, info, nullptr);
    if (status == CUSOLVER_STATUS_SUCCESS) *error = 0;
    return status;
  });
}
inline bool validRank(signed char jobu, signed char jobv, Index m, Index n, Index rank, Index more, Index iterations) {
  return (jobu == 'S' || jobu == 'N') && (jobv == 'S' || jobv == 'N') && m >= 0 && n >= 0 && rank >= 0 && more >= 0 &&
         iterations >= 0 && rank <= std::min(m, n) && more <= std::min(m, n) - rank;
}
inline Status Xgesvdr_bufferSize(cusolverDnParams_t, signed char jobu, signed char jobv, Index m, Index n, Index rank,
                                 Index more, Index iterations, cudaDataType, const void*, Index lda, cudaDataType,
                                 const void*, cudaDataType, const void*, Index ldu, cudaDataType, const void*,
                                 Index ldv, cudaDataType, size_t* device, size_t* host) {
  MXMACA_REQUIRE(validRank(jobu, jobv, m, n, rank, more, iterations) && lda >= least(m));
  MXMACA_REQUIRE((jobu == 'N' || ldu >= least(m)) && (jobv == 'N' || ldv >= least(n)));
  return needsNone(device, host);
}
// The largest singular values and their vectors from the whole decomposition: what the method that draws random numbers
// approaches.
inline Status Xgesvdr(cusolverDnParams_t, signed char jobu, signed char jobv, Index m, Index n, Index rank, Index more,
                      Index iterations, cudaDataType type, void* A, Index lda, cudaDataType typeS, void* S,
                      cudaDataType typeU, void* U, Index ldu, cudaDataType typeV, void* V, Index ldv,
                      cudaDataType compute, void*, size_t, void*, size_t, int* info) {
  MXMACA_REQUIRE(validRank(jobu, jobv, m, n, rank, more, iterations) && lda >= least(m));
  const bool left = jobu == 'S' && rank > 0, right = jobv == 'S' && rank > 0;
  MXMACA_REQUIRE((!left || (U != nullptr && ldu >= least(m))) && (!right || (V != nullptr && ldv >= least(n))));
  if (typeS != realOf(type) || typeU != type || typeV != type || compute != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  return MXMACA_TYPED(type, T, {
    std::vector<Real<T>> values(static_cast<size_t>(std::min(m, n)));
    const BlasInt found = decompose(left || right, m, n, static_cast<T*>(A), lda, values.data(), static_cast<T*>(U),
                                    ldu, static_cast<T*>(V), ldv, left ? rank : 0, right ? rank : 0);
    std::copy(values.begin(), values.begin() + rank, static_cast<Real<T>*>(S));
    return report(info, found);
  });
}
inline Status Xsytrs_bufferSize(cublasFillMode_t uplo, Index n, Index nrhs, cudaDataType, const void*, Index lda,
                                const int64_t*, cudaDataType, void*, Index ldb, size_t* device, size_t* host) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && nrhs >= 0 && lda >= least(n) && ldb >= least(n));
  return needsNone(device, host);
}
inline Status Xsytrs(cublasFillMode_t uplo, Index n, Index nrhs, cudaDataType type, const void* A, Index lda,
                     const int64_t* pivots, cudaDataType typeB, void* B, Index ldb, void*, size_t, void*, size_t,
                     int* info) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && nrhs >= 0 && lda >= least(n) && ldb >= least(n));
  if (typeB != type || pivots == nullptr) return CUSOLVER_STATUS_NOT_SUPPORTED;
  reachData();
  for (Index i = 0; i < n; ++i) {  // a minus marks the blocks of two rows
    if (pivots[i] == 0 || pivots[i] < -n || pivots[i] > n) throw BadIndex();
  }
  return MXMACA_TYPED(type, T, {
    return report(
        info, MXMACA_BLAS(T, "LAPACKE_?sytrs",
                          BlasInt(int, char, BlasInt, BlasInt, const T*, BlasInt, const BlasInt*, T*, BlasInt))(
                  kColumnMajor, letter(uplo), n, nrhs, static_cast<const T*>(A), lda, pivots, static_cast<T*>(B), ldb));
  });
}
inline Status Xtrtri_bufferSize(cublasFillMode_t uplo, cublasDiagType_t diag, Index n, cudaDataType, void*, Index lda,
                                size_t* device, size_t* host) {
  MXMACA_REQUIRE(valid(uplo) && valid(diag) && n >= 0 && lda >= least(n));
  return needsNone(device, host);
}
inline Status Xtrtri(cublasFillMode_t uplo, cublasDiagType_t diag, Index n, cudaDataType type, void* A, Index lda,
                     void*, size_t, void*, size_t, int* info) {
  MXMACA_REQUIRE(valid(uplo) && valid(diag) && n >= 0 && lda >= least(n));
  return MXMACA_TYPED(type, T, {
    return report(info,
                  MXMACA_BLAS(T, "LAPACKE_?trtri", BlasInt(int, char, char, BlasInt, T*, BlasInt))(
                      kColumnMajor, letter(uplo), diag == CUBLAS_DIAG_UNIT ? 'U' : 'N', n, static_cast<T*>(A), lda));
  });
}
inline Status XsyevBatched_bufferSize(cusolverDnParams_t parameters, cusolverEigMode_t jobz, cublasFillMode_t uplo,
                                      Index n, cudaDataType type, const void* A, Index lda, cudaDataType typeW,
                                      const void* W, cudaDataType compute, size_t* device, size_t* host, Index batch) {
  MXMACA_REQUIRE(batch >= 0);
  return Xsyevd_bufferSize(parameters, jobz, uplo, n, type, A, lda, typeW, W, compute, device, host);
}
inline Status XsyevBatched(cusolverDnParams_t, cusolverEigMode_t jobz, cublasFillMode_t uplo, Index n,
                           cudaDataType type, void* A, Index lda, cudaDataType typeW, void* W, cudaDataType compute,
                           void*, size_t, void*, size_t, int* info, Index batch) {
  if (typeW != realOf(type) || compute != type) return CUSOLVER_STATUS_NOT_SUPPORTED;
  return MXMACA_TYPED(type, T,
                      return syevjBatched<T>(jobz, uplo, n, static_cast<T*>(A), lda, static_cast<Real<T>*>(W), nullptr,
                                             0, info, nullptr, batch););
}

// Right eigenvectors alone, as the library documents. Of a real matrix the eigenvalues are real numbers (all real
// parts, then all imaginary ones) or complex ones; its vectors are real, a conjugate pair's as LAPACK packs them.
inline Status Xgeev_bufferSize(cusolverDnParams_t, cusolverEigMode_t left, cusolverEigMode_t right, Index n,
                               cudaDataType, const void*, Index lda, cudaDataType, const void*, cudaDataType,
                               const void*, Index, cudaDataType, const void*, Index ldvr, cudaDataType, size_t* device,
                               size_t* host) {
  MXMACA_REQUIRE(left == CUSOLVER_EIG_MODE_NOVECTOR && valid(right) && n >= 0 && lda >= least(n));
  MXMACA_REQUIRE(right == CUSOLVER_EIG_MODE_NOVECTOR || ldvr >= least(n));
  return needsNone(device, host);
}
template <class T>
Status geev(char right, Index n, T* A, Index lda, cudaDataType typeW, void* W, T* VR, Index ldvr, int* info) {
  // LAPACKE asks for a leading dimension of both kinds of vectors.
  const Index room = VR == nullptr ? 1 : ldvr;
  if constexpr (kComplex<T>) {
    return report(info, MXMACA_BLAS(T, "LAPACKE_?geev",
                                    BlasInt(int, char, char, BlasInt, T*, BlasInt, T*, T*, BlasInt, T*, BlasInt))(
                            kColumnMajor, 'N', right, n, A, lda, static_cast<T*>(W), nullptr, 1, VR, room));
  } else {
    std::vector<T> real(static_cast<size_t>(n)), imaginary(static_cast<size_t>(n));
    const Status status =
        report(info, MXMACA_BLAS(T, "LAPACKE_?geev",
                                 BlasInt(int, char, char, BlasInt, T*, BlasInt, T*, T*, T*, BlasInt, T*, BlasInt))(
                         kColumnMajor, 'N', right, n, A, lda, real.data(), imaginary.data(), nullptr, 1, VR, room));
    for (Index i = 0; i < n && status == CUSOLVER_STATUS_SUCCESS; ++i) {
      const T x = real[static_cast<size_t>(i)], y = imaginary[static_cast<size_t>(i)];
      if (typeW == CUDA_R_32F || typeW == CUDA_R_64F) {
        static_cast<T*>(W)[i] = x;
        static_cast<T*>(W)[n + i] = y;
      } else {
        static_cast<std::complex<T>*>(W)[i] = {x, y};
      }
    }
    return status;
  }
}
inline Status Xgeev(cusolverDnParams_t, cusolverEigMode_t left, cusolverEigMode_t right, Index n, cudaDataType type,
                    void* A, Index lda, cudaDataType typeW, void* W, cudaDataType typeVL, void*, Index,
                    cudaDataType typeVR, void* VR, Index ldvr, cudaDataType compute, void*, size_t, void*, size_t,
                    int* info) {
  MXMACA_REQUIRE(left == CUSOLVER_EIG_MODE_NOVECTOR && valid(right) && n >= 0 && lda >= least(n));
  const bool vectors = right == CUSOLVER_EIG_MODE_VECTOR;
  MXMACA_REQUIRE(!vectors || (ldvr >= least(n) && VR != nullptr));
  const bool complexValues = (type == CUDA_R_32F && typeW == CUDA_C_32F) || (type == CUDA_R_64F && typeW == CUDA_C_64F);
  if ((typeW != type && !complexValues) || typeVL != type || typeVR != type || compute != type) {
    return CUSOLVER_STATUS_NOT_SUPPORTED;
  }
  return MXMACA_TYPED(type, T, {
    return geev<T>(vectors ? 'V' : 'N', n, static_cast<T*>(A), lda, typeW, W, vectors ? static_cast<T*>(VR) : nullptr,
                   ldvr, info);
  });
}
#undef MXMACA_TYPED

}  // namespace cusolver
}  // namespace mxmaca
