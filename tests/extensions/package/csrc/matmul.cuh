// A product by tiles in shared memory, and one by a direct call of cuBLAS.
#pragma once

#include <ATen/cuda/CUDABlas.h>
#include <cublas_v2.h>

#include "common.cuh"

constexpr int kTile = 8;

template <typename scalar_t>
__global__ void tiled_mm_kernel(const scalar_t* a, const scalar_t* b, scalar_t* c, int rows, int inner, int columns) {
  using acc_t = at::acc_type<scalar_t, true>;
  __shared__ acc_t left[kTile][kTile], right[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  acc_t sum = 0;
  for (int start = 0; start < inner; start += kTile) {
    const int i = start + threadIdx.x, j = start + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < rows && i < inner ? static_cast<acc_t>(a[row * inner + i]) : acc_t(0);
    right[threadIdx.y][threadIdx.x] =
        j < inner && column < columns ? static_cast<acc_t>(b[j * columns + column]) : acc_t(0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = static_cast<scalar_t>(sum);
}

at::Tensor tiled_mm(const at::Tensor& a, const at::Tensor& b) {
  CHECK_INPUT(a);
  CHECK_INPUT(b);
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), "a and b must be matrices that fit");
  const c10::cuda::CUDAGuard guard(a.device());
  at::Tensor c = at::empty({a.size(0), b.size(1)}, a.options());
  const dim3 grid(blocks_for(b.size(1), kTile), blocks_for(a.size(0), kTile)), block(kTile, kTile);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(a.scalar_type(), "tiled_mm", [&] {
    tiled_mm_kernel<scalar_t><<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), c.data_ptr<scalar_t>(), a.size(0), a.size(1), b.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return c;
}

// cuBLAS counts by columns: the transposed product of the transposed factors is the product by rows.
at::Tensor blas_mm(const at::Tensor& a, const at::Tensor& b) {
  CHECK_INPUT(a);
  CHECK_INPUT(b);
  TORCH_CHECK(a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat, "float only");
  const c10::cuda::CUDAGuard guard(a.device());
  at::Tensor c = at::empty({a.size(0), b.size(1)}, a.options());
  const float one = 1, zero = 0;
  const int m = b.size(1), n = a.size(0), k = a.size(1);
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
  TORCH_CUDABLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, b.data_ptr<float>(), m,
                                   a.data_ptr<float>(), k, &zero, c.data_ptr<float>(), m));
  return c;
}
