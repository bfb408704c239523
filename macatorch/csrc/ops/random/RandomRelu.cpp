#include <ATen/ATen.h>
#include <ATen/native/Resize.h>

#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "arguments/Names.h"
#include "ops/random/Draws.h"
#include "registered/Specs.h"

namespace macatorch {

// rrelu in training. CUDA draws a slope for each element, in the order in which it draws for `uniform_`; compiled
// programs count on that. Upstream's CPU kernel draws for the negative elements alone.

namespace {

template <const OperatorSpec& spec>
void rrelu_with_noise(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self"), noise = given.tensor("noise"), out = given.tensor("out");
  const double lower = *given.number("lower"), upper = *given.number("upper");
  const bool alike = self.device() == noise.device() && self.sizes() == noise.sizes() &&
                     self.scalar_type() == noise.scalar_type() && at::isFloatingType(self.scalar_type()) &&
                     !has_names(self) && !has_names(noise) &&
                     (!out.defined() || (out.device() == self.device() && out.scalar_type() == self.scalar_type()));
  if (!given.flag("training") || !alike || !(lower <= upper)) {
    call_boxed(spec, op, stack);
    return;
  }
  const DrawsInside draws;
  noise.uniform_(lower, upper, given["generator"].toOptional<at::Generator>());
  noise.masked_fill_(self.le(0).logical_not_(), 1);
  const at::Tensor value = self.mul(noise);
  if (out.defined()) {
    at::native::resize_output(out, self.sizes());
    given.give(out.copy_(value));
  } else {
    given.give(op.schema().arguments()[0].alias_info() != nullptr ? self.copy_(value) : value);
  }
}

}  // namespace
}  // namespace macatorch

#include "registered/random/RandomRelu.h"
