#include <ATen/ATen.h>

#include "arguments/Arguments.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

/// A volume (C, D, H, W) by itself that lies in the order of channels_last_3d.
bool is_channels_last_volume(const at::Tensor& self) {
  return self.dim() == 4 && !self.is_contiguous() && self.unsqueeze(0).is_contiguous(at::MemoryFormat::ChannelsLast3d);
}

/// The same volume as a batch of one, with the strides that a larger batch has: with others it is in another order.
at::Tensor as_batch_of_one(const at::Tensor& volume) {
  const at::Tensor batch = volume.unsqueeze(0);
  return is_channels_last_volume(volume)
             ? batch.as_strided(batch.sizes(), c10::get_channels_last_strides_3d(batch.sizes()))
             : batch;
}

/// One volume has four dimensions and may lie like an image in channels-last; the CPU's kernel refuses that order. In
/// the order of channels_last_3d it is computed as a batch of one, and the result has the same order, as on CUDA.
template <const OperatorSpec& spec>
void one_volume(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const bool batch = !op.schema().is_mutable() && is_channels_last_volume(Arguments(op, stack).tensor("self"));
  const size_t first = stack->size() - op.schema().arguments().size();
  for (const char* name : {"self", "grad_output", "indices"}) {
    if (const auto index = op.schema().argumentIndexWithName(name)) {
      c10::IValue& value = (*stack)[first + static_cast<size_t>(*index)];
      if (value.isTensor() && value.toTensor().dim() == 4) {
        value = batch ? as_batch_of_one(value.toTensor()) : value.toTensor().contiguous();
      }
    }
  }
  call_boxed(spec, op, stack);
  if (batch) {
    for (size_t i = first; i < stack->size(); ++i) {
      (*stack)[i] = (*stack)[i].toTensor().squeeze(0);
    }
  }
}

/// The CPU's kernels write to `out` element by element as if it were contiguous.
template <const OperatorSpec& spec>
void to_contiguous_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor out = stack->back().toTensor();
  if (out.is_contiguous()) {
    call_boxed(spec, op, stack);
    return;
  }
  stack->back() = at::empty({0}, out.options());
  call_boxed(spec, op, stack);
  stack->back() = write_out(out, stack->back().toTensor());
}

/// CUDA's kernel reads and writes rows, whatever the strides of its input. The CPU's keeps channels-last.
template <const OperatorSpec& spec>
void unpool_rows(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK(!op.schema().is_mutable() || stack->back().toTensor().is_contiguous(), "output must be contiguous");
  c10::IValue& self = (*stack)[stack->size() - op.schema().arguments().size()];
  self = self.toTensor().contiguous();
  call_boxed(spec, op, stack);
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/Pooling.h"
