#include <ATen/ATen.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>

#include "NeuralNet.h"
#include "Unboxed.h"

namespace macatorch {

MACATORCH_SPEC(log_sigmoid_forward);
MACATORCH_SPEC(log_sigmoid_backward);

namespace {

// The CPU's forward keeps exp(-|x|) for its backward; CUDA's keeps an empty tensor and computes it again, and compiled
// programs count on that.

std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& self) {
  auto [output, buffer] = Unboxed<at::_ops::log_sigmoid_forward, spec_log_sigmoid_forward>::call(self);
  return {output, at::empty({0}, self.options())};
}

at::Tensor backward(const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& buffer) {
  using Generated = Unboxed<at::_ops::log_sigmoid_backward, spec_log_sigmoid_backward>;
  return Generated::call(grad_output, self, buffer.sizes() == self.sizes() ? buffer : self.abs().neg_().exp_());
}

}  // namespace

void register_log_sigmoid(torch::Library& cuda) {
  cuda.impl("log_sigmoid_forward", TORCH_FN(forward));
  cuda.impl("log_sigmoid_backward", TORCH_FN(backward));
}

}  // namespace macatorch
