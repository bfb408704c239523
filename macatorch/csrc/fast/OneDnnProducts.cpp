#include "fast/OneDnnProducts.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <cstdlib>
#include <string>

#include "alias/DeviceCall.h"
#include "arguments/Release.h"
#include "fast/Processor.h"

namespace at::native {
// Upstream's bridge to oneDNN's matrix product: result = alpha * (left @ right) + beta * result.
TORCH_API void mkldnn_matmul(const Tensor& left, const Tensor& right, const Tensor& result, float beta, float alpha);
}  // namespace at::native

namespace macatorch {

// Note [Products by oneDNN]
// On AMD's processors MKL multiplies with AVX2 whatever they have. Zen 5 computes with AVX-512 at twice that width, and
// oneDNN, which is in libtorch_cpu for the convolutions, does so: of one core in single precision 220 GFLOP/s, against
// 100 by MKL. Halves are computed in single precision there and rounded once. And where a processor multiplies bfloat16
// itself, oneDNN does that (430 GFLOP/s), adding up in single precision. oneDNN compiles a kernel for each new pair of
// shapes (0.2 to 3 ms; it keeps 1024 of them), so that only products that take about that long anyhow go there, whether
// or not their shapes were seen before: equal products have equal bits. Measured in docs/performance.md, "What makes it
// faster than the CPU".

namespace {

// The least number of multiplications: 256 x 256 x 256 and 128 x 128 x 128.
constexpr int64_t kLeastWork = int64_t{1} << 24;
constexpr int64_t kLeastBfloat16Work = int64_t{1} << 21;
// In old releases upstream's bridge takes bfloat16 alone, and in 2.4 it computes floats in bfloat16 where AMX is there.
constexpr bool kMultipliesFloats = MACATORCH_TORCH_AT_LEAST(2, 5);
constexpr int64_t kLeastSide = 8;  // rows and columns of a result: below, a product is bound by what it reads

struct Choice {
  bool floats, bfloat16;
};

/// MACA_ONEDNN_PRODUCTS: 1 for oneDNN wherever it can compute, 0 for MKL, unset for the faster of them.
Choice read_choice() {
  const char* given = std::getenv("MACA_ONEDNN_PRODUCTS");
  const std::string choice = given != nullptr ? given : "";
  TORCH_CHECK(choice.empty() || choice == "0" || choice == "1", "MACA_ONEDNN_PRODUCTS is '", choice,
              "'; it can be 1 (oneDNN computes large products), 0 (MKL does) or unset (the faster of them)");
  return {kMultipliesFloats && (choice.empty() ? has_wide_vectors_of_amd() : choice == "1"),
          choice != "0" && has_bfloat16_products()};
}

/// In which dtype oneDNN computes a product; Undefined where it does not. The shapes are those of a product then, on
/// one device, and both operands have one dtype.
at::ScalarType dtype_by_onednn(int64_t dims, const at::Tensor& left, const at::Tensor& right) {
  constexpr at::ScalarType kNone = at::ScalarType::Undefined;
  static const Choice chosen = read_choice();
  if (!(chosen.floats || chosen.bfloat16) || left.dim() != dims || right.dim() != dims) {
    return kNone;
  }
  const int64_t batch = dims == 3 ? left.size(0) : 1;
  const int64_t rows = left.size(-2), inner = left.size(-1), columns = right.size(-1);
  const int64_t work = batch * rows * inner * columns;
  if (C10_LIKELY(work < kLeastBfloat16Work) || rows < kLeastSide || columns < kLeastSide) {
    return kNone;
  }
  const at::ScalarType dtype = left.scalar_type();
  const bool bfloat16 = dtype == at::kBFloat16 && chosen.bfloat16;
  const bool floats = (dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16) && chosen.floats;
  if (!bfloat16 && !(floats && work >= kLeastWork)) {
    return kNone;
  }
  const bool fits = right.scalar_type() == dtype && is_bare(left) && is_bare(right) &&
                    left.device() == right.device() && right.size(-2) == inner &&
                    (dims == 2 || right.size(0) == batch) && at::globalContext().userEnabledMkldnn();
  return !fits ? kNone : bfloat16 ? at::kBFloat16 : at::kFloat;
}

c10::SmallVector<int64_t, 3> product_sizes(const at::Tensor& left, const at::Tensor& right) {
  c10::SmallVector<int64_t, 3> sizes(left.sizes().begin(), left.sizes().end());
  sizes.back() = right.size(-1);
  return sizes;
}

/// What is added to a product: nothing, `self`, or something that oneDNN does not add.
struct Addend {
  const at::Tensor* self = nullptr;
  bool known = true;

