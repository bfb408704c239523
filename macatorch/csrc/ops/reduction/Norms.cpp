#include <ATen/ATen.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/norm_ops.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "dispatch/Precision.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {

// Note [Norms of many elements]
// Upstream's CPU kernel adds the powers up one after the other, in each lane of a vector register. Of 16 M numbers the
// 2-norm is then off by 5e-4, and the 3-norm by 3e-3; CUDA's kernel adds up in a tree and is right to 1e-7. The norm of
// the norms of pieces is the norm of all, so many elements are reduced piece by piece: a tree of two or three levels.

namespace {

constexpr int64_t kPiece = 4096;

at::Tensor kernel(const at::Tensor& self, const at::Scalar& ord, int64_t dim) {
  return at::linalg_vector_norm(self, ord, at::IntArrayRef(dim), /*keepdim=*/true);
}

/// The norm along one dimension, which stays with size 1.
at::Tensor along(const at::Tensor& self, const at::Scalar& ord, int64_t dim) {
  const int64_t size = self.size(dim), pieces = size / kPiece;
  if (size <= kExactNorm) {
    return kernel(self, ord, dim);
  }
  const at::Tensor whole = self.narrow(dim, 0, pieces * kPiece).unflatten(dim, {pieces, kPiece});
  at::Tensor norms = kernel(whole, ord, dim + 1).squeeze(dim + 1);
  if (size % kPiece != 0) {
    norms = at::cat({norms, kernel(self.narrow(dim, pieces * kPiece, size % kPiece), ord, dim)}, dim);
  }
  // The 0-norm counts, and counts are added up.
  return along(norms, ord.toDouble() == 0 ? at::Scalar(1) : ord, dim);
}

/// The norm over `dims`, which stay with size 1.
at::Tensor over(at::Tensor self, at::Scalar ord, std::vector<int64_t> dims) {
  std::sort(dims.begin(), dims.end(), [&](int64_t a, int64_t b) { return self.size(a) > self.size(b); });
  for (const int64_t dim : dims) {
    self = along(self, ord, dim);
    if (ord.toDouble() == 0) {
      ord = 1;
    }
  }
  return self;
}

/// The norm by pieces; none where the CPU's kernel is as good, or has to raise an error.
std::optional<at::Tensor> by_pieces(const at::Tensor& self, const at::Scalar& ord, at::OptionalIntArrayRef dim,
                                    bool keepdim, std::optional<at::ScalarType> dtype) {
  const at::ScalarType computed = accumulate_dtype(dtype.value_or(self.scalar_type()));
  const bool single = computed == at::kFloat || computed == at::kComplexFloat;
  const bool narrows = dtype && at::promote_types(self.scalar_type(), *dtype) != *dtype;
  const bool floating = self.is_floating_point() || self.is_complex();
  if (!single || narrows || !floating || ord.isComplex() || std::isinf(ord.toDouble())) {
    return std::nullopt;
  }
  const auto mask = at::native::make_dim_mask(dim, self.dim());
  std::vector<int64_t> dims;
  int64_t reduced = 1;
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (mask[i]) {
      dims.push_back(i);
      reduced *= self.size(i);
    }
  }
  if (reduced <= kExactNorm || self.numel() == 0) {
    return std::nullopt;
  }
  at::Tensor numbers = widen(dtype ? self.to(*dtype) : self);
  if (numbers.is_complex()) {
    numbers = numbers.abs();
  }
  at::Tensor norm;
  if (static_cast<int64_t>(dims.size()) == self.dim() && numbers.is_contiguous()) {
    norm =
        along(numbers.view(-1), ord, 0).view(keepdim ? std::vector<int64_t>(dims.size(), 1) : std::vector<int64_t>());
  } else {
    norm = over(numbers, ord, dims);
    for (auto i = dims.rbegin(); !keepdim && i != dims.rend(); ++i) {
      norm = norm.squeeze(*i);
    }
  }
  return norm.to(c10::toRealValueType(dtype.value_or(self.scalar_type())));
}

/// linalg_vector_norm, and the forms of norm that name dimensions.
struct Norm {
  template <class Form>
  static typename Form::Result call(const Form& form, const at::Tensor& self, const at::Scalar& ord,
                                    at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype) {
    return C10_LIKELY(self.numel() <= kExactNorm) ? form.kernel(self, ord, dim, keepdim, dtype)
                                                  : large(form, ord, dim, dtype, self, ord, dim, keepdim, dtype);
  }
  template <class Form>
  static typename Form::Result call(const Form& form, const at::Tensor& self, const std::optional<at::Scalar>& p,
                                    at::IntArrayRef dim, bool keepdim) {
    return C10_LIKELY(self.numel() <= kExactNorm)
               ? form.kernel(self, p, dim, keepdim)
               : large(form, p.value_or(2), dim, std::nullopt, self, p, dim, keepdim);
  }
  template <class Form>
  static typename Form::Result call(const Form& form, const at::Tensor& self, const std::optional<at::Scalar>& p,
                                    at::IntArrayRef dim, bool keepdim, at::ScalarType dtype) {
    return C10_LIKELY(self.numel() <= kExactNorm)
               ? form.kernel(self, p, dim, keepdim, dtype)
               : large(form, p.value_or(2), dim, dtype, self, p, dim, keepdim, dtype);
  }

 private:
  /// `given`: the arguments as the operator has them.
  template <class Form, class Order, class Dims, class... Dtype>
  static C10_NOINLINE typename Form::Result large(const Form& form, const at::Scalar& ord, at::OptionalIntArrayRef dims,
                                                  std::optional<at::ScalarType> dtype, const at::Tensor& self,
                                                  const Order& given_order, const Dims& given_dims, bool keepdim,
                                                  const Dtype&... given_dtype) {
    const at::ScalarType result = c10::toRealValueType(dtype.value_or(self.scalar_type()));
    const at::Tensor out = form.out();
    const bool fits = !out.defined() || (out.device() == self.device() && out.scalar_type() == result);
    const std::optional<at::Tensor> norm = fits ? by_pieces(self, ord, dims, keepdim, dtype) : std::nullopt;
    return norm ? form.give(*norm) : form.kernel(self, given_order, given_dims, keepdim, given_dtype...);
  }
};

}  // namespace
}  // namespace macatorch

#include "registered/reduction/Norms.h"
