#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>

namespace macatorch {

// Sums of scaled lines: Note [Sums of lines]. Each function does nothing where it does not apply; the caller goes on
// with upstream's kernel and its checks then. Gain: docs/performance.md.

#if MACATORCH_FAST_LINES
/// beta * self + alpha * (left @ right) for a coordinate list or a CSR matrix on the left. Without `self` nothing is
/// added.
std::optional<at::Tensor> sparse_product(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right,
                                         const at::Scalar& beta, const at::Scalar& alpha);
/// A convolution of host tensors that has one or two channels as its result.
std::optional<at::Tensor> plane_convolution(const at::Tensor& input, const at::Tensor& weight,
                                            const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride,
                                            c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                                            const c10::SymInt& groups);
#else
template <class... T>
std::optional<at::Tensor> sparse_product(const T&...) {
  return std::nullopt;
}
template <class... T>
std::optional<at::Tensor> plane_convolution(const T&...) {
  return std::nullopt;
}
#endif

}  // namespace macatorch
