// ldmatrix and mma.sync in inline PTX: 16 x 8 x 16 products of half and bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "../check.h"

// A is 16 x 16 in rows, B 16 x 8 in rows (so its fragment is loaded transposed), C 16 x 8.
template <bool brain, class T>
__global__ void product(const T* a, const T* b, float* c) {
  __shared__ __align__(16) T left[16 * 16];
  __shared__ __align__(16) T right[16 * 8];
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 256; i += 32) left[i] = a[i];
  for (unsigned i = lane; i < 128; i += 32) right[i] = b[i];
  __syncthreads();
  uint32_t x[4], y[2];
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(&left[lane % 16 * 16 + lane / 16 * 8]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(at));
  // Without a space of memory the address is a plain one.
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.b16 {%0, %1}, [%2];"
               : "=r"(y[0]), "=r"(y[1])
               : "l"(&right[lane % 16 * 8]));
  float d[4] = {1, 1, 1, 1};
  if (brain) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
  for (unsigned i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

template <bool brain, class T, class Convert>
void check(Convert convert) {
  T *a, *b;
  float* c;
  cudaMallocManaged(&a, 256 * sizeof *a);
  cudaMallocManaged(&b, 128 * sizeof *b);
  cudaMallocManaged(&c, 128 * sizeof *c);
  for (int i = 0; i < 256; ++i) a[i] = convert(static_cast<float>(i * 7 % 11 - 5));
  for (int i = 0; i < 128; ++i) b[i] = convert(static_cast<float>(i * 5 % 13 - 6));
  product<brain><<<1, 32>>>(a, b, c);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) {
        sum += static_cast<float>(((row * 16 + k) * 7 % 11 - 5) * ((k * 8 + column) * 5 % 13 - 6));
      }
      CHECK(c[row * 8 + column] == sum);
    }
  }
}

int main() {
  check<false, __half>([](float x) { return __float2half(x); });
  check<true, __nv_bfloat16>([](float x) { return __float2bfloat16(x); });
  return summary();
}
