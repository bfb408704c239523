#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <optional>

namespace macatorch {

// Products of matrices, and of batches of them, that oneDNN computes faster than MKL: Note [Products by oneDNN]. Each
// function does nothing where it does not apply; the caller goes on with upstream's kernel and its checks then. Gain:
// 220 against 100 GFLOP/s of one Zen 5 core in single precision, 430 against 95 in bfloat16 (0.35 of the time on
// Zen 4); measured in docs/performance.md.

#if MACATORCH_FAST_ONEDNN
/// mm (`dims` is 2) and bmm (3).
std::optional<at::Tensor> onednn_product(int64_t dims, const at::Tensor& left, const at::Tensor& right);
/// addmm (2) and baddbmm (3).
std::optional<at::Tensor> onednn_product(int64_t dims, const at::Tensor& self, const at::Tensor& left,
                                         const at::Tensor& right, const at::Scalar& beta, const at::Scalar& alpha);
/// The same with out=: true if `out` has the product.
bool onednn_product_into(int64_t dims, const at::Tensor& left, const at::Tensor& right, const at::Tensor& out);
bool onednn_product_into(int64_t dims, const at::Tensor& self, const at::Tensor& left, const at::Tensor& right,
                         const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out);
#else
template <class... T>
std::optional<at::Tensor> onednn_product(const T&...) {
  return std::nullopt;
}
template <class... T>
bool onednn_product_into(const T&...) {
  return false;
}
#endif

}  // namespace macatorch
