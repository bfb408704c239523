#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "arguments/Release.h"
#include "dispatch/LayoutRule.h"
#include "dispatch/Precision.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

bool are_all(const std::vector<at::Tensor>& tensors, at::ScalarType dtype) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& t) { return t.scalar_type() == dtype; });
}

bool have_same_order(const at::Tensor& like, at::IntArrayRef one, at::IntArrayRef other) {
  for (int64_t dim = 0; dim < like.dim(); ++dim) {
    if (like.size(dim) > 1 && one[dim] != other[dim]) {
      return false;
    }
  }
  return true;
}

at::DimVector strides_upstream(const at::Tensor& tensor) {
  return upstream_strides(tensor).value_or(at::DimVector(tensor.strides()));
}

/// Whether CUDA's kernel would take `other`, of the gradients or the state, beside a parameter.
bool goes_with(const at::Tensor& parameter, const at::Tensor& other) {
  return other.layout() == at::kStrided && other.is_non_overlapping_and_dense() && other.sizes() == parameter.sizes() &&
         have_same_order(parameter, strides_upstream(other), strides_upstream(parameter));
}

// Note [Fused optimizers read memory in order]
// CUDA's kernels and the CPU's go through a parameter, its gradient and its state side by side, in the order of their
// memory. CUDA refuses lists whose strides differ; the CPU's kernel does not look, and takes the wrong numbers. Lists
// that agree but for the layout rule reach it as copies in the order of the parameter.

