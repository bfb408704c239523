#include "fast/PanelProducts.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <algorithm>

#include "alias/DeviceCall.h"

namespace macatorch {

// Note [Products in panels]
// MKL's matrix product stores its result a few vector registers at a time. Where the rows of the result are no multiple
// of a register's 32 bytes (logits over a vocabulary of 50257 symbols), half of the stores cross a cache line, and the
// product takes up to a third longer. A large product of that kind is computed panel by panel into aligned rows that
// stay in the cache, and copied from there. Doubles lose by it: 552 ms
// instead of 508. Measured in docs/performance.md, "What makes it faster than the CPU".

namespace {

constexpr int64_t kRowAlignment = 32;      // bytes
constexpr int64_t kLeastResult = 2 << 20;  // bytes: below, the result itself stays in the cache
constexpr int64_t kPanelBytes = 4 << 20;
constexpr int64_t kMostPanelRows = 2048;
constexpr int64_t kLeastRows = 32;  // of a result: with fewer rows or columns the product is bound by what it reads
constexpr int64_t kLeastColumns = 64;

/// True for a product that is computed in panels, where rows of the result are `step` elements apart. The shapes are
/// those of a product then, on one device.
bool takes_panels(const at::Tensor& left, const at::Tensor& right, int64_t step) {
  if (left.dim() != 2 || right.dim() != 2 || !is_bare(left) || !is_bare(right)) {
    return false;
  }
  const int64_t columns = right.size(1), item = left.element_size();
  if (C10_LIKELY(left.size(0) * columns * item < kLeastResult || step * item % kRowAlignment == 0)) {
    return false;
  }
  const at::ScalarType dtype = left.scalar_type();
  return dtype == at::kFloat && right.scalar_type() == dtype && left.size(0) >= kLeastRows &&
         columns >= kLeastColumns && left.device() == right.device() && left.size(1) == right.size(0) &&
         right.size(0) != 0;
}

/// The same for a new result, whose rows follow each other.
bool takes_panels(const at::Tensor& left, const at::Tensor& right) {
  return right.dim() == 2 && takes_panels(left, right, right.size(1));
}

/// The same for a product that is written to `out`, which has its shape and shares no memory with the operands then.
bool takes_panels(const at::Tensor& left, const at::Tensor& right, const at::Tensor& out) {
  return out.dim() == 2 && is_bare(out) && out.stride(1) == 1 && takes_panels(left, right, out.stride(0)) &&
         out.scalar_type() == left.scalar_type() && out.device() == left.device() && out.size(0) == left.size(0) &&
         out.size(1) == right.size(1) && out.stride(0) >= out.size(1) && !out.is_alias_of(left) &&
         !out.is_alias_of(right);
}

bool can_be_added(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right) {
  return is_bare(self) && self.scalar_type() == left.scalar_type() && self.device() == left.device() &&
         at::is_expandable_to(self.sizes(), {left.size(0), right.size(1)});
}

/// A part of the result: `rows` from `row`, `columns` from `column`.
struct Part {
  int64_t row, rows, column, columns;
  at::Tensor of(const at::Tensor& matrix) const { return matrix.narrow(0, row, rows).narrow(1, column, columns); }
  at::Tensor left(const at::Tensor& matrix) const { return matrix.narrow(0, row, rows); }
  at::Tensor right(const at::Tensor& matrix) const { return matrix.narrow(1, column, columns); }
};

/// Calls `product(panel, part)` for each part of `result`.
template <class Product>
void in_panels(const at::Tensor& result, const Product& product) {
  const int64_t rows = result.size(0), columns = result.size(1), item = result.element_size();
  const int64_t height = std::min(rows, kMostPanelRows);
  int64_t width = std::min(columns, kPanelBytes / (height * item));
  width = (width * item + kRowAlignment - 1) / kRowAlignment * kRowAlignment / item;
  const at::Tensor panel = at::empty({height, width}, result.options());
  for (int64_t row = 0; row < rows; row += height) {
    for (int64_t column = 0; column < columns; column += width) {
      const Part part{row, std::min(height, rows - row), column, std::min(width, columns - column)};
      at::Tensor aligned = panel.narrow(0, 0, part.rows).narrow(1, 0, part.columns);
      product(aligned, part);
      part.of(result).copy_(aligned);
    }
  }
}

/// Writes left times right to `result`; all are aliases.
void compute(const at::Tensor& left, const at::Tensor& right, const at::Tensor& result) {
  in_panels(result,
            [&](at::Tensor& panel, const Part& part) { at::mm_out(panel, part.left(left), part.right(right)); });
}

/// Writes beta times self plus alpha times the product.
void compute(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right, const at::Scalar& beta,
             const at::Scalar& alpha, const at::Tensor& result) {
  const at::Tensor start = self.expand(result.sizes());
  in_panels(result, [&](at::Tensor& panel, const Part& part) {
    at::addmm_out(panel, part.of(start), part.left(left), part.right(right), beta, alpha);
  });
}

at::Tensor new_result(const at::Tensor& left, const at::Tensor& right) {
  return at::empty({left.size(0), right.size(1)}, left.options());
}

}  // namespace

std::optional<at::Tensor> panel_product(const at::Tensor& left, const at::Tensor& right) {
  if (C10_LIKELY(!takes_panels(left, right))) {
    return std::nullopt;
  }
  DeviceCall call(left);
  const at::Tensor a = call(left), b = call(right);
  at::Tensor result = new_result(a, b);
  compute(a, b, result);
  return call.result(std::move(result));
}

std::optional<at::Tensor> panel_product(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right,
                                        const at::Scalar& beta, const at::Scalar& alpha) {
  if (C10_LIKELY(!takes_panels(left, right)) || !can_be_added(self, left, right)) {
    return std::nullopt;
  }
  DeviceCall call(left);
  const at::Tensor a = call(left), b = call(right);
  at::Tensor result = new_result(a, b);
  compute(call(self), a, b, beta, alpha, result);
  return call.result(std::move(result));
}

bool panel_product_into(const at::Tensor& left, const at::Tensor& right, const at::Tensor& out) {
  if (C10_LIKELY(!takes_panels(left, right, out))) {
    return false;
  }
  DeviceCall call(left);
  const at::Tensor written = call(out, /*write=*/true);
  compute(call(left), call(right), written);
  call.write_back();
  return true;
}

bool panel_product_into(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right, const at::Scalar& beta,
                        const at::Scalar& alpha, const at::Tensor& out) {
  // A sum in place is left to upstream's kernel.
  if (C10_LIKELY(!takes_panels(left, right, out)) || !can_be_added(self, left, right) || out.is_alias_of(self)) {
    return false;
  }
  DeviceCall call(left);
  const at::Tensor written = call(out, /*write=*/true);
  compute(call(self), call(left), call(right), beta, alpha, written);
  call.write_back();
  return true;
}

}  // namespace macatorch
