// The two 6-bit floating-point formats of the OCP specification "Microscaling Formats" (2023), E2M3 and E3M2, each
// number in a byte of its own. They have no infinities and no NaN.
#pragma once
#define __CUDA_FP6_H__

#include "cuda_fp8.h"

typedef __nv_fp8_storage_t __nv_fp6_storage_t;
typedef __nv_fp8x2_storage_t __nv_fp6x2_storage_t;
typedef __nv_fp8x4_storage_t __nv_fp6x4_storage_t;

typedef enum __nv_fp6_interpretation_t { __NV_E2M3, __NV_E3M2 } __nv_fp6_interpretation_t;

#ifdef __cplusplus
namespace mxmaca {
MXMACA_HD __nv_fp6_storage_t to_fp6(double value, __nv_fp6_interpretation_t format, cudaRoundMode rounding) {
  return format == __NV_E2M3 ? encode_finite<Format<2, 3>>(value, rounding_of(rounding))
                             : encode_finite<Format<3, 2>>(value, rounding_of(rounding));
}
MXMACA_HD float from_fp6(__nv_fp6_storage_t x, __nv_fp6_interpretation_t format) {
  return format == __NV_E2M3 ? decode_finite<Format<2, 3>>(x) : decode_finite<Format<3, 2>>(x);
}
}  // namespace mxmaca

MXMACA_HD __nv_fp6_storage_t __nv_cvt_double_to_fp6(double x, __nv_fp6_interpretation_t format,
                                                    cudaRoundMode rounding) {
  return mxmaca::to_fp6(x, format, rounding);
}
MXMACA_HD __nv_fp6_storage_t __nv_cvt_float_to_fp6(float x, __nv_fp6_interpretation_t format, cudaRoundMode rounding) {
  return mxmaca::to_fp6(x, format, rounding);
}
MXMACA_HD __nv_fp6_storage_t __nv_cvt_halfraw_to_fp6(__half_raw x, __nv_fp6_interpretation_t format,
                                                     cudaRoundMode rounding) {
  return mxmaca::to_fp6(mxmaca::half_value(x.x), format, rounding);
}
MXMACA_HD __nv_fp6_storage_t __nv_cvt_bfloat16raw_to_fp6(__nv_bfloat16_raw x, __nv_fp6_interpretation_t format,
                                                         cudaRoundMode rounding) {
  return mxmaca::to_fp6(mxmaca::bfloat16_value(x.x), format, rounding);
}
#define MXMACA_PAIR(low, high) static_cast<__nv_fp6x2_storage_t>((low) | (high) << 8)
MXMACA_HD __nv_fp6x2_storage_t __nv_cvt_double2_to_fp6x2(double2 x, __nv_fp6_interpretation_t format,
                                                         cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_fp6(x.x, format, rounding), mxmaca::to_fp6(x.y, format, rounding));
}
MXMACA_HD __nv_fp6x2_storage_t __nv_cvt_float2_to_fp6x2(float2 x, __nv_fp6_interpretation_t format,
                                                        cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_fp6(x.x, format, rounding), mxmaca::to_fp6(x.y, format, rounding));
}
MXMACA_HD __nv_fp6x2_storage_t __nv_cvt_halfraw2_to_fp6x2(__half2_raw x, __nv_fp6_interpretation_t format,
                                                          cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_fp6(mxmaca::half_value(x.x), format, rounding),
                     mxmaca::to_fp6(mxmaca::half_value(x.y), format, rounding));
}
MXMACA_HD __nv_fp6x2_storage_t __nv_cvt_bfloat16raw2_to_fp6x2(__nv_bfloat162_raw x, __nv_fp6_interpretation_t format,
                                                              cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_fp6(mxmaca::bfloat16_value(x.x), format, rounding),
                     mxmaca::to_fp6(mxmaca::bfloat16_value(x.y), format, rounding));
}
#undef MXMACA_PAIR
MXMACA_HD __half_raw __nv_cvt_fp6_to_halfraw(__nv_fp6_storage_t x, __nv_fp6_interpretation_t format) {
  return __half_raw{mxmaca::half_bits(mxmaca::from_fp6(x, format))};
}
MXMACA_HD __half2_raw __nv_cvt_fp6x2_to_halfraw2(__nv_fp6x2_storage_t x, __nv_fp6_interpretation_t format) {
  return __half2_raw{__nv_cvt_fp6_to_halfraw(static_cast<__nv_fp6_storage_t>(x), format).x,
                     __nv_cvt_fp6_to_halfraw(static_cast<__nv_fp6_storage_t>(x >> 8), format).x};
}

#define MXMACA_ONE __nv_fp6_e2m3
#define MXMACA_TWO __nv_fp6x2_e2m3
#define MXMACA_FOUR __nv_fp6x4_e2m3
#define MXMACA_CODE __nv_fp6_storage_t
#define MXMACA_CODE2 __nv_fp6x2_storage_t
#define MXMACA_CODE4 __nv_fp6x4_storage_t
#define MXMACA_BITS 8
#define MXMACA_ENCODE(x) mxmaca::to_fp6(x, __NV_E2M3, cudaRoundNearest)
#define MXMACA_DECODE(code) mxmaca::from_fp6(code, __NV_E2M3)
#include "mxmaca/arithmetic/tiny_float_class.inc"

#define MXMACA_ONE __nv_fp6_e3m2
#define MXMACA_TWO __nv_fp6x2_e3m2
#define MXMACA_FOUR __nv_fp6x4_e3m2
#define MXMACA_CODE __nv_fp6_storage_t
#define MXMACA_CODE2 __nv_fp6x2_storage_t
#define MXMACA_CODE4 __nv_fp6x4_storage_t
#define MXMACA_BITS 8
#define MXMACA_ENCODE(x) mxmaca::to_fp6(x, __NV_E3M2, cudaRoundNearest)
#define MXMACA_DECODE(code) mxmaca::from_fp6(code, __NV_E3M2)
#include "mxmaca/arithmetic/tiny_float_class.inc"
#endif
