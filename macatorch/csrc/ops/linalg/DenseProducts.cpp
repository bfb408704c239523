#include <ATen/ATen.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/vdot_ops.h>

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>

#include "alias/DeviceCall.h"
#include "arguments/Device.h"
#include "dispatch/Unboxed.h"
#include "fast/OneDnnProducts.h"
#include "fast/PanelProducts.h"
#include "memory/Workspaces.h"
#include "ops/linalg/TunableProducts.h"
#include "registered/Specs.h"

namespace macatorch {

// Products of dense matrices and vectors. cuBLAS has none of integers and booleans: upstream refuses them on CUDA. Some
// large ones are computed by oneDNN or in panels, or by what torch.cuda.tunable finds the fastest.

namespace {

/// Tensors of one integer dtype, none of them empty: an empty product calls no kernel.
struct Integers {
  at::ScalarType dtype = at::ScalarType::Undefined;
  bool all = true;

  void see(const at::Tensor& tensor) {
    const at::ScalarType own = tensor.scalar_type();
    all = all && at::isIntegralType(own, /*includeBool=*/true) &&
          (dtype == at::ScalarType::Undefined || dtype == own) && tensor.numel() != 0 && is_on_device(tensor);
    dtype = own;
  }
  void see(at::Tensor& /*written*/) {}
  template <class T>
  void see(const T& /*no tensor*/) {}
};

// Note [Products that use_deterministic_algorithms refuses]
// Where deterministic algorithms are asked for, 2.6.0 refuses what calls cuBLAS's gemm, its batched gemm or its gemv,
// unless CUBLAS_WORKSPACE_CONFIG has one of two values. Products are deterministic here in any case; but a program that
// this stops on hardware is stopped here too. Products to which cuBLASLt adds a bias on the way are free of it.

template <class Context>
auto alert_of_cublas(const Context& context, int /*preferred*/)
    -> decltype(context.alertCuBLASConfigNotDeterministic()) {
  context.alertCuBLASConfigNotDeterministic();
}
/// Later releases have no such rule.
template <class Context>
void alert_of_cublas(const Context& /*context*/, long /*otherwise*/) {}

/// The tensors of a product in the order of its schema; at most one is written, and stands apart.
struct Operands {
  std::array<const at::Tensor*, 3> read{};
  size_t count = 0;
  const at::Tensor* written = nullptr;
  const at::Scalar* beta = nullptr;

  void see(const at::Tensor& tensor) { read.at(count++) = &tensor; }
  void see(at::Tensor& tensor) { written = &tensor; }
  void see(const at::Scalar& scalar) { beta = beta != nullptr ? beta : &scalar; }

  const at::Tensor& left() const { return *read.at(count - 2); }
  const at::Tensor& right() const { return *read.at(count - 1); }

