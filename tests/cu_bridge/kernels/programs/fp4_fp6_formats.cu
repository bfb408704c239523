// The formats of 4 and 6 bits: every value there and back, and every rounding against a search among all values.
#include <cuda_fp4.h>
#include <cuda_fp6.h>

#include <cmath>
#include <initializer_list>

#include "../check.h"

// What a code stands for, from its parts.
__host__ __device__ double value_of(unsigned code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(code >> mantissa_bits & ((1U << exponent_bits) - 1));
  const double fraction = static_cast<double>(code & ((1U << mantissa_bits) - 1)) / (1 << mantissa_bits);
  const double magnitude = exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
  return (code >> (exponent_bits + mantissa_bits) & 1) != 0 ? -magnitude : magnitude;
}

// The code that the rounding asks for, among those of the sign of x.
__host__ __device__ unsigned searched(double x, int exponent_bits, int mantissa_bits, cudaRoundMode mode) {
  const unsigned sign = 1U << (exponent_bits + mantissa_bits);
  const unsigned first = signbit(x) ? sign : 0;
  unsigned below = 0;  // of the magnitudes that are not larger
  for (unsigned code = 0; code < sign; ++code) {
    if (value_of(code, exponent_bits, mantissa_bits) <= fabs(x)) below = code;
  }
  const double low = value_of(below, exponent_bits, mantissa_bits);
  if (below + 1 == sign || low == fabs(x)) return first | below;
  const double high = value_of(below + 1, exponent_bits, mantissa_bits);
  bool up = mode == (signbit(x) ? cudaRoundMinInf : cudaRoundPosInf);
  if (mode == cudaRoundNearest) {
    up = fabs(x) - low > high - fabs(x) || (fabs(x) - low == high - fabs(x) && (below & 1) != 0);
  }
  return first | (below + (up ? 1 : 0));
}

__global__ void all_roundings() {
  const double step = (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) - 2048) * 0x1p-6;
  for (const cudaRoundMode mode : {cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf}) {
    // On a step, just beside it, and far outside.
    for (const double x : {step, step + 0x1p-40, step - 0x1p-40, step * 0x1p20}) {
      EXPECT(__nv_cvt_double_to_fp6(x, __NV_E2M3, mode) == searched(x, 2, 3, mode));
      EXPECT(__nv_cvt_double_to_fp6(x, __NV_E3M2, mode) == searched(x, 3, 2, mode));
      EXPECT(__nv_cvt_double_to_fp4(x, __NV_E2M1, mode) == searched(x, 2, 1, mode));
    }
    EXPECT(__nv_cvt_float_to_fp4(static_cast<float>(step), __NV_E2M1, mode) == searched(step, 2, 1, mode));
  }
}

static double of(__half_raw x) { return __half2float(__half(x)); }

static void every_code() {
  for (unsigned code = 0; code < 64; ++code) {
    const auto six = static_cast<__nv_fp6_storage_t>(code);
    CHECK(of(__nv_cvt_fp6_to_halfraw(six, __NV_E2M3)) == value_of(code, 2, 3));
    CHECK(of(__nv_cvt_fp6_to_halfraw(six, __NV_E3M2)) == value_of(code, 3, 2));
    __nv_fp6_e3m2 number;
    number.__x = six;
    CHECK(__nv_fp6_e3m2(static_cast<double>(number)).__x == code &&
          __nv_fp6_e3m2(static_cast<__half>(number)).__x == code);
    CHECK(static_cast<bool>(number) == ((code & 31) != 0));
  }
  for (unsigned code = 0; code < 16; ++code) {
    const auto four = static_cast<__nv_fp4_storage_t>(code);
    CHECK(of(__nv_cvt_fp4_to_halfraw(four, __NV_E2M1)) == value_of(code, 2, 1));
  }
}

static void numbers() {
  CHECK(__nv_cvt_float_to_fp4(NAN, __NV_E2M1, cudaRoundNearest) == 7);
  CHECK(__nv_cvt_float_to_fp6(-NAN, __NV_E2M3, cudaRoundNearest) == 31);
  CHECK(__nv_cvt_double_to_fp4(-HUGE_VAL, __NV_E2M1, cudaRoundZero) == 15);
  CHECK(static_cast<float>(__nv_fp4_e2m1(2.5f)) == 2 && static_cast<float>(__nv_fp4_e2m1(-100)) == -6);
  CHECK(static_cast<int>(__nv_fp6_e3m2(27LL)) == 28 && static_cast<unsigned>(__nv_fp6_e2m3(-3)) == 0);
  CHECK(static_cast<float>(__nv_fp6_e2m3(__float2bfloat16(7.3f))) == 7.5f);
}

static void vectors() {
  const __nv_fp4x2_e2m1 two(make_float2(1.5f, -4));
  CHECK(sizeof two == 1 && two.__x == (0x3 | 0xe << 4));
  const float2 both = static_cast<float2>(two);
  CHECK(both.x == 1.5f && both.y == -4);
  CHECK(__nv_cvt_float2_to_fp4x2(make_float2(1.5f, -4), __NV_E2M1, cudaRoundNearest) == two.__x);
  const __half2_raw halves = __nv_cvt_fp4x2_to_halfraw2(two.__x, __NV_E2M1);
  CHECK(of(__half_raw{halves.x}) == 1.5 && of(__half_raw{halves.y}) == -4);
  const __nv_fp4x4_e2m1 four(make_float4(0.5f, 1, -6, 3));
  CHECK(sizeof four == 2 && four.__x == (0x1 | 0x2 << 4 | 0xf << 8 | 0x5 << 12));
  const float4 all = static_cast<float4>(four);
  CHECK(all.x == 0.5f && all.y == 1 && all.z == -6 && all.w == 3);
  const __nv_fp6x4_e3m2 six(__floats2half2_rn(1, 2), __floats2half2_rn(3, -28));
  const float4 seen = static_cast<float4>(six);
  CHECK(sizeof six == 4 && seen.x == 1 && seen.y == 2 && seen.z == 3 && seen.w == -28);
  CHECK(__nv_cvt_double2_to_fp6x2(make_double2(1, -0.5), __NV_E2M3, cudaRoundZero) == (0x08 | 0x24 << 8));
}

int main() {
  all_roundings<<<16, 256>>>();
  every_code();
  numbers();
  vectors();
  return summary();
}
