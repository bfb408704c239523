// CUDA's mathematics for device code, as far as the C library does not have it under the same name. Where nothing else
// is said, a float function is the double one rounded, so within 0.51 units in the last place.
#pragma once
#define __MATH_FUNCTIONS_H__

#ifdef __cplusplus
#include <math.h>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "math_constants.h"
#include "mxmaca/arithmetic/narrow_float.h"

namespace mxmaca {

// The part of x that sin(pi x) and cos(pi x) depend on, exactly: |result| <= 1/4; quadrant counts half units.
template <class T>
MXMACA_HD T half_turns(T x, int& quadrant) {
  const T whole = std::nearbyint(x * 2);
  quadrant = static_cast<int>(static_cast<long long>(std::fmod(whole, static_cast<T>(4)))) & 3;
  return x - whole / 2;
}
MXMACA_HD void sincospi_double(double x, double& sine, double& cosine) {
  if (!(x - x == 0)) {
    sine = cosine = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  int quadrant;
  const double rest = half_turns(x, quadrant);
  // pi * rest with the error of pi carried along.
  const double angle = rest * 3.14159265358979312;
  const double error = std::fma(rest, 3.14159265358979312, -angle) + rest * 1.2246467991473532e-16;
  const double s = std::sin(angle), c = std::cos(angle);
  const double sine_rest = s + c * error, cosine_rest = c - s * error;
  switch (quadrant) {
    case 0:
      sine = sine_rest;
      cosine = cosine_rest;
      break;
    case 1:
      sine = cosine_rest;
      cosine = -sine_rest;
      break;
    case 2:
      sine = -sine_rest;
      cosine = -cosine_rest;
      break;
    default:
      sine = -cosine_rest;
      cosine = sine_rest;
      break;
  }
  // Zeros as IEEE 754 has them: sine keeps x's sign, cosine's is positive.
  if (sine == 0) sine = std::copysign(0.0, x);
  if (cosine == 0) cosine = 0.0;
}

// Solves erfc(z) = y. First guess: S. Winitzki, "A handy approximation for the error function and its inverse" (2008);
// then Halley's iteration.
MXMACA_HD double inverse_erfc(double y) {
  if (!(y >= 0 && y <= 2)) return std::numeric_limits<double>::quiet_NaN();
  if (y == 0) return std::numeric_limits<double>::infinity();
  if (y == 2) return -std::numeric_limits<double>::infinity();
  const bool mirrored = y > 1;
  const double target = mirrored ? 2 - y : y;
  const double logarithm = std::log(target) + std::log1p(1 - target);
  const double t = 2 / (3.14159265358979324 * 0.147) + logarithm / 2;
  double z = std::sqrt(std::sqrt(t * t - logarithm / 0.147) - t);
  for (int i = 0; i < 8; ++i) {
    const double value = std::erfc(z);
    // The distance in the logarithm, which is nearly straight far out.
    const double step = (value - target) / (-1.1283791670955126 * std::exp(-z * z));
    const double change = step / (1 + z * step);
    z -= change;
    if (std::fabs(change) <= 1e-16 * std::fabs(z)) break;
  }
  return mirrored ? -z : z;
}
MXMACA_HD double inverse_erf(double x) {
  const double magnitude = std::fabs(x);
  if (!(magnitude < 1)) {
    return magnitude == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                          : std::numeric_limits<double>::quiet_NaN();
  }
  if (magnitude >= 0.5) return std::copysign(inverse_erfc(1 - magnitude), x);
  if (magnitude < 1e-9) return x * 0.88622692545275801;
  double z = magnitude * 0.88622692545275801 * (1 + magnitude * magnitude * 0.2617993877991494);
  for (int i = 0; i < 4; ++i) {
    const double step = (std::erf(z) - magnitude) / (1.1283791670955126 * std::exp(-z * z));
    z -= step / (1 + z * step);
  }
  return std::copysign(z, x);
}
MXMACA_HD double normal_cdf(double x) {
  const double z = x * -0.70710678118654757;
  const double error = std::fma(x, -0.70710678118654757, -z) + x * 4.8336466567264567e-17;
  const double value = std::erfc(z);
  if (!(value > 0) || !(error - error == 0)) return value / 2;
  return (value - 1.1283791670955126 * std::exp(-z * z) * error) / 2;
}
MXMACA_HD double scaled_erfc(double x) {
  if (x < 12) {
    const double square = x * x;
    if (square > 709.7) return std::numeric_limits<double>::infinity();
    const double scale = std::exp(square), error = std::fma(x, x, -square);
    const double value = scale * std::erfc(x);
    return value + value * error;
  }
  // The asymptotic series; at 12 its ninth term is below the last place.
  const double inverse = 1 / (2 * x * x);
  double term = 1, sum = 1;
  for (int k = 1; k < 11; ++k) {
    term *= -(2 * k - 1) * inverse;
    sum += term;
  }
  return 0.56418958354775629 / x * sum;
}
// I0 and I1, modified Bessel functions of the first kind.
MXMACA_HD double bessel_i(int order, double x) {
  const double magnitude = std::fabs(x);
  if (x != x) return x;
  double value = std::numeric_limits<double>::infinity();
  if (magnitude < 20) {
    const double quarter = x * x / 4;
    double term = order == 0 ? 1 : magnitude / 2, sum = term;
    for (int k = 1; term > sum * 1e-17; ++k) {
      term *= quarter / (static_cast<double>(k) * (k + order));
      sum += term;
    }
    value = sum;
  } else if (magnitude < 714) {
    // exp(x) / sqrt(2 pi x) times the asymptotic series, exp in two halves against overflow.
    double term = 1, sum = 1;
    for (int k = 1; k < 40; ++k) {
      const double odd = 2 * k - 1;
      const double next = term * (odd * odd - 4.0 * order * order) / (8 * k * magnitude);
      if (std::fabs(next) >= std::fabs(term) || std::fabs(next) < 1e-18) break;
      term = next;
      sum += term;
    }
    const double half = std::exp(magnitude / 2);
    value = half * (sum / std::sqrt(6.283185307179586 * magnitude)) * half;
  }
  return order == 1 && x < 0 ? -value : value;
}

// The root of a sum of squares, scaled by a power of two so that nothing overflows on the way.
template <class Get>
MXMACA_HD double euclidean(int count, Get get, bool inverse) {
  double largest = 0;
  bool nan = false;
  for (int i = 0; i < count; ++i) {
    const double value = std::fabs(get(i));
    nan |= value != value;
    if (value > largest) largest = value;
  }
  if (largest > 1.7976931348623157e308) return inverse ? 0 : largest;
  if (nan) return std::numeric_limits<double>::quiet_NaN();
  if (largest == 0) return inverse ? std::numeric_limits<double>::infinity() : 0;
  int exponent;
  std::frexp(largest, &exponent);
  double sum = 0, error = 0;
  for (int i = 0; i < count; ++i) {
    const double value = std::ldexp(get(i), -exponent);
    const double square = value * value, total = sum + square;
    error += std::fma(value, value, -square) + (sum - (total - (total - sum))) + (square - (total - sum));
    sum = total;
  }
  sum += error;
  return inverse ? std::ldexp(1 / std::sqrt(sum), -exponent) : std::ldexp(std::sqrt(sum), exponent);
}

}  // namespace mxmaca

#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 41)
#define MXMACA_LIBRARY_HAS_SINPI 1  // sinpi, cospi
#endif
#if __GLIBC_PREREQ(2, 42)
#define MXMACA_LIBRARY_HAS_RSQRT 1
#endif
#endif

#define MXMACA_DOUBLE_AND_FLOAT(name, expression)        \
  MXMACA_HD double name(double x) { return expression; } \
  MXMACA_HD float name##f(float single) {                \
    const double x = single;                             \
    return static_cast<float>(expression);               \
  }