/// The lists of a fused optimizer that its kernel goes through side by side: parameters first, then gradients.
class Lists {
 public:
  Lists(const c10::OperatorHandle& op, torch::jit::Stack* stack) : given_(op, stack) {
    for (const char* name :
         {"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "momentum_buffer_list", "state_sums"}) {
      std::vector<at::Tensor> tensors = given_.tensors(name);
      if (!tensors.empty()) {
        names_.push_back(name);
        lists_.push_back(std::move(tensors));
      }
    }
    // CUDA's Adam keeps the state of float parameters in bfloat16 since 2.12.
    two_types_ = MACATORCH_TORCH_AT_LEAST(2, 12) && lists_.size() > 2 && names_[2] == std::string("exp_avgs") &&
                 are_all(lists_[0], at::kFloat) && are_all(lists_[1], at::kFloat);
    for (size_t list = 2; list < lists_.size(); ++list) {
      two_types_ = two_types_ && are_all(lists_[list], at::kBFloat16);
    }
  }

  /// Refuses what CUDA's kernel refuses.
  void check() const {
    for (const std::vector<at::Tensor>& list : lists_) {
      check(list.size() == lists_[0].size());
      for (size_t i = 0; i < list.size(); ++i) {
        check((two_types_ || list[i].scalar_type() == lists_[0][i].scalar_type()) && goes_with(lists_[0][i], list[i]));
      }
    }
  }

  /// Puts copies in the place of tensors whose elements lie in another order than the parameter's, and of a state in
  /// bfloat16.
  void align() {
    for (size_t list = 1; list < lists_.size(); ++list) {
      // Gradients are written where they are unscaled.
      const bool written = list > 1 || given_.tensor("grad_scale").defined();
      c10::List<at::Tensor> taken;
      bool changed = false;
      for (size_t i = 0; i < lists_[list].size(); ++i) {
        const at::Tensor& tensor = lists_[list][i];
        const at::Tensor& parameter = lists_[0][i];
        const bool widened = two_types_ && list > 1;
        if (!widened && have_same_order(parameter, tensor.strides(), parameter.strides())) {
          taken.push_back(tensor);
          continue;
        }
        const at::ScalarType dtype = widened ? at::kFloat : tensor.scalar_type();
        at::Tensor copy = at::empty_strided(tensor.sizes(), parameter.strides(), tensor.options().dtype(dtype));
        copy.copy_(tensor);
        if (written) {
          copies_.emplace_back(tensor, copy);
        }
        taken.push_back(std::move(copy));
        changed = true;
      }
      if (changed) {
        given_.replace(names_[list], std::move(taken));
      }
    }
  }

  /// Carries what the kernel has written into copies back.
  void write_back() const {
    for (const auto& [tensor, copy] : copies_) {
      tensor.copy_(copy);
    }
  }

 private:
  void check(bool taken) const {
    if (C10_LIKELY(taken)) {
      return;
    }
    if (names_.back() == std::string("state_sums")) {
      TORCH_CHECK(false, "params, grads, and state_sums must have same dtype, device, and layout");
    }
    TORCH_CHECK(lists_.size() > 2 && names_[2] == std::string("exp_avgs"),
                "Expected at::native::check_fast_path_restrictions(",
                lists_.size() > 2 ? " {params, grads, momentum_buffer_list}" : "{params, grads}",
                ") to be true, but got false.  (Could this error message be improved?  If so, please report an "
                "enhancement request to PyTorch.)");
    TORCH_CHECK(false, "params, grads, exp_avgs, ",
                given_.flag("amsgrad") ? "exp_avg_sqs, and max_exp_avg_sqs" : "and exp_avg_sqs",
                " must have same dtype, device, and layout");
  }

  Arguments given_;
  std::vector<const char*> names_;
  std::vector<std::vector<at::Tensor>> lists_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;
  bool two_types_ = false;
};

/// A fused optimizer's step by the CPU's kernel.
template <const OperatorSpec& spec>
void fused_step(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Lists lists(op, stack);
  lists.check();
  lists.align();
  call_boxed(spec, op, stack);
  lists.write_back();
}

/// Adam(W) with `fused=True`, of which later releases have CPU kernels. `decoupled`: weights decay by themselves
/// (AdamW), not through the gradient.
template <bool decoupled>
void fused_adam(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Lists(op, stack).check();
  Arguments given(op, stack);
  const std::vector<at::Tensor> parameters = given.tensors("self"), gradients = given.tensors("grads");
  const std::vector<at::Tensor> means = given.tensors("exp_avgs"), squares = given.tensors("exp_avg_sqs");
  const std::vector<at::Tensor> largest = given.tensors("max_exp_avg_sqs"), steps = given.tensors("state_steps");
  const at::Tensor grad_scale = given.tensor("grad_scale"), found_inf = given.tensor("found_inf");
  const double beta1 = *given.number("beta1"), beta2 = *given.number("beta2"), eps = *given.number("eps");
  const double decay = *given.number("weight_decay");
  const bool amsgrad = given.flag("amsgrad"), maximize = given.flag("maximize");
  TORCH_CHECK(!parameters.empty() && parameters.size() == gradients.size() && parameters.size() == means.size() &&
                  parameters.size() == squares.size() && parameters.size() == steps.size() &&
                  (!amsgrad || parameters.size() == largest.size()),
              "params, grads and the states of the optimizer must be lists of one length");
  DeviceCall call(parameters[0]);
  const c10::IValue rate = given["lr"];
  const double lr = rate.isTensor() ? call.alias(rate.toTensor()).item().toDouble() : rate.toScalar().toDouble();
  const bool skips = found_inf.defined() && call(found_inf).item<float>() == 1;
  for (size_t i = 0; i < parameters.size() && !skips; ++i) {
    const at::Tensor parameter = call(parameters[i], true), gradient = call(gradients[i], grad_scale.defined());
    at::Tensor value = widen(parameter), slope = widen(gradient);
    if (grad_scale.defined()) {
      slope = slope / call(grad_scale);
      gradient.copy_(slope);
    }
    if (maximize) {
      slope = slope.neg();
    }
    if (decay != 0 && decoupled) {
      value = value - value * (lr * decay);
    } else if (decay != 0) {
      slope = slope + value * decay;
    }
    const at::Tensor kept_mean = call(means[i], true), kept_square = call(squares[i], true);
    const at::Tensor mean = widen(kept_mean) * beta1 + slope * (1 - beta1);
    const at::Tensor square = widen(kept_square) * beta2 + slope * slope * (1 - beta2);
    at::Tensor spread = square;
    if (amsgrad) {
      const at::Tensor kept = call(largest[i], true);
      spread = at::maximum(widen(kept), square);
      kept.copy_(spread);
    }
    const double step = call(steps[i]).item().toDouble();
    const at::Tensor denominator = spread.sqrt().div_(std::sqrt(1 - std::pow(beta2, step))).add_(eps);
    parameter.copy_(value - mean / denominator * (lr / (1 - std::pow(beta1, step))));
    kept_mean.copy_(mean);
    kept_square.copy_(square);
  }
  call.write_back();
  given.give();
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/FusedOptimizers.h"
