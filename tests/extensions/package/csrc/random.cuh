// Dropout that takes its place in the stream of the default CUDA generator, as torch's own does.
#pragma once

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <curand_kernel.h>
#include <ATen/cuda/CUDAGraphsUtils.cuh>

#include <mutex>

#include "common.cuh"

// Each thread draws four numbers and serves four neighbours.
template <typename scalar_t>
__global__ void dropout_kernel(const scalar_t* x, scalar_t* y, bool* kept, int64_t n, float keep,
                               at::PhiloxCudaState state) {
  const auto [seed, offset] = at::cuda::philox::unpack(state);
  const int64_t thread = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  curandStatePhilox4_32_10_t generator;
  curand_init(seed, thread, offset, &generator);
  const float4 draws = curand_uniform4(&generator);
  const float draw[4] = {draws.x, draws.y, draws.z, draws.w};
  for (int i = 0; i < 4; ++i) {
    const int64_t at = thread * 4 + i;
    if (at >= n) return;
    kept[at] = draw[i] <= keep;
    y[at] = kept[at] ? static_cast<scalar_t>(static_cast<float>(x[at]) / keep) : scalar_t(0);
  }
}

std::tuple<at::Tensor, at::Tensor> philox_dropout(const at::Tensor& x, double p) {
  CHECK_INPUT(x);
  TORCH_CHECK(p >= 0 && p < 1, "p must be in [0, 1)");
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor y = at::empty_like(x), kept = at::empty_like(x, x.options().dtype(at::kBool));
  auto* generator =
      at::get_generator_or_default<at::CUDAGeneratorImpl>({}, at::cuda::detail::getDefaultCUDAGenerator());
  at::PhiloxCudaState state;
  {
    const std::lock_guard<std::mutex> lock(generator->mutex_);
    state = generator->philox_cuda_state(4);
  }
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "philox_dropout", [&] {
    dropout_kernel<scalar_t><<<blocks_for(x.numel(), 256), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), kept.data_ptr<bool>(), x.numel(), static_cast<float>(1 - p),
        state);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return {y, kept};
}