#ifndef MXMACA_LIBRARY_HAS_RSQRT
MXMACA_DOUBLE_AND_FLOAT(rsqrt, 1 / ::sqrt(x))
#endif
MXMACA_DOUBLE_AND_FLOAT(rcbrt, 1 / ::cbrt(x))
MXMACA_DOUBLE_AND_FLOAT(erfinv, mxmaca::inverse_erf(x))
MXMACA_DOUBLE_AND_FLOAT(erfcinv, mxmaca::inverse_erfc(x))
MXMACA_DOUBLE_AND_FLOAT(erfcx, mxmaca::scaled_erfc(x))
MXMACA_DOUBLE_AND_FLOAT(normcdf, mxmaca::normal_cdf(x))
MXMACA_DOUBLE_AND_FLOAT(normcdfinv, -1.4142135623730951 * mxmaca::inverse_erfc(2 * x))
MXMACA_DOUBLE_AND_FLOAT(cyl_bessel_i0, mxmaca::bessel_i(0, x))
MXMACA_DOUBLE_AND_FLOAT(cyl_bessel_i1, mxmaca::bessel_i(1, x))
#undef MXMACA_DOUBLE_AND_FLOAT

MXMACA_HD void sincospi(double x, double* sine, double* cosine) { mxmaca::sincospi_double(x, *sine, *cosine); }
MXMACA_HD void sincospif(float x, float* sine, float* cosine) {
  double s, c;
  mxmaca::sincospi_double(x, s, c);
  *sine = static_cast<float>(s);
  *cosine = static_cast<float>(c);
}
#ifndef MXMACA_LIBRARY_HAS_SINPI
MXMACA_HD double sinpi(double x) {
  double s, c;
  mxmaca::sincospi_double(x, s, c);
  return s;
}
MXMACA_HD double cospi(double x) {
  double s, c;
  mxmaca::sincospi_double(x, s, c);
  return c;
}
MXMACA_HD float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
MXMACA_HD float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
#endif

