// Half and bfloat16 in kernels: arithmetic, pairs, shuffles, atomics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../check.h"

__global__ void kernel(__half* sums, __half2* pairs, __nv_bfloat16* bsums) {
  const int i = threadIdx.x;
  const __half x = __float2half(0.5f * i);
  EXPECT(__half2float(__hadd(x, __float2half(1.0f))) == 0.5f * i + 1);
  EXPECT(__half2float(__hfma(x, x, x)) == __half2float(__float2half(0.25f * i * i + 0.5f * i)));
  EXPECT(__half2float(x * x - x) == __half2float(__hsub(__hmul(x, x), x)));
  const __half2 both = __floats2half2_rn(i, -i);
  EXPECT(__low2float(__hadd2(both, both)) == 2.0f * i && __high2float(h2rcp(__floats2half2_rn(1, 4))) == 0.25f);
  EXPECT(__half2float(__shfl_xor_sync(0xffffffff, x, 1)) == 0.5f * (i ^ 1));
  EXPECT(__high2float(__shfl_down_sync(0xffffffff, both, 3, 8)) == -(i % 8 < 5 ? i + 3 : i));
  EXPECT(__bfloat162float(__float2bfloat16(1.00390625f)) == 1.0f);
  EXPECT(__hgt(x, __float2half(3.0f)) == (0.5f * i > 3.0f));
  EXPECT(__half2int_rn(__float2half(2.5f)) == 2 && __half2int_ru(__float2half(2.25f)) == 3);
  atomicAdd(sums, __float2half(1.0f));
  atomicAdd(pairs, __floats2half2_rn(1.0f, 2.0f));
  atomicAdd(bsums, __float2bfloat16(1.0f));
}

int main() {
  __half* sums;
  __half2* pairs;
  __nv_bfloat16* bsums;
  cudaMallocManaged(&sums, sizeof *sums);
  cudaMallocManaged(&pairs, sizeof *pairs);
  cudaMallocManaged(&bsums, sizeof *bsums);
  *sums = __float2half(0.0f);
  *pairs = __floats2half2_rn(0.0f, 0.0f);
  *bsums = __float2bfloat16(0.0f);
  kernel<<<4, 64>>>(sums, pairs, bsums);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(__half2float(*sums) == 256 && __low2float(*pairs) == 256 && __high2float(*pairs) == 512);
  CHECK(__bfloat162float(*bsums) == 256);
  return summary();
}
