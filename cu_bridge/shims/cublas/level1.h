// Families of level 1: vectors.
#pragma once

#include "arguments.h"

namespace mxmaca {
namespace cublas {

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
  reachData();
  *result = static_cast<Integer>(extreme(n, x, incx, [](auto a, auto b) { return a > b; }));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class Integer>
Status amin(Index n, const T* x, Index incx, Integer* result) {
  MXMACA_REQUIRE(result != nullptr);
  reachData();
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
  reachData();
  *result = dotOf(n, x, incx, y, incy, false);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Status dotc(Index n, const T* x, Index incx, const T* y, Index incy, T* result) {
  MXMACA_REQUIRE(result != nullptr);
  reachData();
  *result = dotOf(n, x, incx, y, incy, true);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class Factor>
Status scaleBy(Index n, const Factor* alpha, T* x, Index incx) {
  MXMACA_REQUIRE(alpha != nullptr);
  reachData();
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
  reachData();
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

}  // namespace cublas
}  // namespace mxmaca
