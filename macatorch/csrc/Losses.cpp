#include "NeuralNet.h"

#include <ATen/ATen.h>

namespace macatorch {
namespace {

// ctc_loss asks whether cuDNN's form serves. It never does: _ctc_loss has the same value, and every argument's dtype.

bool use_cudnn_ctc_loss(const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, int64_t) {
  return false;
}
bool use_cudnn_ctc_loss_tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
  return false;
}

}  // namespace

void register_losses(torch::Library& cuda) {
  cuda.impl("_use_cudnn_ctc_loss", TORCH_FN(use_cudnn_ctc_loss));
  cuda.impl("_use_cudnn_ctc_loss.Tensor", TORCH_FN(use_cudnn_ctc_loss_tensor));
}

}  // namespace macatorch
