// The two FP8 formats: every value there and back, rounding, saturation.
#include <cuda_fp8.h>

#include <initializer_list>

#include "../check.h"

__global__ void round_trip() {
  const __nv_fp8_storage_t bits = static_cast<__nv_fp8_storage_t>(threadIdx.x);
  for (const __nv_fp8_interpretation_t format : {__NV_E4M3, __NV_E5M2}) {
    const float value = __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, format)));
    if (value - value == 0) EXPECT(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, format) == bits);
  }
}

int main() {
  round_trip<<<1, 256>>>();
  // 1 + 1/16 lies between 1 and 1 + 1/8 of E4M3: to even.
  CHECK(static_cast<float>(__nv_fp8_e4m3(1.0625f)) == 1.0f && static_cast<float>(__nv_fp8_e4m3(1.1875f)) == 1.25f);
  CHECK(static_cast<float>(__nv_fp8_e4m3(1e9f)) == 448.0f && static_cast<float>(__nv_fp8_e5m2(-1e9f)) == -57344.0f);
  CHECK(__nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E4M3) == 0x7f &&
        __nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E5M2) == 0x7c);
  CHECK(__nv_cvt_float_to_fp8(0x1p-9f, __NV_SATFINITE, __NV_E4M3) == 1 &&
        __nv_cvt_float_to_fp8(0x1p-10f, __NV_SATFINITE, __NV_E4M3) == 0);
  const float2 both = static_cast<float2>(__nv_fp8x2_e5m2(make_float2(1.5f, -2.0f)));
  CHECK(both.x == 1.5f && both.y == -2.0f);
  return summary();
}
