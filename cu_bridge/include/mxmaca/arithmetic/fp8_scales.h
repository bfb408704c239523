// E8M0, the scale factors of the OCP specification "Microscaling Formats" (2023): the powers of two from 2^-127 (code
// 0) to 2^127 (code 254), and NaN (255). They have no sign and no zero.
#pragma once

#include "../../device_types.h"

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

// The classes saturate and round up, as their constructors are documented to. Integers are rounded once.
#define MXMACA_TO_INTEGER(type)                                                      \
  __host__ __device__ explicit operator type() const {                               \
    return mxmaca::to_integer<type>(mxmaca::from_e8m0(__x), mxmaca::Rounding::zero); \
  }
#define MXMACA_INTEGER(type, wide)                                                                                 \
  __host__ __device__ explicit __nv_fp8_e8m0(type x) : __nv_fp8_e8m0(mxmaca::integer_odd(static_cast<wide>(x))) {} \
  MXMACA_TO_INTEGER(type)
struct __nv_fp8_e8m0 {
  __nv_fp8_storage_t __x;
  __nv_fp8_e8m0() = default;
  __host__ __device__ explicit __nv_fp8_e8m0(double x) : __x(mxmaca::to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf)) {}
  __host__ __device__ explicit __nv_fp8_e8m0(float x) : __nv_fp8_e8m0(static_cast<double>(x)) {}
  __host__ __device__ explicit __nv_fp8_e8m0(__half x) : __nv_fp8_e8m0(mxmaca::half_value(x.__x)) {}
  __host__ __device__ explicit __nv_fp8_e8m0(__nv_bfloat16 x) : __nv_fp8_e8m0(mxmaca::bfloat16_value(x.__x)) {}
  MXMACA_INTEGER(short, int64_t)
  MXMACA_INTEGER(unsigned short, uint64_t)
  MXMACA_INTEGER(int, int64_t)
  MXMACA_INTEGER(unsigned int, uint64_t)
  MXMACA_INTEGER(long, int64_t)
  MXMACA_INTEGER(unsigned long, uint64_t)
  MXMACA_INTEGER(long long, int64_t)
  MXMACA_INTEGER(unsigned long long, uint64_t)
  MXMACA_TO_INTEGER(char)
  MXMACA_TO_INTEGER(signed char)
  MXMACA_TO_INTEGER(unsigned char)
  __host__ __device__ explicit operator float() const { return mxmaca::from_e8m0(__x); }
  __host__ __device__ explicit operator double() const { return mxmaca::from_e8m0(__x); }
  __host__ __device__ explicit operator __half() const { return __float2half(mxmaca::from_e8m0(__x)); }
  __host__ __device__ explicit operator __nv_bfloat16() const { return __nv_cvt_e8m0_to_bf16raw(__x); }
  __host__ __device__ explicit operator bool() const { return true; }
};
#undef MXMACA_INTEGER
#undef MXMACA_TO_INTEGER
struct __attribute__((aligned(2))) __nv_fp8x2_e8m0 {
  __nv_fp8x2_storage_t __x;
  __nv_fp8x2_e8m0() = default;
  __host__ __device__ explicit __nv_fp8x2_e8m0(float2 x)
      : __x(__nv_cvt_float2_to_e8m0x2(x, __NV_SATFINITE, cudaRoundPosInf)) {}
  __host__ __device__ explicit __nv_fp8x2_e8m0(double2 x)
      : __x(__nv_cvt_double2_to_e8m0x2(x, __NV_SATFINITE, cudaRoundPosInf)) {}
  __host__ __device__ explicit __nv_fp8x2_e8m0(__half2 x) : __nv_fp8x2_e8m0(__half22float2(x)) {}
  __host__ __device__ explicit __nv_fp8x2_e8m0(__nv_bfloat162 x)
      : __x(__nv_cvt_bfloat162raw_to_e8m0x2(x, __NV_SATFINITE, cudaRoundPosInf)) {}
  __host__ __device__ explicit operator float2() const {
    return make_float2(mxmaca::from_e8m0(static_cast<__nv_fp8_storage_t>(__x)),
                       mxmaca::from_e8m0(static_cast<__nv_fp8_storage_t>(__x >> 8)));
  }
  __host__ __device__ explicit operator __half2() const { return __float22half2_rn(static_cast<float2>(*this)); }
  __host__ __device__ explicit operator __nv_bfloat162() const { return __nv_cvt_e8m0x2_to_bf162raw(__x); }
};
struct __attribute__((aligned(4))) __nv_fp8x4_e8m0 {
  __nv_fp8x4_storage_t __x;
  __nv_fp8x4_e8m0() = default;
  __host__ __device__ explicit __nv_fp8x4_e8m0(float4 x)
      : __nv_fp8x4_e8m0(__nv_fp8x2_e8m0(make_float2(x.x, x.y)), __nv_fp8x2_e8m0(make_float2(x.z, x.w))) {}
  __host__ __device__ explicit __nv_fp8x4_e8m0(double4 x)
      : __nv_fp8x4_e8m0(__nv_fp8x2_e8m0(make_double2(x.x, x.y)), __nv_fp8x2_e8m0(make_double2(x.z, x.w))) {}
  MXMACA_FROM_DOUBLES(__nv_fp8x4_e8m0, double4_16a)
  MXMACA_FROM_DOUBLES(__nv_fp8x4_e8m0, double4_32a)
  __host__ __device__ explicit __nv_fp8x4_e8m0(__half2 low, __half2 high)
      : __nv_fp8x4_e8m0(__nv_fp8x2_e8m0(low), __nv_fp8x2_e8m0(high)) {}
  __host__ __device__ explicit __nv_fp8x4_e8m0(__nv_bfloat162 low, __nv_bfloat162 high)
      : __nv_fp8x4_e8m0(__nv_fp8x2_e8m0(low), __nv_fp8x2_e8m0(high)) {}
  __host__ __device__ explicit operator float4() const {
    return make_float4(mxmaca::from_e8m0(static_cast<__nv_fp8_storage_t>(__x)),
                       mxmaca::from_e8m0(static_cast<__nv_fp8_storage_t>(__x >> 8)),
                       mxmaca::from_e8m0(static_cast<__nv_fp8_storage_t>(__x >> 16)),
                       mxmaca::from_e8m0(static_cast<__nv_fp8_storage_t>(__x >> 24)));
  }

 private:
  __host__ __device__ __nv_fp8x4_e8m0(__nv_fp8x2_e8m0 low, __nv_fp8x2_e8m0 high)
      : __x(low.__x | static_cast<unsigned>(high.__x) << 16) {}
};
