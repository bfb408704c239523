// The two FP8 formats and the scale factors of E8M0: every value there and back, rounding, saturation.
#include <cuda_fp8.h>

#include <climits>
#include <cmath>
#include <initializer_list>

#include "../check.h"

__global__ void round_trip() {
  const __nv_fp8_storage_t bits = static_cast<__nv_fp8_storage_t>(threadIdx.x);
  for (const __nv_fp8_interpretation_t format : {__NV_E4M3, __NV_E5M2}) {
    const float value = __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, format)));
    if (value - value == 0) EXPECT(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, format) == bits);
  }
}

// Integers come and go as numbers: rounded on the way in, cut and held within the type on the way out.
template <class Float8>
void check_integers() {
  const short a = -3;
  const unsigned short b = 6;
  const long c = -7;
  const unsigned long d = 5;
  const unsigned long long e = 1ULL << 63;
  CHECK(static_cast<float>(Float8(a)) == -3 && static_cast<float>(Float8(b)) == 6);
  CHECK(static_cast<float>(Float8(c)) == -7 && static_cast<float>(Float8(d)) == 5);
  CHECK(static_cast<float>(Float8(e)) == static_cast<float>(Float8(1e30f)) && static_cast<int>(Float8(10LL)) == 10);
  const Float8 small(-2.5f), large(300.0f);
  CHECK(static_cast<short>(small) == -2 && static_cast<long>(small) == -2 && static_cast<long long>(small) == -2);
  CHECK(static_cast<signed char>(small) == -2 && static_cast<unsigned char>(small) == 0);
  CHECK(static_cast<unsigned>(small) == 0 && static_cast<unsigned long long>(small) == 0);
  CHECK(static_cast<signed char>(large) == 127 && static_cast<unsigned char>(large) == 255);
  CHECK(static_cast<unsigned short>(large) == static_cast<unsigned short>(static_cast<float>(large)));
}

template <class Four>
__device__ bool is(Four four, float x, float y, float z, float w) {
  const float4 v = static_cast<float4>(four);
  return v.x == x && v.y == y && v.z == z && v.w == w;
}
__global__ void four_of_pairs() {
  const __nv_bfloat162 low(1.0f, 2.0f), high(3.0f, -4.0f);
  EXPECT(is(__nv_fp8x4_e4m3(low, high), 1, 2, 3, -4));
  EXPECT(is(__nv_fp8x4_e5m2(__floats2half2_rn(1, 2), __floats2half2_rn(3, -4)), 1, 2, 3, -4));
  EXPECT(is(__nv_fp8x4_e4m3(make_double4(1, 2, 1e9, -4)), 1, 2, 448, -4));
  EXPECT(is(__nv_fp8x4_e5m2(make_float4(0, 2, 3, -1e9f)), 0, 2, 3, -57344));
  const float2 both = static_cast<float2>(__nv_fp8x2_e4m3(make_double2(1.0625, -0.5)));
  EXPECT(both.x == 1 && both.y == -0.5f);
}

