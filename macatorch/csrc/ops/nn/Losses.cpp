#include <ATen/ATen.h>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// ctc_loss asks whether cuDNN's form serves. It never does: _ctc_loss has the same value, and every argument's dtype.
// Programs that call cuDNN's form by name get the loss and its gradient at once, as there.

std::tuple<at::Tensor, at::Tensor> cudnn_ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets,
                                                  at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
                                                  int64_t blank, bool /*deterministic*/, bool zero_infinity) {
  DeviceCall call(log_probs);
  const at::Tensor values = call(log_probs);
  const at::Tensor labels = call.alias(targets).to(at::kLong);
  auto [loss, log_alpha] = at::_ctc_loss(values, labels, input_lengths, target_lengths, blank, zero_infinity);
  const at::Tensor grad = at::_ctc_loss_backward(at::ones_like(loss), values, labels, input_lengths, target_lengths,
                                                 loss, log_alpha, blank, zero_infinity);
  return call.results(loss, grad);
}

std::tuple<at::Tensor, at::Tensor> cudnn_ctc_loss_tensor(const at::Tensor& log_probs, const at::Tensor& targets,
                                                         const at::Tensor& input_lengths,
                                                         const at::Tensor& target_lengths, int64_t blank,
                                                         bool deterministic, bool zero_infinity) {
  const at::Tensor inputs = input_lengths.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor labels = target_lengths.to(at::kCPU, at::kLong).contiguous();
  return cudnn_ctc_loss(log_probs, targets, {inputs.const_data_ptr<int64_t>(), static_cast<size_t>(inputs.numel())},
                        {labels.const_data_ptr<int64_t>(), static_cast<size_t>(labels.numel())}, blank, deterministic,
                        zero_infinity);
}

bool use_cudnn_ctc_loss(const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, int64_t) {
  return false;
}
bool use_cudnn_ctc_loss_tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
  return false;
}

/// The gradient has the order of the input, of which upstream's kernels take rows alone, on CUDA as well. An image that
/// the layout rule has put in channels-last counts as rows.
template <const OperatorSpec& spec>
void gradient_in_rows(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  constexpr size_t kSelf = 1;
  c10::IValue& self = (*stack)[stack->size() - op.schema().arguments().size() + kSelf];
  if (self.toTensor().suggest_memory_format() == at::MemoryFormat::ChannelsLast) {
    self = self.toTensor().contiguous();
  }
  call_boxed(spec, op, stack);
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/Losses.h"
