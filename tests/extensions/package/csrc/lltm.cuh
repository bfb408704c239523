// A recurrent cell of three gates, fused: input, output and candidate of a (batch, 3, state) tensor of pre-activations.
#pragma once

#include "common.cuh"

namespace lltm {

template <typename scalar_t>
__device__ __forceinline__ scalar_t sigmoid(scalar_t z) {
  return scalar_t(1) / (scalar_t(1) + ::exp(-z));
}

// ELU with alpha 1, and its derivative.
template <typename scalar_t>
__device__ __forceinline__ scalar_t elu(scalar_t z) {
  return z > scalar_t(0) ? z : ::expm1(z);
}
template <typename scalar_t>
__device__ __forceinline__ scalar_t elu_slope(scalar_t z) {
  return z > scalar_t(0) ? scalar_t(1) : ::exp(z);
}

template <typename scalar_t>
using Gates = at::PackedTensorAccessor32<scalar_t, 3, at::RestrictPtrTraits>;
template <typename scalar_t>
using State = at::PackedTensorAccessor32<scalar_t, 2, at::RestrictPtrTraits>;

template <typename scalar_t>
__global__ void forward_kernel(const Gates<scalar_t> gates, const State<scalar_t> old_cell, State<scalar_t> new_h,
                               State<scalar_t> new_cell) {
  const int row = blockIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= gates.size(2)) return;
  const scalar_t cell = old_cell[row][column] + sigmoid(gates[row][0][column]) * elu(gates[row][2][column]);
  new_cell[row][column] = cell;
  new_h[row][column] = ::tanh(cell) * sigmoid(gates[row][1][column]);
}

template <typename scalar_t>
__global__ void backward_kernel(const State<scalar_t> grad_h, const State<scalar_t> grad_cell,
                                const State<scalar_t> new_cell, const Gates<scalar_t> gates, Gates<scalar_t> d_gates,
                                State<scalar_t> d_old_cell) {
  const int row = blockIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= gates.size(2)) return;
  const scalar_t in = sigmoid(gates[row][0][column]), out = sigmoid(gates[row][1][column]);
  const scalar_t z = gates[row][2][column], t = ::tanh(new_cell[row][column]);
  const scalar_t d_cell = grad_cell[row][column] + grad_h[row][column] * out * (scalar_t(1) - t * t);
  d_old_cell[row][column] = d_cell;
  d_gates[row][0][column] = d_cell * elu(z) * in * (scalar_t(1) - in);
  d_gates[row][1][column] = grad_h[row][column] * t * out * (scalar_t(1) - out);
  d_gates[row][2][column] = d_cell * in * elu_slope(z);
}

}  // namespace lltm

std::tuple<at::Tensor, at::Tensor> lltm_cell(const at::Tensor& gates, const at::Tensor& old_cell) {
  CHECK_INPUT(gates);
  CHECK_INPUT(old_cell);
  TORCH_CHECK(gates.dim() == 3 && gates.size(1) == 3, "gates must be (batch, 3, state)");
  const c10::cuda::CUDAGuard guard(gates.device());
  at::Tensor h = at::empty_like(old_cell), cell = at::empty_like(old_cell);
  const dim3 grid(blocks_for(gates.size(2), 64), gates.size(0));
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_cell", ([&] {
                               lltm::forward_kernel<scalar_t><<<grid, 64, 0, at::cuda::getCurrentCUDAStream()>>>(
                                   gates.packed_accessor32<scalar_t, 3, at::RestrictPtrTraits>(),
                                   old_cell.packed_accessor32<scalar_t, 2, at::RestrictPtrTraits>(),
                                   h.packed_accessor32<scalar_t, 2, at::RestrictPtrTraits>(),
                                   cell.packed_accessor32<scalar_t, 2, at::RestrictPtrTraits>());
                             }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {h, cell};
}

std::tuple<at::Tensor, at::Tensor> lltm_cell_backward(const at::Tensor& grad_h, const at::Tensor& grad_cell,
                                                      const at::Tensor& new_cell, const at::Tensor& gates) {
  CHECK_INPUT(grad_h);
  CHECK_INPUT(grad_cell);
  const c10::cuda::CUDAGuard guard(gates.device());
  at::Tensor d_gates = at::empty_like(gates), d_old_cell = at::empty_like(new_cell);
  const dim3 grid(blocks_for(gates.size(2), 64), gates.size(0));
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_cell_backward", ([&] {
                               lltm::backward_kernel<scalar_t><<<grid, 64, 0, at::cuda::getCurrentCUDAStream()>>>(
                                   grad_h.packed_accessor32<scalar_t, 2, at::RestrictPtrTraits>(),
                                   grad_cell.packed_accessor32<scalar_t, 2, at::RestrictPtrTraits>(),
                                   new_cell.packed_accessor32<scalar_t, 2, at::RestrictPtrTraits>(),
                                   gates.packed_accessor32<scalar_t, 3, at::RestrictPtrTraits>(),
                                   d_gates.packed_accessor32<scalar_t, 3, at::RestrictPtrTraits>(),
                                   d_old_cell.packed_accessor32<scalar_t, 2, at::RestrictPtrTraits>());
                             }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {d_gates, d_old_cell};
}
