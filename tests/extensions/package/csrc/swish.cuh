// x * sigmoid(x), elementwise, in every floating dtype.
#pragma once

#include "common.cuh"

template <typename scalar_t>
__global__ void swish_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int64_t n) {
  using acc_t = at::acc_type<scalar_t, true>;
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  const acc_t value = static_cast<acc_t>(x[i]);
  y[i] = static_cast<scalar_t>(value / (acc_t(1) + ::exp(-value)));
}

template <typename scalar_t>
__global__ void swish_backward_kernel(const scalar_t* grad, const scalar_t* x, scalar_t* out, int64_t n) {
  using acc_t = at::acc_type<scalar_t, true>;
  // A grid-stride loop: fewer threads than elements.
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const acc_t value = static_cast<acc_t>(x[i]);
    const acc_t s = acc_t(1) / (acc_t(1) + ::exp(-value));
    out[i] = static_cast<scalar_t>(static_cast<acc_t>(grad[i]) * s * (acc_t(1) + value * (acc_t(1) - s)));
  }
}

at::Tensor swish(const at::Tensor& x) {
  CHECK_INPUT(x);
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor y = at::empty_like(x);
  if (x.numel() == 0) return y;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "swish", [&] {
    swish_kernel<scalar_t><<<blocks_for(x.numel(), 256), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return y;
}

at::Tensor swish_backward(const at::Tensor& grad, const at::Tensor& x) {
  CHECK_INPUT(grad);
  CHECK_INPUT(x);
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  if (x.numel() == 0) return out;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "swish_backward", [&] {
    swish_backward_kernel<scalar_t><<<2, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        grad.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), x.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}
