// What each family of functions.txt computes. Scalars are read through their pointers whatever the pointer mode:
// simulated device memory is memory of the host, and work is complete when its launch returns.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "gemm.h"
#include "handle.h"
#include "numbers.h"
#include "openblas.h"

#pragma GCC visibility push(default)
#include "cublas_v2.h"
#pragma GCC visibility pop

#define MXMACA_EXPORT __attribute__((visibility("default")))

MXMACA_OBJECT(cublasContext, Cublas);

namespace mxmaca {
namespace cublas {

using Status = cublasStatus_t;
using Index = int64_t;

// Runs the work of a function for a handle: its stream must be one, and what goes wrong becomes a status.
template <class Work>
Status guarded(cublasHandle_t handle, Work&& work) {
  if (!live(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mcStreamCheck(static_cast<mcStream_t>(handleOf(handle)->stream)) != mcSuccess) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  try {
    return work();
  } catch (const BadPivot&) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  } catch (const BlasMissing&) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  } catch (const std::bad_alloc&) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
}

// ---- Arguments --------------------------------------------------------------------------------------------------------
#define MXMACA_REQUIRE(condition)                         \
  do {                                                    \
    if (!(condition)) return CUBLAS_STATUS_INVALID_VALUE; \
  } while (false)

constexpr Status kInvalidValue = CUBLAS_STATUS_INVALID_VALUE;
constexpr Status kNotSupported = CUBLAS_STATUS_NOT_SUPPORTED;
inline bool known(cudaDataType type) { return elementBytes(type) != 0; }

inline bool valid(cublasGemmAlgo_t algorithm) {
  return (algorithm >= CUBLAS_GEMM_DEFAULT && algorithm <= CUBLAS_GEMM_ALGO23) ||
         (algorithm >= CUBLAS_GEMM_DEFAULT_TENSOR_OP && algorithm <= CUBLAS_GEMM_ALGO15_TENSOR_OP) ||
         algorithm == CUBLAS_GEMM_AUTOTUNE;
}
inline bool valid(cublasOperation_t op) { return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C; }
inline bool valid(cublasFillMode_t uplo) { return uplo == CUBLAS_FILL_MODE_LOWER || uplo == CUBLAS_FILL_MODE_UPPER; }
inline bool valid(cublasDiagType_t diag) { return diag == CUBLAS_DIAG_NON_UNIT || diag == CUBLAS_DIAG_UNIT; }
inline bool valid(cublasSideMode_t side) { return side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT; }
inline char letter(cublasOperation_t op) { return "NTC"[op]; }
inline char letter(cublasFillMode_t uplo) { return uplo == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U'; }
inline char letter(cublasDiagType_t diag) { return diag == CUBLAS_DIAG_UNIT ? 'U' : 'N'; }
inline char letter(cublasSideMode_t side) { return side == CUBLAS_SIDE_LEFT ? 'L' : 'R'; }
inline Index least(Index rows) { return std::max<Index>(rows, 1); }

// BLAS walks a vector with a negative increment from its far end.
inline Index first(Index n, Index increment) { return increment < 0 ? (1 - n) * increment : 0; }

// ---- Level 1 ----------------------------------------------------------------------------------------------------------
template <class T, class Better>
Index extreme(Index n, const T* x, Index incx, Better&& better) {
  if (n <= 0 || incx <= 0) return 0;
  const auto magnitude = [](T value) {
    if constexpr (kComplex<T>) {
      return std::fabs(value.real()) + std::fabs(value.imag());
    } else {
      return std::fabs(value);
    }
  };
  Index best = 0;
  auto found = magnitude(x[0]);
  for (Index i = 1; i < n; ++i) {
    const auto candidate = magnitude(x[i * incx]);
    if (better(candidate, found)) {
      found = candidate;
      best = i;
    }
  }
  return best + 1;
}
template <class T, class Integer>
Status amax(Index n, const T* x, Index incx, Integer* result) {
  MXMACA_REQUIRE(result != nullptr);
  *result = static_cast<Integer>(extreme(n, x, incx, [](auto a, auto b) { return a > b; }));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class Integer>
Status amin(Index n, const T* x, Index incx, Integer* result) {
  MXMACA_REQUIRE(result != nullptr);
  *result = static_cast<Integer>(extreme(n, x, incx, [](auto a, auto b) { return a < b; }));
  return CUBLAS_STATUS_SUCCESS;
}

// Their names have a letter for the result and one for the vector: sasum, dasum, scasum, dzasum.
#define MXMACA_NORM(family)                                                                     \
  template <class T>                                                                            \
  Status family(Index n, const T* x, Index incx, Real<T>* result) {                             \
    MXMACA_REQUIRE(result != nullptr);                                                          \
    constexpr const char* complex = sizeof(Real<T>) == 4 ? "?c" #family "_" : "?z" #family "_"; \
    const auto function = MXMACA_BLAS(Real<T>, kComplex<T> ? complex : "?" #family "_",         \
                                      Real<T>(const BlasInt*, const T*, const BlasInt*));       \
    *result = n <= 0 || incx <= 0 ? 0 : function(&n, x, &incx);                                 \
    return CUBLAS_STATUS_SUCCESS;                                                               \
  }
MXMACA_NORM(asum)
MXMACA_NORM(nrm2)
#undef MXMACA_NORM

template <class T>
Status axpy(Index n, const T* alpha, const T* x, Index incx, T* y, Index incy) {
  MXMACA_REQUIRE(alpha != nullptr);
  if (n > 0) {
    MXMACA_BLAS(T, "?axpy_", void(const BlasInt*, const T*, const T*, const BlasInt*, T*, const BlasInt*))
    (&n, alpha, x, &incx, y, &incy);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status copy(Index n, const T* x, Index incx, T* y, Index incy) {
  if (n > 0) {
    MXMACA_BLAS(T, "?copy_", void(const BlasInt*, const T*, const BlasInt*, T*, const BlasInt*))(&n, x, &incx, y,
                                                                                                 &incy);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status swap(Index n, T* x, Index incx, T* y, Index incy) {
  if (n > 0) {
    MXMACA_BLAS(T, "?swap_", void(const BlasInt*, T*, const BlasInt*, T*, const BlasInt*))(&n, x, &incx, y, &incy);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
T dotOf(Index n, const T* x, Index incx, const T* y, Index incy, bool conjugated) {
  T sum(0);
  if (n <= 0) return sum;
  if constexpr (kComplex<T>) {
    using Function = void(BlasInt, const T*, BlasInt, const T*, BlasInt, T*);
    (conjugated ? MXMACA_BLAS(T, "cblas_?dotc_sub", Function) : MXMACA_BLAS(T, "cblas_?dotu_sub", Function))(
        n, x, incx, y, incy, &sum);
  } else {
    (void)conjugated;
    sum = MXMACA_BLAS(T, "cblas_?dot", T(BlasInt, const T*, BlasInt, const T*, BlasInt))(n, x, incx, y, incy);
  }
  return sum;
}
template <class T>
Status dot(Index n, const T* x, Index incx, const T* y, Index incy, T* result) {
  MXMACA_REQUIRE(result != nullptr);
  *result = dotOf(n, x, incx, y, incy, false);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status dotc(Index n, const T* x, Index incx, const T* y, Index incy, T* result) {
  MXMACA_REQUIRE(result != nullptr);
  *result = dotOf(n, x, incx, y, incy, true);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class Factor>
Status scaleBy(Index n, const Factor* alpha, T* x, Index incx) {
  MXMACA_REQUIRE(alpha != nullptr);
  const Factor factor = *alpha;
  for (Index i = 0; incx > 0 && i < n; ++i) x[i * incx] *= factor;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status scal(Index n, const T* alpha, T* x, Index incx) {
  return scaleBy(n, alpha, x, incx);
}
template <class T>
Status scalReal(Index n, const Real<T>* alpha, T* x, Index incx) {
  return scaleBy(n, alpha, x, incx);
}
template <class T, class Sine>
Status rotate(Index n, T* x, Index incx, T* y, Index incy, const Real<T>* c, const Sine* s) {
  MXMACA_REQUIRE(c != nullptr && s != nullptr);
  const Real<T> cosine = *c;
  const Sine sine = *s;
  x += n > 0 ? first(n, incx) : 0;
  y += n > 0 ? first(n, incy) : 0;
  for (Index i = 0; i < n; ++i) {
    const T a = x[i * incx];
    const T b = y[i * incy];
    x[i * incx] = cosine * a + sine * b;
    if constexpr (kComplex<Sine>) {
      y[i * incy] = cosine * b - std::conj(sine) * a;
    } else {
      y[i * incy] = cosine * b - sine * a;
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status rot(Index n, T* x, Index incx, T* y, Index incy, const Real<T>* c, const T* s) {
  return rotate(n, x, incx, y, incy, c, s);
}
template <class T>
Status rotReal(Index n, T* x, Index incx, T* y, Index incy, const Real<T>* c, const Real<T>* s) {
  return rotate(n, x, incx, y, incy, c, s);
}
template <class T>
Status rotg(T* a, T* b, Real<T>* c, T* s) {
  MXMACA_REQUIRE(a != nullptr && b != nullptr && c != nullptr && s != nullptr);
  MXMACA_BLAS(T, "?rotg_", void(T*, T*, Real<T>*, T*))(a, b, c, s);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status rotm(Index n, T* x, Index incx, T* y, Index incy, const T* param) {
  MXMACA_REQUIRE(param != nullptr);
  if (n > 0) {
    MXMACA_BLAS(T, "?rotm_", void(const BlasInt*, T*, const BlasInt*, T*, const BlasInt*, const T*))
    (&n, x, &incx, y, &incy, param);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status rotmg(T* d1, T* d2, T* x1, const T* y1, T* param) {
  MXMACA_REQUIRE(d1 != nullptr && d2 != nullptr && x1 != nullptr && y1 != nullptr && param != nullptr);
  MXMACA_BLAS(T, "?rotmg_", void(T*, T*, T*, const T*, T*))(d1, d2, x1, y1, param);
  return CUBLAS_STATUS_SUCCESS;
}

// ---- Level 2 ----------------------------------------------------------------------------------------------------------
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
  if (*alpha != T(0)) addRankTwo(uplo, n, *alpha, x, incx, y, incy, A, lda, false);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status her2(cublasFillMode_t uplo, Index n, const T* alpha, const T* x, Index incx, const T* y, Index incy, T* A,
            Index lda) {
  MXMACA_REQUIRE(valid(uplo) && n >= 0 && incx != 0 && incy != 0 && lda >= least(n) && alpha != nullptr);
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

// ---- Level 3 ----------------------------------------------------------------------------------------------------------
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

// ---- Extensions -------------------------------------------------------------------------------------------------------
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
  for (Index j = 0; j < n; ++j) {
    const Index low = uplo == CUBLAS_FILL_MODE_LOWER ? j : 0;
    const Index high = uplo == CUBLAS_FILL_MODE_LOWER ? n : j + 1;
    for (Index i = low; i < high; ++i) *AP++ = A[i + j * lda];
  }
  return CUBLAS_STATUS_SUCCESS;
}

// ---- Types chosen at run time -------------------------------------------------------------------------------------------
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
