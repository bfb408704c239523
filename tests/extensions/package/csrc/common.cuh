// What every file of the extension uses.
#pragma once

#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <tuple>

#define CHECK_INPUT(x)                                   \
  TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor"); \
  TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

inline int blocks_for(int64_t elements, int threads) { return static_cast<int>((elements + threads - 1) / threads); }
