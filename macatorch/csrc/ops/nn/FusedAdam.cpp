#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "dispatch/Precision.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

/// Adam(W) with `fused=True`, of which later releases have CPU kernels. `decoupled`: weights decay by themselves
/// (AdamW), not through the gradient.
template <bool decoupled>
void fused_adam(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
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

bool are_all(const std::vector<at::Tensor>& tensors, at::ScalarType dtype) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& t) { return t.scalar_type() == dtype; });
}

/// Float parameters whose state is in bfloat16: it is widened for the step, and rounded behind it.
template <const OperatorSpec& spec>
void fused_adam_of_two_types(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::array<const char*, 3> names{"exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"};
  std::vector<at::Tensor> kept, wide;
  {
    const Arguments given(op, stack);
    bool two_types = are_all(given.tensors("self"), at::kFloat) && are_all(given.tensors("grads"), at::kFloat);
    for (const char* name : names) {
      const std::vector<at::Tensor> states = given.tensors(name);
      two_types = two_types && are_all(states, at::kBFloat16);
      kept.insert(kept.end(), states.begin(), states.end());
    }
    if (!two_types || kept.empty()) {
      call_boxed(spec, op, stack);
      return;
    }
  }
  const size_t first = stack->size() - op.schema().arguments().size();
  for (const char* name : names) {
    c10::IValue& states = (*stack)[first + static_cast<size_t>(*op.schema().argumentIndexWithName(name))];
    c10::List<at::Tensor> widened;
    for (const at::Tensor& state : states.toTensorVector()) {
      widened.push_back(state.to(at::kFloat));
      wide.push_back(widened.get(widened.size() - 1));
    }
    states = widened;
  }
  call_boxed(spec, op, stack);
  for (size_t i = 0; i < kept.size(); ++i) {
    kept[i].copy_(wide[i]);
  }
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/FusedAdam.h"