  Addend() = default;
  Addend(const at::Tensor& self, const at::Scalar& beta, const at::Scalar& alpha)
      : self(beta.equal(0) ? nullptr : &self), known(alpha.equal(1) && (beta.equal(0) || beta.equal(1))) {}

  bool fits(const at::Tensor& left, const at::Tensor& right) const {
    return known && (self == nullptr ||
                     (is_bare(*self) && self->scalar_type() == left.scalar_type() && self->device() == left.device() &&
                      at::is_expandable_to(self->sizes(), product_sizes(left, right))));
  }
};

/// Writes the product of two aliases, plus the addend, to `result`, which has the dtype to compute in.
void compute(DeviceCall& call, const Addend& added, const at::Tensor& left, const at::Tensor& right,
             const at::Tensor& result) {
  if (added.self != nullptr) {
    result.copy_(call(*added.self).expand(result.sizes()));
  }
  const at::ScalarType dtype = result.scalar_type();
  at::native::mkldnn_matmul(left.to(dtype), right.to(dtype), result, /*beta=*/added.self != nullptr ? 1 : 0,
                            /*alpha=*/1);
}

std::optional<at::Tensor> new_product(int64_t dims, const Addend& added, const at::Tensor& left,
                                      const at::Tensor& right) {
  const at::ScalarType dtype = dtype_by_onednn(dims, left, right);
  if (C10_LIKELY(dtype == at::ScalarType::Undefined) || !added.fits(left, right)) {
    return std::nullopt;
  }
  DeviceCall call(left);
  const at::Tensor a = call(left), b = call(right);
  const at::Tensor result = at::empty(product_sizes(a, b), a.options().dtype(dtype));
  compute(call, added, a, b, result);
  return call.result(result.to(a.scalar_type()));
}

/// True if the operands can be read while `out` is written.
bool is_target(const at::Tensor& out, const Addend& added, const at::Tensor& left, const at::Tensor& right) {
  return is_bare(out) && out.scalar_type() == left.scalar_type() && out.device() == left.device() &&
         out.is_contiguous() && out.sizes() == product_sizes(left, right) && !out.is_alias_of(left) &&
         !out.is_alias_of(right) && (added.self == nullptr || !out.is_alias_of(*added.self));
}

bool product_into(int64_t dims, const Addend& added, const at::Tensor& left, const at::Tensor& right,
                  const at::Tensor& out) {
  const at::ScalarType dtype = dtype_by_onednn(dims, left, right);
  if (C10_LIKELY(dtype == at::ScalarType::Undefined) || !added.fits(left, right) ||
      !is_target(out, added, left, right)) {
    return false;
  }
  DeviceCall call(left);
  const at::Tensor written = call(out, /*write=*/true);
  const bool same = written.scalar_type() == dtype;
  const at::Tensor result = same ? written : at::empty(written.sizes(), written.options().dtype(dtype));
  compute(call, added, call(left), call(right), result);
  if (!same) {
    written.copy_(result);
  }
  call.write_back();
  return true;
}

}  // namespace

std::optional<at::Tensor> onednn_product(int64_t dims, const at::Tensor& left, const at::Tensor& right) {
  return new_product(dims, Addend(), left, right);
}

std::optional<at::Tensor> onednn_product(int64_t dims, const at::Tensor& self, const at::Tensor& left,
                                         const at::Tensor& right, const at::Scalar& beta, const at::Scalar& alpha) {
  return new_product(dims, Addend(self, beta, alpha), left, right);
}

bool onednn_product_into(int64_t dims, const at::Tensor& left, const at::Tensor& right, const at::Tensor& out) {
  return product_into(dims, Addend(), left, right, out);
}

bool onednn_product_into(int64_t dims, const at::Tensor& self, const at::Tensor& left, const at::Tensor& right,
                         const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  return product_into(dims, Addend(self, beta, alpha), left, right, out);
}

}  // namespace macatorch
