// E8M0, the scale factors of the OCP specification "Microscaling Formats" (2023): the powers of two from 2^-127 (code
// 0) to 2^127 (code 254), and NaN (255). They have no sign and no zero.
#pragma once

namespace mxmaca {

// The nearest power of two below the magnitude (cudaRoundZero) or above it (all other modes). What is too small becomes
// 2^-127; what is too large 2^127, or without saturation NaN.
MXMACA_HD __nv_fp8_storage_t to_e8m0(double value, __nv_saturation_t saturation, cudaRoundMode rounding) {
  if (value != value) return 0xff;
  const uint64_t bits = bit_cast<uint64_t>(value);
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if ((bits & 0xfffffffffffffULL) != 0 && rounding != cudaRoundZero) ++exponent;
  if (exponent > 127) return saturation == __NV_SATFINITE ? 0xfe : 0xff;
  return static_cast<__nv_fp8_storage_t>(exponent < -127 ? 0 : exponent + 127);
}
MXMACA_HD uint16_t bfloat16_of_e8m0(__nv_fp8_storage_t x) {
  if (x == 0) return 0x40;  // 2^-127 is below bfloat16's normal numbers
  return static_cast<uint16_t>(x == 0xff ? 0x7fff : x << 7);
}
MXMACA_HD float from_e8m0(__nv_fp8_storage_t x) { return bfloat16_value(bfloat16_of_e8m0(x)); }

}  // namespace mxmaca

MXMACA_HD __nv_fp8_storage_t __nv_cvt_double_to_e8m0(double x, __nv_saturation_t saturate, cudaRoundMode rounding) {
  return mxmaca::to_e8m0(x, saturate, rounding);
}
MXMACA_HD __nv_fp8_storage_t __nv_cvt_float_to_e8m0(float x, __nv_saturation_t saturate, cudaRoundMode rounding) {
  return mxmaca::to_e8m0(x, saturate, rounding);
}
MXMACA_HD __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_e8m0(__nv_bfloat16_raw x, __nv_saturation_t saturate,
                                                          cudaRoundMode rounding) {
  return mxmaca::to_e8m0(mxmaca::bfloat16_value(x.x), saturate, rounding);
}
MXMACA_HD __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t x) {
  return __nv_bfloat16_raw{mxmaca::bfloat16_of_e8m0(x)};
}
#define MXMACA_PAIR(low, high) static_cast<__nv_fp8x2_storage_t>((low) | (high) << 8)
MXMACA_HD __nv_fp8x2_storage_t __nv_cvt_double2_to_e8m0x2(double2 x, __nv_saturation_t saturate,
                                                          cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_e8m0(x.x, saturate, rounding), mxmaca::to_e8m0(x.y, saturate, rounding));
}
MXMACA_HD __nv_fp8x2_storage_t __nv_cvt_float2_to_e8m0x2(float2 x, __nv_saturation_t saturate, cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_e8m0(x.x, saturate, rounding), mxmaca::to_e8m0(x.y, saturate, rounding));
}
MXMACA_HD __nv_fp8x2_storage_t __nv_cvt_bfloat162raw_to_e8m0x2(__nv_bfloat162_raw x, __nv_saturation_t saturate,
                                                               cudaRoundMode rounding) {
  return MXMACA_PAIR(mxmaca::to_e8m0(mxmaca::bfloat16_value(x.x), saturate, rounding),
                     mxmaca::to_e8m0(mxmaca::bfloat16_value(x.y), saturate, rounding));
}
#undef MXMACA_PAIR
MXMACA_HD __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(__nv_fp8x2_storage_t x) {
  return __nv_bfloat162_raw{mxmaca::bfloat16_of_e8m0(static_cast<__nv_fp8_storage_t>(x)),
                            mxmaca::bfloat16_of_e8m0(static_cast<__nv_fp8_storage_t>(x >> 8))};
}

// The classes saturate and round up, as their constructors are documented to.
#define MXMACA_ONE __nv_fp8_e8m0
#define MXMACA_TWO __nv_fp8x2_e8m0
#define MXMACA_FOUR __nv_fp8x4_e8m0
#define MXMACA_CODE __nv_fp8_storage_t
#define MXMACA_CODE2 __nv_fp8x2_storage_t
#define MXMACA_CODE4 __nv_fp8x4_storage_t
#define MXMACA_BITS 8
#define MXMACA_ENCODE(x) mxmaca::to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf)
#define MXMACA_DECODE(code) mxmaca::from_e8m0(code)
#define MXMACA_TO_BFLOAT162
#include "tiny_float_class.inc"
