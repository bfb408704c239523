// wmma: half and bfloat16 with float sums, in both layouts, from shared memory, by several warps.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "../check.h"

using namespace nvcuda;

// C (64 x 64) = A (64 x 32, rows) * B (32 x 64, columns): a warp a tile of 16 x 16.
template <class T>
__global__ void product(const T* a, const T* b, float* c) {
  __shared__ T tile[16 * 32];
  for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) tile[i] = a[blockIdx.x * 16 * 32 + i];
  __syncthreads();
  const int warp = threadIdx.x / 32;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < 32; k += 16) {
    wmma::load_matrix_sync(left, tile + k, 32);
    wmma::load_matrix_sync(right, b + warp * 16 * 32 + k, 32);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0f;
  wmma::store_matrix_sync(c + blockIdx.x * 16 * 64 + warp * 16, sum, 64, wmma::mem_row_major);
}

template <class T, class Convert>
void check(Convert convert) {
  T *a, *b;
  float* c;
  cudaMallocManaged(&a, 64 * 32 * sizeof *a);
  cudaMallocManaged(&b, 64 * 32 * sizeof *b);
  cudaMallocManaged(&c, 64 * 64 * sizeof *c);
  for (int i = 0; i < 64 * 32; ++i) {
    a[i] = convert(static_cast<float>(i * 7 % 11 - 5));
    b[i] = convert(static_cast<float>(i * 5 % 13 - 6));
  }
  product<<<4, 128>>>(a, b, c);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      float sum = 0;
      for (int k = 0; k < 32; ++k)
        sum += static_cast<float>(((row * 32 + k) * 7 % 11 - 5) * ((column * 32 + k) * 5 % 13 - 6));
      CHECK(c[row * 64 + column] == 2 * sum);
    }
  }
}

int main() {
  check<__half>([](float x) { return __float2half(x); });
  check<__nv_bfloat16>([](float x) { return __float2bfloat16(x); });
  return summary();
}
