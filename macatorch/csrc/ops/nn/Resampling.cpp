#include <ATen/ATen.h>

#include <vector>

#include "arguments/Arguments.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

/// Interpolation with antialiasing. The CPU kernel takes image and result in different orders where the result is
/// one pixel wide and either of them is channels-last: its strides fit both orders. There it gets contiguous ones.
template <const OperatorSpec& spec>
void antialiased(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Arguments given(op, stack);
  const at::Tensor image = given.tensor("self"), out = given.tensor("out");
  const std::vector<int64_t> size = given["output_size"].toIntVector();
  if (image.dim() != 4 || size.size() != 2 || size[1] != 1) {
    call_boxed(spec, op, stack);
    return;
  }
  given.replace("self", image.contiguous());
  if (out.defined()) {
    given.replace("out", at::empty({0}, out.options()));
  }
  call_boxed(spec, op, stack);
  const at::Tensor result = stack->back().toTensor();
  stack->back() = out.defined() ? write_out(out, result) : result.contiguous(image.suggest_memory_format());
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/Resampling.h"