// Every scale is a power of two; numbers between two of them go where the mode says.
__global__ void scales() {
  const __nv_fp8_storage_t bits = static_cast<__nv_fp8_storage_t>(threadIdx.x);
  __nv_fp8_e8m0 scale;
  scale.__x = bits;
  const double value = static_cast<double>(scale);
  if (bits == 0xff) {
    EXPECT(value != value && __nv_cvt_double_to_e8m0(value, __NV_SATFINITE, cudaRoundZero) == 0xff);
    return;
  }
  EXPECT(value == ldexp(1.0, static_cast<int>(bits) - 127) && static_cast<bool>(scale));
  EXPECT(static_cast<float>(static_cast<__nv_bfloat16>(scale)) == static_cast<float>(value));
  const __nv_fp8_storage_t above = bits == 0xfe ? 0xfe : bits + 1;
  EXPECT(__nv_cvt_double_to_e8m0(-value, __NV_SATFINITE, cudaRoundPosInf) == bits);
  EXPECT(__nv_cvt_float_to_e8m0(static_cast<float>(value) * 1.001f, __NV_SATFINITE, cudaRoundZero) == bits);
  EXPECT(__nv_cvt_double_to_e8m0(value * (1 + 0x1p-52), __NV_SATFINITE, cudaRoundPosInf) == above);
  EXPECT(__nv_cvt_bfloat16raw_to_e8m0(__float2bfloat16(static_cast<float>(value) * 1.5f), __NV_SATFINITE,
                                      cudaRoundPosInf) == above);
}
static void check_scales() {
  scales<<<1, 256>>>();
  CHECK(__nv_cvt_float_to_e8m0(0x1.8p127f, __NV_SATFINITE, cudaRoundPosInf) == 0xfe);
  CHECK(__nv_cvt_float_to_e8m0(0x1.8p127f, __NV_NOSAT, cudaRoundPosInf) == 0xff);
  CHECK(__nv_cvt_float_to_e8m0(0x1.8p127f, __NV_NOSAT, cudaRoundZero) == 0xfe);
  CHECK(__nv_cvt_double_to_e8m0(HUGE_VAL, __NV_SATFINITE, cudaRoundZero) == 0xfe);
  CHECK(__nv_cvt_float_to_e8m0(0.0f, __NV_NOSAT, cudaRoundPosInf) == 0);
  CHECK(__nv_cvt_double_to_e8m0(5e-324, __NV_NOSAT, cudaRoundPosInf) == 0);
  CHECK(static_cast<float>(__nv_fp8_e8m0(-5)) == 8 && static_cast<float>(__nv_fp8_e8m0(3.0f)) == 4);
  // One more than a power of two, which no double is.
  CHECK(static_cast<double>(__nv_fp8_e8m0((1ULL << 60) + 1)) == 0x1p61);
  CHECK(static_cast<double>(__nv_fp8_e8m0(1LL << 60)) == 0x1p60);
  const __nv_fp8_e8m0 large(0x1p40f), small(0.25f);
  CHECK(static_cast<int>(large) == INT_MAX && static_cast<unsigned char>(large) == 255 &&
        static_cast<long>(large) == 1L << 40);
  CHECK(static_cast<int>(small) == 0 && __half2float(static_cast<__half>(large)) == HUGE_VALF);
  const float2 both = static_cast<float2>(__nv_fp8x2_e8m0(make_float2(3, 0.5f)));
  CHECK(both.x == 4 && both.y == 0.5f);
  const float4 four = static_cast<float4>(__nv_fp8x4_e8m0(make_float4(1, 2, 3, 5)));
  CHECK(four.x == 1 && four.y == 2 && four.z == 4 && four.w == 8);
  const __nv_bfloat162_raw pair = __nv_cvt_e8m0x2_to_bf162raw(0x8000);
  CHECK(pair.x == 0x40 && pair.y == 0x4000);
}

// Of 32 bytes: CUDA 13 has two of each.
static void check_large_vectors() {
#if CUDART_VERSION >= 13000
  static_assert(alignof(double4_16a) == 16 && alignof(double4_32a) == 32 && sizeof(ulonglong4_32a) == 32, "as named");
  static_assert(alignof(long4_16a) == 16 && alignof(longlong4_32a) == 32, "as named");
  const float4 four = static_cast<float4>(__nv_fp8x4_e5m2(make_double4_32a(0, 2, 3, -1e9)));
  CHECK(four.y == 2 && four.w == -57344 && make_ulong4_16a(1, 2, 3, 4).w == 4);
#endif
}

int main() {
  check_scales();
  check_large_vectors();
  round_trip<<<1, 256>>>();
  // 1 + 1/16 lies between 1 and 1 + 1/8 of E4M3: to even.
  CHECK(static_cast<float>(__nv_fp8_e4m3(1.0625f)) == 1.0f && static_cast<float>(__nv_fp8_e4m3(1.1875f)) == 1.25f);
  CHECK(static_cast<float>(__nv_fp8_e4m3(1e9f)) == 448.0f && static_cast<float>(__nv_fp8_e5m2(-1e9f)) == -57344.0f);
  // Whatever the first bits of what is too large are.
  for (float x = 464.1f; x < 1e38f; x *= 1.09f) {
    CHECK(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3) == 0x7e);
    CHECK(__nv_cvt_float_to_fp8(-x, __NV_NOSAT, __NV_E4M3) == 0xff);
    if (x > 61440) CHECK(__nv_cvt_float_to_fp8(-x, __NV_SATFINITE, __NV_E5M2) == 0xfb);
    if (x > 61440) CHECK(__nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2) == 0x7c);
  }
  CHECK(__nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E4M3) == 0x7f &&
        __nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E5M2) == 0x7c);
  CHECK(__nv_cvt_float_to_fp8(0x1p-9f, __NV_SATFINITE, __NV_E4M3) == 1 &&
        __nv_cvt_float_to_fp8(0x1p-10f, __NV_SATFINITE, __NV_E4M3) == 0);
  const float2 both = static_cast<float2>(__nv_fp8x2_e5m2(make_float2(1.5f, -2.0f)));
  CHECK(both.x == 1.5f && both.y == -2.0f);
  check_integers<__nv_fp8_e4m3>();
  check_integers<__nv_fp8_e5m2>();
  four_of_pairs<<<1, 1>>>();
  return summary();
}
