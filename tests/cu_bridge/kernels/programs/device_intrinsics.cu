// Mathematics and intrinsics that need no include.
#include "../check.h"

__global__ void kernel(const float* x) {
  const int i = threadIdx.x;
  EXPECT(__popc(i) + __popc(~i) == 32 && __clz(1 << (i & 31)) == 31 - (i & 31) && __ffs(i << 1) != 1);
  EXPECT(__brev(__brev(i)) == static_cast<unsigned>(i) && __byte_perm(0x33221100, 0x77665544, 0x3210) == 0x33221100);
  EXPECT(__ldg(x + i) == i && __ldcs(x + i) == x[i]);
  EXPECT(rsqrtf(4.0f) == 0.5f && __fmaf_rn(2, 3, 4) == 10 && __saturatef(i + 0.5f) == (i == 0 ? 0.5f : 1.0f));
  EXPECT(__fadd_rd(1.0f, -1e-20f) < 1.0f && __fadd_ru(1.0f, 1e-20f) > 1.0f && __fadd_rn(1.0f, 1e-20f) == 1.0f);
  EXPECT(__float2int_rz(1e20f) == 2147483647 && __float_as_int(1.0f) == 0x3f800000);
  EXPECT(min(i, 7) == (i < 7 ? i : 7) && max(2.0f, 1.0f) == 2.0f && fmaxf(NAN, 1.0f) == 1.0f);
  EXPECT(fabsf(__expf(1.0f) - 2.7182817f) < 1e-5f && fabs(normcdf(0.0) - 0.5) < 1e-15 && sinpi(0.5) == 1);
  EXPECT(__funnelshift_l(0x80000000u, 1u, 1) == 3 && __dp4a(0x01010101, 0x04030201, 5) == 15);
  EXPECT(__vadd4(0x01020304, 0x01010101) == 0x02030405 && __umulhi(0x80000000u, 4) == 2);
  const float4 v = make_float4(1, 2, 3, 4);
  EXPECT(v.x + v.w == 5);
}

int main() {
  float* x;
  cudaMallocManaged(&x, 64 * sizeof *x);
  for (int i = 0; i < 64; ++i) x[i] = i;
  kernel<<<1, 64>>>(x);
  return summary();
}
