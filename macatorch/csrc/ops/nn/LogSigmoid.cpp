#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>

#include "arguments/Arguments.h"
#include "dispatch/Precision.h"
#include "dispatch/Unboxed.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// The CPU's forward keeps exp(-|x|) for its backward; CUDA's keeps an empty tensor and computes it again, and compiled
// programs count on that.

std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& self) {
  auto [output, buffer] = Unboxed<at::_ops::log_sigmoid_forward, spec_log_sigmoid_forward>::call(self);
  return {output, at::empty({0}, self.options())};
}

/// CUDA's kernel warns where it resizes `output`, and leaves `buffer` as it is.
void forward_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Arguments given(op, stack);
  const at::Tensor self = given.tensor("self");
  const at::Tensor output = given.tensor("output");
  const at::Tensor buffer = given.tensor("buffer");
  if (self.device() == output.device()) {
    at::native::resize_output(output, self.sizes());
  }
  stack->back() = at::empty({0}, self.options());
  call_boxed(spec_log_sigmoid_forward_output, op, stack);
  stack->back() = buffer;
}

/// Of low precision in float: a buffer of that dtype would be rounded.
at::Tensor backward(const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& buffer) {
  using Generated = Unboxed<at::_ops::log_sigmoid_backward, spec_log_sigmoid_backward>;
  if (is_half(self.scalar_type()) && grad_output.scalar_type() == self.scalar_type()) {
    return backward(grad_output.to(at::kFloat), self.to(at::kFloat), buffer.to(at::kFloat)).to(self.scalar_type());
  }
  return Generated::call(grad_output, self, buffer.sizes() == self.sizes() ? buffer : self.abs().neg_().exp_());
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/LogSigmoid.h"
