#include "NeuralNet.h"

#include <ATen/ATen.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>

#include "DeviceCall.h"

namespace macatorch {
namespace {

constexpr c10::DispatchKeySet kCpu(c10::DispatchKey::CPU);

// The CPU kernel's saved statistics are those of cuDNN: the batch's mean and 1/sqrt(var + eps).

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> cudnn_batch_norm(
    const at::Tensor& input,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var,
    bool training,
    double exponential_average_factor,
    double epsilon) {
  DeviceCall call(input);
  auto [output, mean, invstd] = at::_ops::native_batch_norm::redispatch(
      kCpu,
      call(input),
      call(weight),
      call(bias),
      call(running_mean, true),
      call(running_var, true),
      training,
      exponential_average_factor,
      epsilon);
  at::Tensor reserve = at::empty({0}, call(input).options().dtype(at::kByte));
  return call.results(output, mean, invstd, reserve);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> cudnn_batch_norm_backward(
    const at::Tensor& input,
    const at::Tensor& grad_output,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var,
    const std::optional<at::Tensor>& save_mean,
    const std::optional<at::Tensor>& save_invstd,
    double epsilon,
    const at::Tensor& /*reserve*/) {
  DeviceCall call(input);
  auto [grad_input, grad_weight, grad_bias] = at::_ops::native_batch_norm_backward::redispatch(
      kCpu,
      call(grad_output),
      call(input),
      call(weight),
      call(running_mean),
      call(running_var),
      call(save_mean),
      call(save_invstd),
      /*train=*/true,
      epsilon,
      {true, true, true});
  return call.results(grad_input, grad_weight, grad_bias);
}

} // namespace

void register_normalizations(torch::Library& cuda) {
  cuda.impl("cudnn_batch_norm", TORCH_FN(cudnn_batch_norm));
  cuda.impl("cudnn_batch_norm_backward", TORCH_FN(cudnn_batch_norm_backward));
}

} // namespace macatorch
