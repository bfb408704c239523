// One launch for many tensors: their addresses and sizes travel in a parameter of some kilobytes.
#pragma once

#include "common.cuh"

constexpr int kMostTensors = 32;
constexpr int kMostChunks = 160;
constexpr int64_t kChunk = 256;

struct TensorLists {
  void* from[kMostTensors];
  void* to[kMostTensors];
  int64_t sizes[kMostTensors];
  unsigned char tensorOf[kMostChunks];
  int chunkOf[kMostChunks];
};

template <typename scalar_t>
struct ScaleInto {
  __device__ void operator()(const TensorLists& lists, int* overflow, float scale) const {
    const int tensor = lists.tensorOf[blockIdx.x];
    const int64_t begin = lists.chunkOf[blockIdx.x] * kChunk;
    const int64_t end = min(begin + kChunk, lists.sizes[tensor]);
    const auto* from = static_cast<const scalar_t*>(lists.from[tensor]);
    auto* to = static_cast<scalar_t*>(lists.to[tensor]);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const auto value = static_cast<at::acc_type<scalar_t, true>>(from[i]) * scale;
      if (!isfinite(value)) *overflow = 1;
      to[i] = static_cast<scalar_t>(value);
    }
  }
};

template <typename Work, typename... Arguments>
__global__ void __launch_bounds__(128) for_each_chunk(TensorLists lists, int* overflow, Work work, Arguments... more) {
  work(lists, overflow, more...);
}

// Returns 1 where a result was not finite.
at::Tensor scale_all(at::TensorList from, at::TensorList to, double scale) {
  TORCH_CHECK(!from.empty() && from.size() == to.size(), "two lists of as many tensors are wanted");
  const c10::cuda::CUDAGuard guard(from[0].device());
  at::Tensor overflow = at::zeros({1}, from[0].options().dtype(at::kInt));
  const auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND(at::kHalf, from[0].scalar_type(), "scale_all", [&] {
    TensorLists lists{};
    int tensors = 0, chunks = 0;
    const auto launch = [&] {
      for_each_chunk<<<chunks, 128, 0, stream>>>(lists, overflow.data_ptr<int>(), ScaleInto<scalar_t>(),
                                                 static_cast<float>(scale));
      C10_CUDA_KERNEL_LAUNCH_CHECK();
      chunks = 0;
    };
    for (size_t t = 0; t < from.size(); ++t) {
      if (tensors == kMostTensors) {
        if (chunks > 0) launch();
        tensors = 0;
      }
      lists.from[tensors] = from[t].data_ptr();
      lists.to[tensors] = to[t].data_ptr();
      lists.sizes[tensors] = from[t].numel();
      for (int64_t chunk = 0; chunk * kChunk < from[t].numel(); ++chunk) {
        if (chunks == kMostChunks) launch();
        lists.tensorOf[chunks] = static_cast<unsigned char>(tensors);
        lists.chunkOf[chunks++] = static_cast<int>(chunk);
      }
      ++tensors;
    }
    if (chunks > 0) launch();
  });
  return overflow;
}
