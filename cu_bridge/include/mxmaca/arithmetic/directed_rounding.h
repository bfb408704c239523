// Floating-point operations in a chosen rounding mode: the processor's own, switched for the one operation.
#pragma once

#include "narrow_float.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

namespace mxmaca {

class RoundingScope {
 public:
#ifdef __SSE2__
  explicit RoundingScope(Rounding mode) : old_(_mm_getcsr()) {
    const unsigned field = mode == Rounding::zero   ? 0x6000
                           : mode == Rounding::up   ? 0x4000
                           : mode == Rounding::down ? 0x2000
                                                    : 0;
    _mm_setcsr((old_ & ~0x6000U) | field);
  }
  ~RoundingScope() { _mm_setcsr(old_); }

 private:
  unsigned old_;
#else
  explicit RoundingScope(Rounding mode) : old_(fegetround()) {
    fesetround(mode == Rounding::zero   ? FE_TOWARDZERO
               : mode == Rounding::up   ? FE_UPWARD
               : mode == Rounding::down ? FE_DOWNWARD
                                        : FE_TONEAREST);
  }
  ~RoundingScope() { fesetround(old_); }

 private:
  int old_;
#endif
};

// Keeps the compiler from moving an operation across the switch, folding it, or fusing it with a neighbour.
template <class T>
MXMACA_HD void pin(T& value) {
#ifdef __SSE2__
  if constexpr (T(0.5) == T(0)) {
    asm volatile("" : "+r"(value)::"memory");
  } else {
    asm volatile("" : "+x"(value)::"memory");
  }
#else
  asm volatile("" : "+m"(value)::"memory");
#endif
}

template <Rounding mode, class Operation, class... Operand>
MXMACA_HD auto in_mode(Operation operation, Operand... operand) {
  if constexpr (mode == Rounding::nearest) {
    auto result = operation(operand...);
    pin(result);
    return result;
  } else {
    const RoundingScope scope(mode);
    (pin(operand), ...);
    auto result = operation(operand...);
    pin(result);
    return result;
  }
}

struct Add {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a * b;
  }
};
struct Divide {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a / b;
  }
};
struct Reciprocal {
  template <class T>
  __host__ __device__ T operator()(T a) const {
    return T(1) / a;
  }
};
struct SquareRoot {
  __host__ __device__ float operator()(float a) const { return __builtin_sqrtf(a); }
  __host__ __device__ double operator()(double a) const { return __builtin_sqrt(a); }
};
struct FusedMultiplyAdd {
  __host__ __device__ float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
  __host__ __device__ double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
};
template <class To>
struct Convert {
  template <class From>
  __host__ __device__ To operator()(From a) const {
    return static_cast<To>(a);
  }
};

}  // namespace mxmaca