  /// True if the product has terms; one whose shapes do not fit is refused for that.
  bool has_terms() const {
    const int64_t inner = right().dim() == 1 ? 0 : right().dim() - 2;
    return left().dim() >= 2 && right().dim() >= 1 && left().size(-1) == right().size(inner) && left().numel() != 0 &&
           right().numel() != 0;
  }
  /// True if every kernel may be tried: what is wrong with the operands is said once, by upstream's.
  bool may_be_tuned() const {
    const bool batches_fit = left().dim() == 2 || left().size(0) == right().size(0);
    return has_terms() && left().dim() == right().dim() && batches_fit &&
           left().scalar_type() == right().scalar_type() && is_on_device(left()) && is_on_device(right());
  }
  /// True if upstream hands the sum to cuBLASLt as a bias (addmm and its out= form, not addmm_).
  bool is_bias() const {
    const at::Tensor& self = *read.front();
    return count == 3 && self.dim() == 1 && right().dim() == 2 && self.size(0) == right().size(1) &&
           self.is_contiguous() && (written == nullptr || written->is_contiguous()) && right().size(0) > 1 &&
           right().size(1) > 1 && at::isFloatingType(self.scalar_type()) && beta->equal(1);
  }
};

template <class Op, class... Others>
constexpr bool is_any_of = (std::is_same_v<Op, Others> || ...);

/// Dimensions of the operands where oneDNN may compute the product.
template <class Op>
constexpr int64_t kDims =
    is_any_of<Op, at::_ops::mm, at::_ops::mm_out, at::_ops::addmm, at::_ops::addmm_out>         ? 2
    : is_any_of<Op, at::_ops::bmm, at::_ops::bmm_out, at::_ops::baddbmm, at::_ops::baddbmm_out> ? 3
                                                                                                : 0;

/// Whether the operator has several kernels and writes nothing but its result.
template <class Op>
constexpr bool kIsTuned = is_any_of<Op, at::_ops::mm, at::_ops::addmm, at::_ops::bmm, at::_ops::baddbmm>;

// The names of cuBLAS's kernels in upstream's messages.
constexpr char addmm_cuda[] = "addmm_cuda";
constexpr char baddbmm_cuda[] = "baddbmm_cuda";
constexpr char addmv_impl_cuda[] = "addmv_impl_cuda";
constexpr char dot[] = "dot";
constexpr char vdot[] = "vdot";

template <class Op, const OperatorSpec& spec, const char* kernel, class Signature = typename Op::schema>
struct Product;
template <class Op, const OperatorSpec& spec, const char* kernel, class Result, class... Args>
struct Product<Op, spec, kernel, Result(Args...)> {
  static Result call(Args... args) {
    Integers integers;
    (integers.see(args), ...);
    if (C10_UNLIKELY(integers.all)) {
      refuse_dtype(kernel, integers.dtype);
    }
    if constexpr (!is_any_of<Op, at::_ops::dot, at::_ops::vdot>) {
      if (C10_UNLIKELY(at::globalContext().deterministicAlgorithms())) {
        Operands operands;
        (operands.see(args), ...);
        if (operands.has_terms() && !operands.is_bias()) {
          alert_of_cublas(at::globalContext(), 0);
        }
      }
    }
    if constexpr (kIsTuned<Op>) {
      if (C10_UNLIKELY(products_are_tunable())) {
        return with_workspace(tuned(args...), args...);
      }
    }
    return with_workspace(chosen(args...), args...);
  }

 private:
  /// As on hardware, a product leaves a workspace behind; one without terms calls no kernel.
  template <class Computed>
  static Result with_workspace(Computed&& result, const Args&... args) {
    Operands operands;
    (operands.see(args), ...);
    if (operands.left().numel() != 0 && operands.right().numel() != 0) {
      take_workspace(operands.right().device().index());
    }
    return std::forward<Computed>(result);
  }

  /// By the rule of the build: oneDNN or panels where they are faster as a rule, else upstream's kernel.
  static Result chosen(Args... args) {
    if constexpr (kDims<Op> != 0 && std::is_same_v<Result, at::Tensor>) {
      if (std::optional<at::Tensor> result = onednn_product(kDims<Op>, args...)) {
        return *std::move(result);
      }
    } else if constexpr (kDims<Op> != 0) {
      if (onednn_product_into(kDims<Op>, args...)) {
        return std::get<sizeof...(Args) - 1>(std::tie(args...));
      }
    }
    if constexpr (is_any_of<Op, at::_ops::mm, at::_ops::addmm>) {
      if (std::optional<at::Tensor> result = panel_product(args...)) {
        return *std::move(result);
      }
    } else if constexpr (is_any_of<Op, at::_ops::mm_out, at::_ops::addmm_out>) {
      if (panel_product_into(args...)) {
        return std::get<sizeof...(Args) - 1>(std::tie(args...));
      }
    }
    return Unboxed<Op, spec>::call(args...);
  }

  /// Note [Tunable products].
  static Result tuned(Args... args) {
    using Product = std::optional<at::Tensor>;
    Operands operands;
    (operands.see(args), ...);
    if (!operands.may_be_tuned()) {
      return chosen(args...);
    }
    std::vector<ProductKernel> kernels{
        {"Default", [&]() -> Product { return chosen(args...); }},
        {"Maca_Cpu", [&]() -> Product { return Unboxed<Op, spec>::call(args...); }},
        {"Maca_OneDnn", [&]() -> Product { return onednn_product(kDims<Op>, args...); }}};
    if constexpr (is_any_of<Op, at::_ops::mm, at::_ops::addmm>) {
      kernels.push_back({"Maca_Panels", [&]() -> Product { return panel_product(args...); }});
    }
    return tuned_product(operands.left(), operands.right(), operands.is_bias(), kernels);
  }
};

}  // namespace
}  // namespace macatorch

#include "registered/linalg/DenseProducts.h"
