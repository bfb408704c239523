// The 4-bit floating-point format of the OCP specification "Microscaling Formats" (2023), E2M1: 0, 0.5, 1, 1.5, 2, 3,
// 4, 6 and their negatives. Two of them share a byte.
#pragma once
#define __CUDA_FP4_H__

#include "cuda_fp8.h"

typedef __nv_fp8_storage_t __nv_fp4_storage_t;
typedef __nv_fp8_storage_t __nv_fp4x2_storage_t;
typedef __nv_fp8x2_storage_t __nv_fp4x4_storage_t;

typedef enum __nv_fp4_interpretation_t { __NV_E2M1 } __nv_fp4_interpretation_t;

#ifdef __cplusplus
namespace mxmaca {
MXMACA_HD __nv_fp4_storage_t to_fp4(double value, cudaRoundMode rounding) {
  return encode_finite<Format<2, 1>>(value, rounding_of(rounding));
}
MXMACA_HD float from_fp4(__nv_fp4_storage_t x) { return decode_finite<Format<2, 1>>(x & 0xfU); }
}  // namespace mxmaca

MXMACA_HD __nv_fp4_storage_t __nv_cvt_double_to_fp4(double x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
  return mxmaca::to_fp4(x, rounding);
}
MXMACA_HD __nv_fp4_storage_t __nv_cvt_float_to_fp4(float x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
  return mxmaca::to_fp4(x, rounding);
}
MXMACA_HD __nv_fp4_storage_t __nv_cvt_halfraw_to_fp4(__half_raw x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
  return mxmaca::to_fp4(mxmaca::half_value(x.x), rounding);
}
MXMACA_HD __nv_fp4_storage_t __nv_cvt_bfloat16raw_to_fp4(__nv_bfloat16_raw x, __nv_fp4_interpretation_t,
                                                         cudaRoundMode rounding) {
  return mxmaca::to_fp4(mxmaca::bfloat16_value(x.x), rounding);
}
#define MXMACA_PAIR(low, high) static_cast<__nv_fp4x2_storage_t>((low) | (high) << 4)
MXMACA_HD __nv_fp4x2_storage_t __nv_cvt_double2_to_fp4x2(double2 x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_fp4(x.x, rounding), mxmaca::to_fp4(x.y, rounding));
}
MXMACA_HD __nv_fp4x2_storage_t __nv_cvt_float2_to_fp4x2(float2 x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_fp4(x.x, rounding), mxmaca::to_fp4(x.y, rounding));
}
MXMACA_HD __nv_fp4x2_storage_t __nv_cvt_halfraw2_to_fp4x2(__half2_raw x, __nv_fp4_interpretation_t,
                                                          cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_fp4(mxmaca::half_value(x.x), rounding),
                     mxmaca::to_fp4(mxmaca::half_value(x.y), rounding));
}
MXMACA_HD __nv_fp4x2_storage_t __nv_cvt_bfloat16raw2_to_fp4x2(__nv_bfloat162_raw x, __nv_fp4_interpretation_t,
                                                              cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_fp4(mxmaca::bfloat16_value(x.x), rounding),
                     mxmaca::to_fp4(mxmaca::bfloat16_value(x.y), rounding));
}
#undef MXMACA_PAIR
MXMACA_HD __half_raw __nv_cvt_fp4_to_halfraw(__nv_fp4_storage_t x, __nv_fp4_interpretation_t) {
  return __half_raw{mxmaca::half_bits(mxmaca::from_fp4(x))};
}
MXMACA_HD __half2_raw __nv_cvt_fp4x2_to_halfraw2(__nv_fp4x2_storage_t x, __nv_fp4_interpretation_t format) {
  return __half2_raw{__nv_cvt_fp4_to_halfraw(x, format).x,
                     __nv_cvt_fp4_to_halfraw(static_cast<__nv_fp4_storage_t>(x >> 4), format).x};
}

#define MXMACA_ONE __nv_fp4_e2m1
#define MXMACA_TWO __nv_fp4x2_e2m1
#define MXMACA_FOUR __nv_fp4x4_e2m1
#define MXMACA_CODE __nv_fp4_storage_t
#define MXMACA_CODE2 __nv_fp4x2_storage_t
#define MXMACA_CODE4 __nv_fp4x4_storage_t
#define MXMACA_BITS 4
#define MXMACA_ENCODE(x) mxmaca::to_fp4(x, cudaRoundNearest)
#define MXMACA_DECODE(code) mxmaca::from_fp4(code)
#include "mxmaca/arithmetic/tiny_float_class.inc"
#endif
