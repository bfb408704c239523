// Steps of a stencil in one launch: all blocks meet between two steps.
#pragma once

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cooperative_groups.h>
#include <ATen/cuda/Atomic.cuh>

#include "common.cuh"

template <typename scalar_t>
__global__ void stencil_kernel(scalar_t* from, scalar_t* to, int n, int steps) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  for (int step = 0; step < steps; ++step) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) {
      const scalar_t left = i > 0 ? from[i - 1] : from[i], right = i + 1 < n ? from[i + 1] : from[i];
      to[i] = (left + from[i] + from[i] + right) / scalar_t(4);
    }
    grid.sync();
    scalar_t* const swap = from;
    from = to;
    to = swap;
  }
}

at::Tensor grid_stencil(const at::Tensor& x, int64_t steps) {
  CHECK_INPUT(x);
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor result = x.clone();
  const size_t bytes = x.numel() * x.element_size();
  const auto stream = at::cuda::getCurrentCUDAStream();
  // A temporary straight from the allocator, and an odd number of steps ends in it.
  void* scratch = c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(bytes, stream);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "grid_stencil", [&] {
    auto* from = result.data_ptr<scalar_t>();
    auto* to = static_cast<scalar_t*>(scratch);
    int n = x.numel(), count = steps;
    void* arguments[] = {&from, &to, &n, &count};
    C10_CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&stencil_kernel<scalar_t>), dim3(4), dim3(32),
                                               arguments, 0, stream));
    if (steps % 2 != 0) {
      C10_CUDA_CHECK(cudaMemcpyAsync(from, to, bytes, cudaMemcpyDeviceToDevice, stream));
    }
  });
  c10::cuda::CUDACachingAllocator::raw_delete(scratch);
  return result;
}

// Counts by atomics, many threads to a place; the weights' dtype adds, half included.
template <typename scalar_t>
__global__ void weighted_count_kernel(const int64_t* places, const scalar_t* weights, scalar_t* sums, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) gpuAtomicAdd(sums + places[i], weights[i]);
}

at::Tensor weighted_count(const at::Tensor& places, const at::Tensor& weights, int64_t size) {
  CHECK_INPUT(places);
  CHECK_INPUT(weights);
  const c10::cuda::CUDAGuard guard(places.device());
  at::Tensor sums = at::zeros({size}, weights.options());
  at::cuda::CUDAEvent zeroed;
  zeroed.record();
  // The work of another stream waits for what this one did.
  const auto side = at::cuda::getStreamFromPool();
  zeroed.block(side);
  {
    const c10::cuda::CUDAStreamGuard on(side);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, weights.scalar_type(), "weighted_count", [&] {
      weighted_count_kernel<scalar_t><<<blocks_for(places.numel(), 128), 128, 0, side>>>(
          places.data_ptr<int64_t>(), weights.data_ptr<scalar_t>(), sums.data_ptr<scalar_t>(), places.numel());
      C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
  }
  at::cuda::CUDAEvent counted;
  counted.record(side);
  counted.block(at::cuda::getCurrentCUDAStream());
  return sums;
}

// Writes where nobody may.
__global__ void trespass_kernel(int* address) { *address = static_cast<int>(threadIdx.x); }

void trespass() {
  trespass_kernel<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(reinterpret_cast<int*>(8));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
