// The two 8-bit floating-point formats of the OCP specification "OFP8" (2023): E4M3 (no infinities, one NaN per sign)
// and E5M2 (as IEEE 754 would have it).
#pragma once
#define __CUDA_FP8_H__

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "device_types.h"
#include "vector_functions.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;

typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

#ifdef __cplusplus
namespace mxmaca {

MXMACA_HD Rounding rounding_of(cudaRoundMode mode) {
  return mode == cudaRoundNearest  ? Rounding::nearest
         : mode == cudaRoundZero   ? Rounding::zero
         : mode == cudaRoundPosInf ? Rounding::up
                                   : Rounding::down;
}

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

// The classes saturate, as their constructors are documented to.
#define MXMACA_ONE __nv_fp8_e4m3
#define MXMACA_TWO __nv_fp8x2_e4m3
#define MXMACA_FOUR __nv_fp8x4_e4m3
#define MXMACA_CODE __nv_fp8_storage_t
#define MXMACA_CODE2 __nv_fp8x2_storage_t
#define MXMACA_CODE4 __nv_fp8x4_storage_t
#define MXMACA_BITS 8
#define MXMACA_ENCODE(x) mxmaca::to_fp8(x, __NV_SATFINITE, __NV_E4M3)
#define MXMACA_DECODE(code) mxmaca::from_fp8(code, __NV_E4M3)
#include "mxmaca/arithmetic/tiny_float_class.inc"

#define MXMACA_ONE __nv_fp8_e5m2
#define MXMACA_TWO __nv_fp8x2_e5m2
#define MXMACA_FOUR __nv_fp8x4_e5m2
#define MXMACA_CODE __nv_fp8_storage_t
#define MXMACA_CODE2 __nv_fp8x2_storage_t
#define MXMACA_CODE4 __nv_fp8x4_storage_t
#define MXMACA_BITS 8
#define MXMACA_ENCODE(x) mxmaca::to_fp8(x, __NV_SATFINITE, __NV_E5M2)
#define MXMACA_DECODE(code) mxmaca::from_fp8(code, __NV_E5M2)
#include "mxmaca/arithmetic/tiny_float_class.inc"

#include "mxmaca/arithmetic/fp8_scales.h"
#endif
