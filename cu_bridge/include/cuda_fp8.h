// The two 8-bit floating-point formats of the OCP specification "OFP8" (2023): E4M3 (no infinities, one NaN per sign)
// and E5M2 (as IEEE 754 would have it).
#pragma once
#define __CUDA_FP8_H__

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "vector_functions.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;

typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

#ifdef __cplusplus
namespace mxmaca {

// Rounds to nearest, once. What is too large becomes the largest finite value, or without saturation NaN (E4M3) or
// infinity (E5M2).
MXMACA_HD __nv_fp8_storage_t to_fp8(double value, __nv_saturation_t saturation, __nv_fp8_interpretation_t format) {
  const bool wide = format == __NV_E5M2;
  if (value != value) return 0x7f;
  const bool negative = (bit_cast<uint64_t>(value) >> 63) != 0;
  const double magnitude = negative ? -value : value;
  const unsigned largest = wide ? 0x7b : 0x7e;
  const unsigned beyond = saturation == __NV_SATFINITE ? largest : wide ? 0x7c : 0x7f;
  unsigned bits = beyond;
  if (magnitude <= 1.7976931348623157e308) {
    const unsigned rounded = wide ? encode_magnitude<Format<5, 2>>(magnitude, negative, Rounding::nearest)
                                  : encode_magnitude<Format<4, 3>>(magnitude, negative, Rounding::nearest);
    if (rounded <= largest) bits = rounded;
  }
  return static_cast<__nv_fp8_storage_t>(bits | (negative ? 0x80U : 0U));
}
MXMACA_HD float from_fp8(__nv_fp8_storage_t x, __nv_fp8_interpretation_t format) {
  // E5M2 is the upper half of a half.
  if (format == __NV_E5M2) return half_value(static_cast<uint16_t>(x << 8));
  const unsigned magnitude = x & 0x7fU;
  float value;
  if (magnitude == 0x7f) {
    value = bit_cast<float>(0x7fffffffU);
  } else if (magnitude < 8) {
    value = static_cast<float>(magnitude) * 0x1p-9F;
  } else {
    value = bit_cast<float>((magnitude << 20) + (120U << 23));
  }
  return (x & 0x80) != 0 ? -value : value;
}

}  // namespace mxmaca

MXMACA_HD __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate,
                                                    __nv_fp8_interpretation_t format) {
  return mxmaca::to_fp8(x, saturate, format);
}
MXMACA_HD __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate,
                                                   __nv_fp8_interpretation_t format) {
  return mxmaca::to_fp8(x, saturate, format);
}
MXMACA_HD __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturate,
                                                     __nv_fp8_interpretation_t format) {
  return mxmaca::to_fp8(mxmaca::half_value(x.x), saturate, format);
}
MXMACA_HD __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t format) {
  return mxmaca::to_fp8(mxmaca::bfloat16_value(x.x), saturate, format);
}
MXMACA_HD __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t format) {
  return __half_raw{mxmaca::half_bits(mxmaca::from_fp8(x, format))};
}
#define MXMACA_PAIR(low, high) static_cast<__nv_fp8x2_storage_t>((low) | (high) << 8)
MXMACA_HD __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t format) {
  return MXMACA_PAIR(mxmaca::to_fp8(x.x, saturate, format), mxmaca::to_fp8(x.y, saturate, format));
}
MXMACA_HD __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturate,
                                                        __nv_fp8_interpretation_t format) {
  return MXMACA_PAIR(mxmaca::to_fp8(x.x, saturate, format), mxmaca::to_fp8(x.y, saturate, format));
}
MXMACA_HD __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t saturate,
                                                          __nv_fp8_interpretation_t format) {
  return MXMACA_PAIR(mxmaca::to_fp8(mxmaca::half_value(x.x), saturate, format),
                     mxmaca::to_fp8(mxmaca::half_value(x.y), saturate, format));
}
MXMACA_HD __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw x, __nv_saturation_t saturate,
                                                              __nv_fp8_interpretation_t format) {
  return MXMACA_PAIR(mxmaca::to_fp8(mxmaca::bfloat16_value(x.x), saturate, format),
                     mxmaca::to_fp8(mxmaca::bfloat16_value(x.y), saturate, format));
}
#undef MXMACA_PAIR
MXMACA_HD __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t format) {
  return __half2_raw{__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(x), format).x,
                     __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(x >> 8), format).x};
}

