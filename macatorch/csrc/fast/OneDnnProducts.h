#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <optional>

namespace macatorch {

// Products of matrices, and of batches of them, that oneDNN computes faster than MKL: Note [Products by oneDNN]. Each
// function does nothing where it does not apply; the caller goes on with upstream's kernel and its checks then.

/// On the device, strided, and without names, which upstream's kernels carry on.
bool is_bare(const at::Tensor& tensor);

/// mm (`dims` is 2) and bmm (3).
std::optional<at::Tensor> onednn_product(int64_t dims, const at::Tensor& left, const at::Tensor& right);
/// addmm (2) and baddbmm (3).
std::optional<at::Tensor> onednn_product(int64_t dims, const at::Tensor& self, const at::Tensor& left,
                                         const at::Tensor& right, const at::Scalar& beta, const at::Scalar& alpha);
/// The same with out=: true if `out` has the product.
bool onednn_product_into(int64_t dims, const at::Tensor& left, const at::Tensor& right, const at::Tensor& out);
bool onednn_product_into(int64_t dims, const at::Tensor& self, const at::Tensor& left, const at::Tensor& right,
                         const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out);

}  // namespace macatorch
