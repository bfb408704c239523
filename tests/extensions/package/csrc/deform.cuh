// Columns of a deformable convolution: values between the pixels, and their gradient by atomics.
#pragma once

#include <ATen/cuda/detail/KernelUtils.h>
#include <ATen/cuda/Atomic.cuh>

#include "common.cuh"

// The four neighbours of a place and their weights; nothing outside.
template <typename scalar_t, typename Visit>
__device__ __forceinline__ void for_neighbours(scalar_t y, scalar_t x, int height, int width, const Visit& visit) {
  if (y <= -1 || x <= -1 || y >= height || x >= width) return;
  const int top = static_cast<int>(floor(y)), left = static_cast<int>(floor(x));
#pragma unroll
  for (int corner = 0; corner < 4; ++corner) {
    const int row = top + corner / 2, column = left + corner % 2;
    if (row < 0 || column < 0 || row >= height || column >= width) continue;
    visit(row * width + column, (scalar_t(1) - abs(y - row)) * (scalar_t(1) - abs(x - column)));
  }
}

// image (channels, height, width), offsets (2 * k * k, height, width), columns (channels, k * k, height, width).
template <typename scalar_t, bool kBackward>
__global__ void deform_columns_kernel(int n, scalar_t* image, const scalar_t* offsets, scalar_t* columns, int channels,
                                      int height, int width, int k) {
  CUDA_KERNEL_LOOP(index, n) {
    const int x = index % width, y = index / width % height, tap = index / (width * height) % (k * k);
    const int channel = index / (width * height * k * k);
    const scalar_t* const offset = offsets + (2 * tap * height + y) * width + x;
    const scalar_t at_y = y + tap / k - k / 2 + offset[0], at_x = x + tap % k - k / 2 + offset[height * width];
    scalar_t* const plane = image + channel * height * width;
    if constexpr (kBackward) {
      const scalar_t grad = columns[index];
      for_neighbours(at_y, at_x, height, width,
                     [&](int place, scalar_t weight) { gpuAtomicAdd(plane + place, grad * weight); });
    } else {
      scalar_t value = 0;
      for_neighbours(at_y, at_x, height, width, [&](int place, scalar_t weight) { value += plane[place] * weight; });
      columns[index] = value;
    }
  }
}

template <bool kBackward>
void run_deform(at::Tensor& image, const at::Tensor& offsets, at::Tensor& columns, int64_t k) {
  const c10::cuda::CUDAGuard guard(image.device());
  AT_DISPATCH_FLOATING_TYPES(image.scalar_type(), "deform_columns", [&] {
    const int n = static_cast<int>(columns.numel());
    deform_columns_kernel<scalar_t, kBackward>
        <<<at::cuda::detail::GET_BLOCKS(n), at::cuda::detail::CUDA_NUM_THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
            n, image.data_ptr<scalar_t>(), offsets.data_ptr<scalar_t>(), columns.data_ptr<scalar_t>(),
            static_cast<int>(image.size(0)), static_cast<int>(image.size(1)), static_cast<int>(image.size(2)),
            static_cast<int>(k));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

at::Tensor deform_columns(const at::Tensor& image, const at::Tensor& offsets, int64_t k) {
  CHECK_INPUT(image);
  CHECK_INPUT(offsets);
  at::Tensor columns = at::empty({image.size(0), k * k, image.size(1), image.size(2)}, image.options());
  at::Tensor source = image;
  run_deform<false>(source, offsets, columns, k);
  return columns;
}

at::Tensor deform_columns_backward(const at::Tensor& grad, const at::Tensor& offsets, int64_t k) {
  CHECK_INPUT(grad);
  CHECK_INPUT(offsets);
  at::Tensor image = at::zeros({grad.size(0), grad.size(2), grad.size(3)}, grad.options());
  at::Tensor columns = grad;
  run_deform<true>(image, offsets, columns, k);
  return image;
}
