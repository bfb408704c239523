#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <optional>

namespace macatorch {

// Products whose rows are not aligned: Note [Products in panels]. Each function does nothing where it does not apply.
// Gain: 0.75 of the time for 512 x 768 times 768 x 30522 in float32; measured in docs/performance.md.

#if MACATORCH_FAST_PANELS
/// mm and addmm.
std::optional<at::Tensor> panel_product(const at::Tensor& left, const at::Tensor& right);
std::optional<at::Tensor> panel_product(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right,
                                        const at::Scalar& beta, const at::Scalar& alpha);
/// The same with out=: true if `out` has the product.
bool panel_product_into(const at::Tensor& left, const at::Tensor& right, const at::Tensor& out);
bool panel_product_into(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right, const at::Scalar& beta,
                        const at::Scalar& alpha, const at::Tensor& out);
#else
template <class... T>
std::optional<at::Tensor> panel_product(const T&...) {
  return std::nullopt;
}
template <class... T>
bool panel_product_into(const T&...) {
  return false;
}
#endif

}  // namespace macatorch
