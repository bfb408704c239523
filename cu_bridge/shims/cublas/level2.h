// Families of level 2: a matrix and vectors.
#pragma once

#include "arguments.h"

namespace mxmaca {
namespace cublas {

template <class T>
Status gemv(cublasOperation_t trans, Index m, Index n, const T* alpha, const T* A, Index lda, const T* x, Index incx,
            const T* beta, T* y, Index incy) {
  MXMACA_REQUIRE(valid(trans) && m >= 0 && n >= 0 && lda >= least(m) && incx != 0 && incy != 0);
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
  const char t = letter(trans);
  if (m == 0 || n == 0) {  // BLAS leaves y as it is where one side is empty
    return CUBLAS_STATUS_SUCCESS;
  }
  MXMACA_BLAS(T, "?gemv_",
              void(const char*, const BlasInt*, const BlasInt*, const T*, const T*, const BlasInt*, const T*,
                   const BlasInt*, const T*, T*, const BlasInt*))
  (&t, &m, &n, alpha, A, &lda, x, &incx, beta, y, &incy);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status gbmv(cublasOperation_t trans, Index m, Index n, Index kl, Index ku, const T* alpha, const T* A, Index lda,
            const T* x, Index incx, const T* beta, T* y, Index incy) {
  MXMACA_REQUIRE(valid(trans) && m >= 0 && n >= 0 && kl >= 0 && ku >= 0 && lda >= kl + ku + 1);
  MXMACA_REQUIRE(incx != 0 && incy != 0 && alpha != nullptr && beta != nullptr);
  const char t = letter(trans);
  MXMACA_BLAS(T, "?gbmv_",
              void(const char*, const BlasInt*, const BlasInt*, const BlasInt*, const BlasInt*, const T*, const T*,
                   const BlasInt*, const T*, const BlasInt*, const T*, T*, const BlasInt*))
  (&t, &m, &n, &kl, &ku, alpha, A, &lda, x, &incx, beta, y, &incy);
  return CUBLAS_STATUS_SUCCESS;
}

// trmv, trsv: a triangle and a vector.
#define MXMACA_TRIANGLE(family)                                                                                        \
  template <class T>                                                                                                   \
  Status family(cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, Index n, const T* A, Index lda, \
                T* x, Index incx) {                                                                                    \
    MXMACA_REQUIRE(valid(uplo) && valid(trans) && valid(diag) && n >= 0 && lda >= least(n) && incx != 0);              \
    const char u = letter(uplo), t = letter(trans), d = letter(diag);                                                  \
    MXMACA_BLAS(                                                                                                       \
        T, "?" #family "_",                                                                                            \
        void(const char*, const char*, const char*, const BlasInt*, const T*, const BlasInt*, T*, const BlasInt*))     \
    (&u, &t, &d, &n, A, &lda, x, &incx);                                                                               \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }
MXMACA_TRIANGLE(trmv)
MXMACA_TRIANGLE(trsv)
#undef MXMACA_TRIANGLE

// tbmv, tbsv: with k diagonals beside the main one.
#define MXMACA_BAND(family)                                                                                           \
  template <class T>                                                                                                  \
  Status family(cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, Index n, Index k, const T* A,  \
                Index lda, T* x, Index incx) {                                                                        \
    MXMACA_REQUIRE(valid(uplo) && valid(trans) && valid(diag) && n >= 0 && k >= 0 && lda >= k + 1 && incx != 0);      \
    const char u = letter(uplo), t = letter(trans), d = letter(diag);                                                 \
    MXMACA_BLAS(T, "?" #family "_",                                                                                   \
                void(const char*, const char*, const char*, const BlasInt*, const BlasInt*, const T*, const BlasInt*, \
                     T*, const BlasInt*))                                                                             \
    (&u, &t, &d, &n, &k, A, &lda, x, &incx);                                                                          \
    return CUBLAS_STATUS_SUCCESS;                                                                                     \
  }
MXMACA_BAND(tbmv)
MXMACA_BAND(tbsv)
#undef MXMACA_BAND

// tpmv, tpsv: packed.
#define MXMACA_PACKED(family)                                                                                      \
  template <class T>                                                                                               \
  Status family(cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, Index n, const T* AP, T* x, \
                Index incx) {                                                                                      \
    MXMACA_REQUIRE(valid(uplo) && valid(trans) && valid(diag) && n >= 0 && incx != 0);                             \
    const char u = letter(uplo), t = letter(trans), d = letter(diag);                                              \
    MXMACA_BLAS(T, "?" #family "_",                                                                                \
                void(const char*, const char*, const char*, const BlasInt*, const T*, T*, const BlasInt*))         \
    (&u, &t, &d, &n, AP, x, &incx);                                                                                \
    return CUBLAS_STATUS_SUCCESS;                                                                                  \
  }
MXMACA_PACKED(tpmv)
MXMACA_PACKED(tpsv)
#undef MXMACA_PACKED

// symv, hemv: half of a matrix is stored. The complex symv is LAPACK's.
#define MXMACA_HALF_STORED(family)                                                                              \
  template <class T>                                                                                            \
  Status family(cublasFillMode_t uplo, Index n, const T* alpha, const T* A, Index lda, const T* x, Index incx,  \
                const T* beta, T* y, Index incy) {                                                              \
    MXMACA_REQUIRE(valid(uplo) && n >= 0 && lda >= least(n) && incx != 0 && incy != 0);                         \
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);                                                        \
    const char u = letter(uplo);                                                                                \
    MXMACA_BLAS(T, "?" #family "_",                                                                             \
                void(const char*, const BlasInt*, const T*, const T*, const BlasInt*, const T*, const BlasInt*, \
                     const T*, T*, const BlasInt*))                                                             \
    (&u, &n, alpha, A, &lda, x, &incx, beta, y, &incy);                                                         \
    return CUBLAS_STATUS_SUCCESS;                                                                               \
  }
MXMACA_HALF_STORED(symv)
MXMACA_HALF_STORED(hemv)
#undef MXMACA_HALF_STORED

template <class T>
Status sbmv(cublasFillMode_t uplo, Index n, Index k, const T* alpha, const T* A, Index lda, const T* x, Index incx,
            const T* beta, T* y, Index incy) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && k >= 0 && lda >= k + 1 && incx != 0 && incy != 0);
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
  const char u = letter(uplo);
  MXMACA_BLAS(T, kComplex<T> ? "?hbmv_" : "?sbmv_",
              void(const char*, const BlasInt*, const BlasInt*, const T*, const T*, const BlasInt*, const T*,
                   const BlasInt*, const T*, T*, const BlasInt*))
  (&u, &n, &k, alpha, A, &lda, x, &incx, beta, y, &incy);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status spmv(cublasFillMode_t uplo, Index n, const T* alpha, const T* AP, const T* x, Index incx, const T* beta, T* y,
            Index incy) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && incx != 0 && incy != 0 && alpha != nullptr && beta != nullptr);
  const char u = letter(uplo);
  MXMACA_BLAS(
      T, kComplex<T> ? "?hpmv_" : "?spmv_",
      void(const char*, const BlasInt*, const T*, const T*, const T*, const BlasInt*, const T*, T*, const BlasInt*))
  (&u, &n, alpha, AP, x, &incx, beta, y, &incy);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status outer(const char* pattern, Index m, Index n, const T* alpha, const T* x, Index incx, const T* y, Index incy,
             T* A, Index lda) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && incx != 0 && incy != 0 && lda >= least(m) && alpha != nullptr);
  using Function = void(const BlasInt*, const BlasInt*, const T*, const T*, const BlasInt*, const T*, const BlasInt*,
                        T*, const BlasInt*);
  reinterpret_cast<Function*>(openblasTyped(pattern, Scalar<T>::letter))(&m, &n, alpha, x, &incx, y, &incy, A, &lda);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status ger(Index m, Index n, const T* alpha, const T* x, Index incx, const T* y, Index incy, T* A, Index lda) {
  return outer(kComplex<T> ? "?geru_" : "?ger_", m, n, alpha, x, incx, y, incy, A, lda);
}
template <class T>
Status gerc(Index m, Index n, const T* alpha, const T* x, Index incx, const T* y, Index incy, T* A, Index lda) {
  return outer("?gerc_", m, n, alpha, x, incx, y, incy, A, lda);
}
template <class T, class Factor>
Status rankOne(const char* pattern, cublasFillMode_t uplo, Index n, const Factor* alpha, const T* x, Index incx, T* A,
               Index lda) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && incx != 0 && lda >= least(n) && alpha != nullptr);
  const char u = letter(uplo);
  using Function = void(const char*, const BlasInt*, const Factor*, const T*, const BlasInt*, T*, const BlasInt*);
  reinterpret_cast<Function*>(openblasTyped(pattern, Scalar<T>::letter))(&u, &n, alpha, x, &incx, A, &lda);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status syr(cublasFillMode_t uplo, Index n, const T* alpha, const T* x, Index incx, T* A, Index lda) {
  return rankOne("?syr_", uplo, n, alpha, x, incx, A, lda);
}
template <class T>
Status her(cublasFillMode_t uplo, Index n, const Real<T>* alpha, const T* x, Index incx, T* A, Index lda) {
  return rankOne("?her_", uplo, n, alpha, x, incx, A, lda);
}
template <class T>
Status spr(cublasFillMode_t uplo, Index n, const Real<T>* alpha, const T* x, Index incx, T* AP) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && incx != 0 && alpha != nullptr);
  const char u = letter(uplo);
  MXMACA_BLAS(T, kComplex<T> ? "?hpr_" : "?spr_",
              void(const char*, const BlasInt*, const Real<T>*, const T*, const BlasInt*, T*))
  (&u, &n, alpha, x, &incx, AP);
  return CUBLAS_STATUS_SUCCESS;
}
// A := alpha x op(y)' + the same with x and y exchanged, on one triangle.
template <class T>
void addRankTwo(cublasFillMode_t uplo, Index n, T alpha, const T* x, Index incx, const T* y, Index incy, T* A,
                Index lda, bool hermitian) {
  x += first(n, incx);
  y += first(n, incy);
  const auto other = [hermitian](T value) { return hermitian ? conjugate(value) : value; };
  for (Index j = 0; j < n; ++j) {
    const Index low = uplo == CUBLAS_FILL_MODE_LOWER ? j : 0;
    const Index high = uplo == CUBLAS_FILL_MODE_LOWER ? n : j + 1;
    const T first = alpha * other(y[j * incy]);
    const T second = other(alpha) * other(x[j * incx]);
    for (Index i = low; i < high; ++i) A[i + j * lda] += x[i * incx] * first + y[i * incy] * second;
    if constexpr (kComplex<T>) {
      if (hermitian) A[j + j * lda] = A[j + j * lda].real();
    }
  }
}
template <class T>
Status syr2(cublasFillMode_t uplo, Index n, const T* alpha, const T* x, Index incx, const T* y, Index incy, T* A,
            Index lda) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && incx != 0 && incy != 0 && lda >= least(n) && alpha != nullptr);
  reachData();
  if (*alpha != T(0)) addRankTwo(uplo, n, *alpha, x, incx, y, incy, A, lda, false);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status her2(cublasFillMode_t uplo, Index n, const T* alpha, const T* x, Index incx, const T* y, Index incy, T* A,
            Index lda) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && incx != 0 && incy != 0 && lda >= least(n) && alpha != nullptr);
  reachData();
  if (*alpha != T(0)) addRankTwo(uplo, n, *alpha, x, incx, y, incy, A, lda, true);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status spr2(cublasFillMode_t uplo, Index n, const T* alpha, const T* x, Index incx, const T* y, Index incy, T* AP) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && incx != 0 && incy != 0 && alpha != nullptr);
  const char u = letter(uplo);
  MXMACA_BLAS(T, kComplex<T> ? "?hpr2_" : "?spr2_",
              void(const char*, const BlasInt*, const T*, const T*, const BlasInt*, const T*, const BlasInt*, T*))
  (&u, &n, alpha, x, &incx, y, &incy, AP);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status gemvBatched(cublasOperation_t trans, Index m, Index n, const T* alpha, const T* const* A, Index lda,
                   const T* const* x, Index incx, const T* beta, T* const* y, Index incy, Index batch) {
  MXMACA_REQUIRE(batch >= 0);
  for (Index i = 0; i < batch; ++i) {
    const Status status = gemv(trans, m, n, alpha, at(A, i), lda, at(x, i), incx, beta, at(y, i), incy);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status gemvStridedBatched(cublasOperation_t trans, Index m, Index n, const T* alpha, const T* A, Index lda,
                          Index strideA, const T* x, Index incx, Index strideX, const T* beta, T* y, Index incy,
                          Index strideY, Index batch) {
  MXMACA_REQUIRE(batch >= 0);
  for (Index i = 0; i < batch; ++i) {
    const Status status =
        gemv(trans, m, n, alpha, A + i * strideA, lda, x + i * strideX, incx, beta, y + i * strideY, incy);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace cublas
}  // namespace mxmaca