#define MXMACA_NORM(name, count, inverse, parameters, ...)                                          \
  MXMACA_HD double name parameters(double) {                                                        \
    const double values[] = {__VA_ARGS__};                                                          \
    return mxmaca::euclidean(count, [&](int i) { return values[i]; }, inverse);                     \
  }                                                                                                 \
  MXMACA_HD float name##f parameters(float) {                                                       \
    const double values[] = {__VA_ARGS__};                                                          \
    return static_cast<float>(mxmaca::euclidean(count, [&](int i) { return values[i]; }, inverse)); \
  }
#define MXMACA_2(type) (type a, type b)
#define MXMACA_3(type) (type a, type b, type c)
#define MXMACA_4(type) (type a, type b, type c, type d)
MXMACA_NORM(rhypot, 2, true, MXMACA_2, a, b)
MXMACA_NORM(norm3d, 3, false, MXMACA_3, a, b, c)
MXMACA_NORM(rnorm3d, 3, true, MXMACA_3, a, b, c)
MXMACA_NORM(norm4d, 4, false, MXMACA_4, a, b, c, d)
MXMACA_NORM(rnorm4d, 4, true, MXMACA_4, a, b, c, d)
#undef MXMACA_2
#undef MXMACA_3
#undef MXMACA_4
#undef MXMACA_NORM
MXMACA_HD double norm(int dim, const double* p) {
  return mxmaca::euclidean(dim, [=](int i) { return p[i]; }, false);
}
MXMACA_HD double rnorm(int dim, const double* p) {
  return mxmaca::euclidean(dim, [=](int i) { return p[i]; }, true);
}
MXMACA_HD float normf(int dim, const float* p) {
  return static_cast<float>(mxmaca::euclidean(dim, [=](int i) { return static_cast<double>(p[i]); }, false));
}
MXMACA_HD float rnormf(int dim, const float* p) {
  return static_cast<float>(mxmaca::euclidean(dim, [=](int i) { return static_cast<double>(p[i]); }, true));
}
MXMACA_HD double fdivide(double a, double b) { return a / b; }
MXMACA_HD float fdividef(float a, float b) { return a / b; }