// The classes saturate, as their constructors are documented to. Integers are rounded toward zero.
#define MXMACA_TO_INTEGER(format, type)                                                     \
  __host__ __device__ explicit operator type() const {                                      \
    return mxmaca::to_integer<type>(mxmaca::from_fp8(__x, format), mxmaca::Rounding::zero); \
  }
#define MXMACA_INTEGER(name, format, type, wide)                                                  \
  __host__ __device__ explicit __nv_fp8_##name(type x)                                            \
      : __x(mxmaca::to_fp8(mxmaca::integer_odd(static_cast<wide>(x)), __NV_SATFINITE, format)) {} \
  MXMACA_TO_INTEGER(format, type)
#if MXMACA_CUDA_MAJOR >= 13
#define MXMACA_FROM_DOUBLES(name, vector) \
  __host__ __device__ explicit name(const vector& x) : name(make_double4(x.x, x.y, x.z, x.w)) {}
#else
#define MXMACA_FROM_DOUBLES(name, vector)
#endif
#define MXMACA_FP8(name, format)                                                                                     \
  struct __nv_fp8_##name {                                                                                           \
    __nv_fp8_storage_t __x;                                                                                          \
    __nv_fp8_##name() = default;                                                                                     \
    __host__ __device__ explicit __nv_fp8_##name(float x) : __x(mxmaca::to_fp8(x, __NV_SATFINITE, format)) {}        \
    __host__ __device__ explicit __nv_fp8_##name(double x) : __x(mxmaca::to_fp8(x, __NV_SATFINITE, format)) {}       \
    __host__ __device__ explicit __nv_fp8_##name(__half x)                                                           \
        : __x(mxmaca::to_fp8(mxmaca::half_value(x.__x), __NV_SATFINITE, format)) {}                                  \
    __host__ __device__ explicit __nv_fp8_##name(__nv_bfloat16 x)                                                    \
        : __x(mxmaca::to_fp8(mxmaca::bfloat16_value(x.__x), __NV_SATFINITE, format)) {}                              \
    MXMACA_INTEGER(name, format, short, int64_t)                                                                     \
    MXMACA_INTEGER(name, format, unsigned short, uint64_t)                                                           \
    MXMACA_INTEGER(name, format, int, int64_t)                                                                       \
    MXMACA_INTEGER(name, format, unsigned int, uint64_t)                                                             \
    MXMACA_INTEGER(name, format, long, int64_t)                                                                      \
    MXMACA_INTEGER(name, format, unsigned long, uint64_t)                                                            \
    MXMACA_INTEGER(name, format, long long, int64_t)                                                                 \
    MXMACA_INTEGER(name, format, unsigned long long, uint64_t)                                                       \
    MXMACA_TO_INTEGER(format, char)                                                                                  \
    MXMACA_TO_INTEGER(format, signed char)                                                                           \
    MXMACA_TO_INTEGER(format, unsigned char)                                                                         \
    __host__ __device__ explicit operator float() const { return mxmaca::from_fp8(__x, format); }                    \
    __host__ __device__ explicit operator double() const { return mxmaca::from_fp8(__x, format); }                   \
    __host__ __device__ explicit operator __half() const { return __nv_cvt_fp8_to_halfraw(__x, format); }            \
    __host__ __device__ explicit operator __nv_bfloat16() const {                                                    \
      return __float2bfloat16(mxmaca::from_fp8(__x, format));                                                        \
    }                                                                                                                \
    __host__ __device__ explicit operator bool() const { return (__x & 0x7f) != 0; }                                 \
  };                                                                                                                 \
  struct __attribute__((aligned(2))) __nv_fp8x2_##name {                                                             \
    __nv_fp8x2_storage_t __x;                                                                                        \
    __nv_fp8x2_##name() = default;                                                                                   \
    __host__ __device__ explicit __nv_fp8x2_##name(float2 x)                                                         \
        : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, format)) {}                                                \
    __host__ __device__ explicit __nv_fp8x2_##name(double2 x)                                                        \
        : __x(__nv_cvt_double2_to_fp8x2(x, __NV_SATFINITE, format)) {}                                               \
    __host__ __device__ explicit __nv_fp8x2_##name(__half2 x)                                                        \
        : __x(__nv_cvt_halfraw2_to_fp8x2(x, __NV_SATFINITE, format)) {}                                              \
    __host__ __device__ explicit __nv_fp8x2_##name(__nv_bfloat162 x)                                                 \
        : __x(__nv_cvt_bfloat16raw2_to_fp8x2(x, __NV_SATFINITE, format)) {}                                          \
    __host__ __device__ explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, format); }        \
    __host__ __device__ explicit operator float2() const {                                                           \
      return make_float2(mxmaca::from_fp8(static_cast<__nv_fp8_storage_t>(__x), format),                             \
                         mxmaca::from_fp8(static_cast<__nv_fp8_storage_t>(__x >> 8), format));                       \
    }                                                                                                                \
  };                                                                                                                 \
  struct __attribute__((aligned(4))) __nv_fp8x4_##name {                                                             \
    __nv_fp8x4_storage_t __x;                                                                                        \
    __nv_fp8x4_##name() = default;                                                                                   \
    __host__ __device__ explicit __nv_fp8x4_##name(float4 x)                                                         \
        : __nv_fp8x4_##name(__nv_fp8x2_##name(make_float2(x.x, x.y)), __nv_fp8x2_##name(make_float2(x.z, x.w))) {}   \
    __host__ __device__ explicit __nv_fp8x4_##name(double4 x)                                                        \
        : __nv_fp8x4_##name(__nv_fp8x2_##name(make_double2(x.x, x.y)), __nv_fp8x2_##name(make_double2(x.z, x.w))) {} \
    MXMACA_FROM_DOUBLES(__nv_fp8x4_##name, double4_16a)                                                              \
    MXMACA_FROM_DOUBLES(__nv_fp8x4_##name, double4_32a)                                                              \
    __host__ __device__ explicit __nv_fp8x4_##name(__half2 low, __half2 high)                                        \
        : __nv_fp8x4_##name(__nv_fp8x2_##name(low), __nv_fp8x2_##name(high)) {}                                      \
    __host__ __device__ explicit __nv_fp8x4_##name(__nv_bfloat162 low, __nv_bfloat162 high)                          \
        : __nv_fp8x4_##name(__nv_fp8x2_##name(low), __nv_fp8x2_##name(high)) {}                                      \
    __host__ __device__ explicit operator float4() const {                                                           \
      return make_float4(mxmaca::from_fp8(static_cast<__nv_fp8_storage_t>(__x), format),                             \
                         mxmaca::from_fp8(static_cast<__nv_fp8_storage_t>(__x >> 8), format),                        \
                         mxmaca::from_fp8(static_cast<__nv_fp8_storage_t>(__x >> 16), format),                       \
                         mxmaca::from_fp8(static_cast<__nv_fp8_storage_t>(__x >> 24), format));                      \
    }                                                                                                                \
                                                                                                                     \
   private:                                                                                                          \
    __host__ __device__ __nv_fp8x4_##name(__nv_fp8x2_##name low, __nv_fp8x2_##name high)                             \
        : __x(low.__x | static_cast<unsigned>(high.__x) << 16) {}                                                    \
  };
MXMACA_FP8(e4m3, __NV_E4M3)
MXMACA_FP8(e5m2, __NV_E5M2)
#undef MXMACA_FP8
#undef MXMACA_INTEGER
#undef MXMACA_TO_INTEGER

#include "mxmaca/arithmetic/fp8_scales.h"
#undef MXMACA_FROM_DOUBLES
#endif
