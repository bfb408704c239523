// Families of level 3: matrices.
#pragma once

#include "arguments.h"

namespace mxmaca {
namespace cublas {

inline Status checkGemm(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, Index lda,
                        Index ldb, Index ldc) {
  MXMACA_REQUIRE(valid(transa) && valid(transb) && m >= 0 && n >= 0 && k >= 0);
  MXMACA_REQUIRE(lda >= least(transa == CUBLAS_OP_N ? m : k) && ldb >= least(transb == CUBLAS_OP_N ? k : n));
  MXMACA_REQUIRE(ldc >= least(m));
  return CUBLAS_STATUS_SUCCESS;
}
// One product after its arguments have been checked.
template <class T>
void gemmOne(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const T* alpha, const T* A,
             Index lda, const T* B, Index ldb, const T* beta, T* C, Index ldc) {
  if (m == 0 || n == 0) return;
  mxmaca::gemm<T>(letter(transa), letter(transb), m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc);
}
template <>
inline void gemmOne(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const Half* alpha,
                    const Half* A, Index lda, const Half* B, Index ldb, const Half* beta, Half* C, Index ldc) {
  Product p;
  p.transA = letter(transa);
  p.transB = letter(transb);
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = A;
  p.lda = lda;
  p.b = B;
  p.ldb = ldb;
  p.c = p.d = C;
  p.ldc = p.ldd = ldc;
  p.aType = p.bType = p.cType = p.dType = p.scaleType = CUDA_R_16F;
  p.alpha = alpha;
  p.beta = beta;
  p.arithmetic = Arithmetic::Half;
  multiply(p);
}
template <class T>
Status gemm(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const T* alpha, const T* A,
            Index lda, const T* B, Index ldb, const T* beta, T* C, Index ldc) {
  const Status status = checkGemm(transa, transb, m, n, k, lda, ldb, ldc);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
  gemmOne(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status gemmBatched(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const T* alpha,
                   const T* const* A, Index lda, const T* const* B, Index ldb, const T* beta, T* const* C, Index ldc,
                   Index batch) {
  const Status status = checkGemm(transa, transb, m, n, k, lda, ldb, ldc);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && batch >= 0);
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  for (Index i = 0; i < batch; ++i)
    gemmOne(transa, transb, m, n, k, alpha, at(A, i), lda, at(B, i), ldb, beta, at(C, i), ldc);
  return CUBLAS_STATUS_SUCCESS;
}
// Nothing is computed where one of the groups is wrong.
template <class Element, class Integer>
Status checkGroups(const cublasOperation_t* transa, const cublasOperation_t* transb, const Integer* m, const Integer* n,
                   const Integer* k, const Element* const* A, const Integer* lda, const Element* const* B,
                   const Integer* ldb, Element* const* C, const Integer* ldc, Index groups, const Integer* sizes) {
  for (Index g = 0, first = 0; g < groups; first += sizes[g++]) {
    MXMACA_REQUIRE(sizes[g] >= 0);
    const Status status = checkGemm(transa[g], transb[g], m[g], n[g], k[g], lda[g], ldb[g], ldc[g]);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (m[g] == 0 || n[g] == 0) continue;
    MXMACA_REQUIRE(!hasNull(C + first, sizes[g]));
    MXMACA_REQUIRE(k[g] == 0 || (!hasNull(A + first, sizes[g]) && !hasNull(B + first, sizes[g])));
  }
  return CUBLAS_STATUS_SUCCESS;
}
// Groups of products, each group with shapes and scalars of its own.
template <class T, class Integer>
Status gemmGroupedBatched(const cublasOperation_t* transa, const cublasOperation_t* transb, const Integer* m,
                          const Integer* n, const Integer* k, const T* alpha, const T* const* A, const Integer* lda,
                          const T* const* B, const Integer* ldb, const T* beta, T* const* C, const Integer* ldc,
                          Index groups, const Integer* sizes) {
  MXMACA_REQUIRE(groups >= 0);
  const Status status = checkGroups(transa, transb, m, n, k, A, lda, B, ldb, C, ldc, groups, sizes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  for (Index g = 0, first = 0; g < groups; first += sizes[g++]) {
    const Status status = gemmBatched(transa[g], transb[g], m[g], n[g], k[g], alpha + g, A + first, lda[g], B + first,
                                      ldb[g], beta + g, C + first, ldc[g], static_cast<Index>(sizes[g]));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status gemmStridedBatched(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const T* alpha,
                          const T* A, Index lda, Index strideA, const T* B, Index ldb, Index strideB, const T* beta,
                          T* C, Index ldc, Index strideC, Index batch) {
  const Status status = checkGemm(transa, transb, m, n, k, lda, ldb, ldc);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && batch >= 0);
  for (Index i = 0; i < batch; ++i) {
    gemmOne(transa, transb, m, n, k, alpha, A + i * strideA, lda, B + i * strideB, ldb, beta, C + i * strideC, ldc);
  }
  return CUBLAS_STATUS_SUCCESS;
}

#define MXMACA_SYMMETRIC_PRODUCT(family)                                                                               \
  template <class T>                                                                                                   \
  Status family(cublasSideMode_t side, cublasFillMode_t uplo, Index m, Index n, const T* alpha, const T* A, Index lda, \
                const T* B, Index ldb, const T* beta, T* C, Index ldc) {                                               \
    MXMACA_REQUIRE(valid(side) && valid(uplo) && m >= 0 && n >= 0 && ldb >= least(m) && ldc >= least(m));              \
    MXMACA_REQUIRE(lda >= least(side == CUBLAS_SIDE_LEFT ? m : n) && alpha != nullptr && beta != nullptr);             \
    const char s = letter(side), u = letter(uplo);                                                                     \
    MXMACA_BLAS(T, "?" #family "_",                                                                                    \
                void(const char*, const char*, const BlasInt*, const BlasInt*, const T*, const T*, const BlasInt*,     \
                     const T*, const BlasInt*, const T*, T*, const BlasInt*))                                          \
    (&s, &u, &m, &n, alpha, A, &lda, B, &ldb, beta, C, &ldc);                                                          \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }
MXMACA_SYMMETRIC_PRODUCT(symm)
MXMACA_SYMMETRIC_PRODUCT(hemm)
#undef MXMACA_SYMMETRIC_PRODUCT

// The rank-k updates: which operations BLAS has differs. For a real matrix C means T.
template <class T>
bool rankOperation(cublasOperation_t& trans, bool hermitian) {
  if (!valid(trans)) return false;
  if (!kComplex<T> && trans == CUBLAS_OP_C) trans = CUBLAS_OP_T;
  return trans == CUBLAS_OP_N || trans == (hermitian ? CUBLAS_OP_C : CUBLAS_OP_T);
}
template <class T, class Factor>
Status rankUpdate(const char* pattern, bool hermitian, cublasFillMode_t uplo, cublasOperation_t trans, Index n, Index k,
                  const Factor* alpha, const T* A, Index lda, const Factor* beta, T* C, Index ldc) {
  MXMACA_REQUIRE(valid(uplo) && rankOperation<T>(trans, hermitian) && n >= 0 && k >= 0 && ldc >= least(n));
  MXMACA_REQUIRE(lda >= least(trans == CUBLAS_OP_N ? n : k) && alpha != nullptr && beta != nullptr);
  const char u = letter(uplo), t = letter(trans);
  using Function = void(const char*, const char*, const BlasInt*, const BlasInt*, const Factor*, const T*,
                        const BlasInt*, const Factor*, T*, const BlasInt*);
  reinterpret_cast<Function*>(openblasTyped(pattern, Scalar<T>::letter))(&u, &t, &n, &k, alpha, A, &lda, beta, C, &ldc);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status syrk(cublasFillMode_t uplo, cublasOperation_t trans, Index n, Index k, const T* alpha, const T* A, Index lda,
            const T* beta, T* C, Index ldc) {
  return rankUpdate("?syrk_", false, uplo, trans, n, k, alpha, A, lda, beta, C, ldc);
}
template <class T>
Status herk(cublasFillMode_t uplo, cublasOperation_t trans, Index n, Index k, const Real<T>* alpha, const T* A,
            Index lda, const Real<T>* beta, T* C, Index ldc) {
  return rankUpdate("?herk_", true, uplo, trans, n, k, alpha, A, lda, beta, C, ldc);
}
template <class T, class Factor>
Status rankTwoUpdate(const char* pattern, bool hermitian, cublasFillMode_t uplo, cublasOperation_t trans, Index n,
                     Index k, const T* alpha, const T* A, Index lda, const T* B, Index ldb, const Factor* beta, T* C,
                     Index ldc) {
  MXMACA_REQUIRE(valid(uplo) && rankOperation<T>(trans, hermitian) && n >= 0 && k >= 0 && ldc >= least(n));
  const Index rows = least(trans == CUBLAS_OP_N ? n : k);
  MXMACA_REQUIRE(lda >= rows && ldb >= rows && alpha != nullptr && beta != nullptr);
  const char u = letter(uplo), t = letter(trans);
  using Function = void(const char*, const char*, const BlasInt*, const BlasInt*, const T*, const T*, const BlasInt*,
                        const T*, const BlasInt*, const Factor*, T*, const BlasInt*);
  reinterpret_cast<Function*>(openblasTyped(pattern, Scalar<T>::letter))(&u, &t, &n, &k, alpha, A, &lda, B, &ldb, beta,
                                                                         C, &ldc);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status syr2k(cublasFillMode_t uplo, cublasOperation_t trans, Index n, Index k, const T* alpha, const T* A, Index lda,
             const T* B, Index ldb, const T* beta, T* C, Index ldc) {
  return rankTwoUpdate("?syr2k_", false, uplo, trans, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
template <class T>
Status her2k(cublasFillMode_t uplo, cublasOperation_t trans, Index n, Index k, const T* alpha, const T* A, Index lda,
             const T* B, Index ldb, const Real<T>* beta, T* C, Index ldc) {
  return rankTwoUpdate("?her2k_", true, uplo, trans, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
// One triangle of alpha op(A) op(B)' + beta C, where the caller knows that the product is symmetric.
template <class T>
Status triangleOfProduct(bool hermitian, cublasFillMode_t uplo, cublasOperation_t trans, Index n, Index k, T alpha,
                         const T* A, Index lda, const T* B, Index ldb, T beta, T* C, Index ldc) {
  MXMACA_REQUIRE(valid(uplo) && rankOperation<T>(trans, hermitian) && n >= 0 && k >= 0 && ldc >= least(n));
  const Index rows = least(trans == CUBLAS_OP_N ? n : k);
  MXMACA_REQUIRE(lda >= rows && ldb >= rows);
  reachData();
  const std::unique_ptr<T[]> full(new T[static_cast<size_t>(std::max<Index>(n * n, 1))]());
  const char other = hermitian ? 'C' : 'T';
  if (n > 0 && k > 0 && alpha != T(0)) {
    const bool plain = trans == CUBLAS_OP_N;
    mxmaca::gemm<T>(plain ? 'N' : other, plain ? other : 'N', n, n, k, alpha, A, lda, B, ldb, T(0), full.get(), n);
  }
  for (Index j = 0; j < n; ++j) {
    const Index low = uplo == CUBLAS_FILL_MODE_LOWER ? j : 0;
    const Index high = uplo == CUBLAS_FILL_MODE_LOWER ? n : j + 1;
    for (Index i = low; i < high; ++i) {
      T& c = C[i + j * ldc];
      c = full[static_cast<size_t>(i + j * n)] + (beta == T(0) ? T(0) : beta * c);
      if constexpr (kComplex<T>) {
        if (hermitian && i == j) c = c.real();
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status syrkx(cublasFillMode_t uplo, cublasOperation_t trans, Index n, Index k, const T* alpha, const T* A, Index lda,
             const T* B, Index ldb, const T* beta, T* C, Index ldc) {
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
  return triangleOfProduct(false, uplo, trans, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc);
}
template <class T>
Status herkx(cublasFillMode_t uplo, cublasOperation_t trans, Index n, Index k, const T* alpha, const T* A, Index lda,
             const T* B, Index ldb, const Real<T>* beta, T* C, Index ldc) {
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
  return triangleOfProduct(true, uplo, trans, n, k, *alpha, A, lda, B, ldb, T(*beta), C, ldc);
}

inline Status checkTriangular(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                              cublasDiagType_t diag, Index m, Index n, Index lda, Index ldb) {
  MXMACA_REQUIRE(valid(side) && valid(uplo) && valid(trans) && valid(diag) && m >= 0 && n >= 0);
  MXMACA_REQUIRE(lda >= least(side == CUBLAS_SIDE_LEFT ? m : n) && ldb >= least(m));
  return CUBLAS_STATUS_SUCCESS;
}
#define MXMACA_TRIANGULAR(family)                                                                                      \
  template <class T>                                                                                                   \
  Status family##InPlace(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, \
                         Index m, Index n, const T* alpha, const T* A, Index lda, T* B, Index ldb) {                   \
    const Status status = checkTriangular(side, uplo, trans, diag, m, n, lda, ldb);                                    \
    if (status != CUBLAS_STATUS_SUCCESS) return status;                                                                \
    MXMACA_REQUIRE(alpha != nullptr);                                                                                  \
    const char s = letter(side), u = letter(uplo), t = letter(trans), d = letter(diag);                                \
    MXMACA_BLAS(T, "?" #family "_",                                                                                    \
                void(const char*, const char*, const char*, const char*, const BlasInt*, const BlasInt*, const T*,     \
                     const T*, const BlasInt*, T*, const BlasInt*))                                                    \
    (&s, &u, &t, &d, &m, &n, alpha, A, &lda, B, &ldb);                                                                 \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }
MXMACA_TRIANGULAR(trmm)
MXMACA_TRIANGULAR(trsm)
#undef MXMACA_TRIANGULAR

// cuBLAS's trmm writes to C what BLAS leaves in B.
template <class T>
Status trmm(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, Index m,
            Index n, const T* alpha, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
  const Status status = checkTriangular(side, uplo, trans, diag, m, n, lda, ldb);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  MXMACA_REQUIRE(alpha != nullptr && ldc >= least(m) && (B != C || ldb == ldc));
  reachData();
  if (B != C) {
    for (Index j = 0; j < n; ++j) std::copy(B + j * ldb, B + j * ldb + m, C + j * ldc);
  }
  return trmmInPlace(side, uplo, trans, diag, m, n, alpha, A, lda, C, ldc);
}
template <class T>
Status trsm(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, Index m,
            Index n, const T* alpha, const T* A, Index lda, T* B, Index ldb) {
  return trsmInPlace(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb);
}
template <class T>
Status trsmBatched(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag,
                   Index m, Index n, const T* alpha, const T* const* A, Index lda, T* const* B, Index ldb,
                   Index batch) {
  MXMACA_REQUIRE(batch >= 0);
  for (Index i = 0; i < batch; ++i) {
    const Status status = trsmInPlace(side, uplo, trans, diag, m, n, alpha, at(A, i), lda, at(B, i), ldb);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace cublas
}  // namespace mxmaca
