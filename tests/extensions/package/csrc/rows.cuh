// One block a row: a sum by warp shuffles, a softmax in dynamic shared memory, a sort by cub.
#pragma once

#include <cub/block/block_radix_sort.cuh>
#include <limits>

#include "common.cuh"

template <typename T>
__device__ T warp_sum_of(T value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffU, value, offset);
  return value;
}

template <typename scalar_t>
__global__ void row_sum_kernel(const scalar_t* x, scalar_t* sums, int columns) {
  using acc_t = at::acc_type<scalar_t, true>;
  __shared__ acc_t parts[32];
  acc_t sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += static_cast<acc_t>(x[blockIdx.x * columns + i]);
  sum = warp_sum_of(sum);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = warp_sum_of(threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : acc_t(0));
  if (threadIdx.x == 0) sums[blockIdx.x] = static_cast<scalar_t>(sum);
}

at::Tensor row_sum(const at::Tensor& x) {
  CHECK_INPUT(x);
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor sums = at::empty({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "row_sum", [&] {
    row_sum_kernel<scalar_t><<<x.size(0), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), sums.data_ptr<scalar_t>(), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return sums;
}

// The row and one value a warp; two reductions by halving.
template <typename acc_t>
__device__ acc_t block_reduce(acc_t value, acc_t* scratch, bool maximum) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const acc_t other = scratch[threadIdx.x + half];
      scratch[threadIdx.x] = maximum ? ::max(scratch[threadIdx.x], other) : scratch[threadIdx.x] + other;
    }
    __syncthreads();
  }
  const acc_t result = scratch[0];
  __syncthreads();
  return result;
}

template <typename scalar_t>
__global__ void softmax_kernel(const scalar_t* x, scalar_t* y, int columns) {
  using acc_t = at::acc_type<scalar_t, true>;
  extern __shared__ unsigned char raw[];
  auto* row = reinterpret_cast<acc_t*>(raw);
  acc_t* scratch = row + columns;
  const scalar_t* in = x + static_cast<int64_t>(blockIdx.x) * columns;
  acc_t highest = -std::numeric_limits<acc_t>::infinity();
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    row[i] = static_cast<acc_t>(in[i]);
    highest = ::max(highest, row[i]);
  }
  highest = block_reduce(highest, scratch, true);
  acc_t sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] = ::exp(row[i] - highest);
  sum = block_reduce(sum, scratch, false);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[static_cast<int64_t>(blockIdx.x) * columns + i] = static_cast<scalar_t>(row[i] / sum);
  }
}

template <typename scalar_t>
__global__ void softmax_backward_kernel(const scalar_t* grad, const scalar_t* y, scalar_t* out, int columns) {
  using acc_t = at::acc_type<scalar_t, true>;
  extern __shared__ unsigned char raw[];
  auto* scratch = reinterpret_cast<acc_t*>(raw);
  const int64_t start = static_cast<int64_t>(blockIdx.x) * columns;
  acc_t dot = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    dot += static_cast<acc_t>(grad[start + i]) * static_cast<acc_t>(y[start + i]);
  }
  dot = block_reduce(dot, scratch, false);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[start + i] =
        static_cast<scalar_t>(static_cast<acc_t>(y[start + i]) * (static_cast<acc_t>(grad[start + i]) - dot));
  }
}

constexpr int kSoftmaxThreads = 64;

at::Tensor softmax(const at::Tensor& x) {
  CHECK_INPUT(x);
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor y = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "softmax", [&] {
    const size_t bytes = sizeof(at::acc_type<scalar_t, true>) * (x.size(1) + kSoftmaxThreads);
    softmax_kernel<scalar_t><<<x.size(0), kSoftmaxThreads, bytes, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return y;
}

at::Tensor softmax_backward(const at::Tensor& grad, const at::Tensor& y) {
  CHECK_INPUT(grad);
  CHECK_INPUT(y);
  const c10::cuda::CUDAGuard guard(y.device());
  at::Tensor out = at::empty_like(y);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(y.scalar_type(), "softmax_backward", [&] {
    const size_t bytes = sizeof(at::acc_type<scalar_t, true>) * kSoftmaxThreads;
    softmax_backward_kernel<scalar_t><<<y.size(0), kSoftmaxThreads, bytes, at::cuda::getCurrentCUDAStream()>>>(
        grad.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), y.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

constexpr int kSortThreads = 64, kSortItems = 4;

// Keys with the places that they came from. What a short row leaves of the tile sorts to its end.
template <typename key_t>
__global__ void block_sort_kernel(const key_t* keys, key_t* sorted, int64_t* places, int columns) {
  using Sort = cub::BlockRadixSort<key_t, kSortThreads, kSortItems, int>;
  __shared__ typename Sort::TempStorage storage;
  key_t own[kSortItems];
  int from[kSortItems];
  for (int i = 0; i < kSortItems; ++i) {
    from[i] = threadIdx.x * kSortItems + i;
    own[i] = from[i] < columns ? keys[blockIdx.x * columns + from[i]] : std::numeric_limits<key_t>::max();
  }
  Sort(storage).Sort(own, from);
  for (int i = 0; i < kSortItems; ++i) {
    const int at = threadIdx.x * kSortItems + i;
    if (at >= columns) continue;
    sorted[blockIdx.x * columns + at] = own[i];
    places[blockIdx.x * columns + at] = from[i];
  }
}

std::tuple<at::Tensor, at::Tensor> block_sort(const at::Tensor& keys) {
  CHECK_INPUT(keys);
  TORCH_CHECK(keys.size(1) <= kSortThreads * kSortItems, "a row has at most ", kSortThreads * kSortItems, " keys");
  const c10::cuda::CUDAGuard guard(keys.device());
  at::Tensor sorted = at::empty_like(keys), places = at::empty_like(keys, keys.options().dtype(at::kLong));
  AT_DISPATCH_ALL_TYPES(keys.scalar_type(), "block_sort", [&] {
    block_sort_kernel<scalar_t><<<keys.size(0), kSortThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        keys.data_ptr<scalar_t>(), sorted.data_ptr<scalar_t>(), places.data_ptr<int64_t>(), keys.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return {sorted, places};
}