// C++ overloads in float of the functions that only CUDA has.
#define MXMACA_OVERLOAD(name) \
  MXMACA_HD float name(float x) { return name##f(x); }
#ifndef MXMACA_LIBRARY_HAS_RSQRT
MXMACA_OVERLOAD(rsqrt)
#endif
MXMACA_OVERLOAD(rcbrt)
#ifndef MXMACA_LIBRARY_HAS_SINPI
MXMACA_OVERLOAD(sinpi)
MXMACA_OVERLOAD(cospi)
#endif
MXMACA_OVERLOAD(erfinv)
MXMACA_OVERLOAD(erfcinv)
MXMACA_OVERLOAD(erfcx)
MXMACA_OVERLOAD(normcdf)
MXMACA_OVERLOAD(normcdfinv)
MXMACA_OVERLOAD(cyl_bessel_i0)
MXMACA_OVERLOAD(cyl_bessel_i1)
MXMACA_OVERLOAD(exp10)
MXMACA_OVERLOAD(j0)
MXMACA_OVERLOAD(j1)
MXMACA_OVERLOAD(y0)
MXMACA_OVERLOAD(y1)
#undef MXMACA_OVERLOAD
MXMACA_HD float jn(int n, float x) { return jnf(n, x); }
MXMACA_HD float yn(int n, float x) { return ynf(n, x); }
MXMACA_HD void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
MXMACA_HD void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }
MXMACA_HD float fdivide(float a, float b) { return a / b; }
MXMACA_HD float rhypot(float a, float b) { return rhypotf(a, b); }
MXMACA_HD float norm3d(float a, float b, float c) { return norm3df(a, b, c); }
MXMACA_HD float rnorm3d(float a, float b, float c) { return rnorm3df(a, b, c); }
MXMACA_HD float norm4d(float a, float b, float c, float d) { return norm4df(a, b, c, d); }
MXMACA_HD float rnorm4d(float a, float b, float c, float d) { return rnorm4df(a, b, c, d); }

// ---- Smaller and larger ---------------------------------------------------------------------------------------------
#define MXMACA_MIN_MAX(result, type1, type2)                                                                  \
  MXMACA_HD constexpr result min(type1 a, type2 b) {                                                          \
    return static_cast<result>(a) < static_cast<result>(b) ? static_cast<result>(a) : static_cast<result>(b); \
  }                                                                                                           \
  MXMACA_HD constexpr result max(type1 a, type2 b) {                                                          \
    return static_cast<result>(a) > static_cast<result>(b) ? static_cast<result>(a) : static_cast<result>(b); \
  }
#define MXMACA_MIN_MAX_SIGNS(type)                            \
  MXMACA_MIN_MAX(type, type, type)                            \
  MXMACA_MIN_MAX(unsigned type, unsigned type, unsigned type) \
  MXMACA_MIN_MAX(unsigned type, type, unsigned type)          \
  MXMACA_MIN_MAX(unsigned type, unsigned type, type)
MXMACA_MIN_MAX_SIGNS(int)
MXMACA_MIN_MAX_SIGNS(long)
MXMACA_MIN_MAX_SIGNS(long long)
#undef MXMACA_MIN_MAX_SIGNS
#undef MXMACA_MIN_MAX
MXMACA_HD float min(float a, float b) { return ::fminf(a, b); }
MXMACA_HD float max(float a, float b) { return ::fmaxf(a, b); }
MXMACA_HD double min(double a, double b) { return ::fmin(a, b); }
MXMACA_HD double max(double a, double b) { return ::fmax(a, b); }
MXMACA_HD double min(float a, double b) { return ::fmin(static_cast<double>(a), b); }
MXMACA_HD double max(float a, double b) { return ::fmax(static_cast<double>(a), b); }
MXMACA_HD double min(double a, float b) { return ::fmin(a, static_cast<double>(b)); }
MXMACA_HD double max(double a, float b) { return ::fmax(a, static_cast<double>(b)); }
MXMACA_HD unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
MXMACA_HD unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
MXMACA_HD long long llmin(long long a, long long b) { return a < b ? a : b; }
MXMACA_HD long long llmax(long long a, long long b) { return a > b ? a : b; }
MXMACA_HD unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
MXMACA_HD unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
#endif
