#include <ATen/ATen.h>

#include "alias/DeviceCall.h"
#include "ops/random/Draws.h"
#include "random/Random.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

/// Upstream's kernel takes floating dtypes only; numbers of other kinds would be scaled and rounded.
void check_dtype(const at::Tensor& source) {
  if (!at::isFloatingType(source.scalar_type())) {
    refuse_dtype("fused_dropout", source.scalar_type());
  }
}

/// An uninitialised mask for `source`, and its elements in the order of memory, in which CUDA draws them.
std::pair<at::Tensor, at::Tensor> empty_mask(const at::Tensor& source, at::ScalarType dtype) {
  const at::Tensor mask = at::empty_like(source, source.options().dtype(dtype));
  return {mask, mask.as_strided({mask.numel()}, {1})};
}

/// Inverted dropout: elements are kept with probability 1 - p and scaled by 1 / (1 - p); the mask says which were kept.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  DeviceCall call(input);
  const at::Tensor source = call(input);
  if (input.numel() == 0 || (train.has_value() && !*train) || p == 0) {
    return call.results(source.clone(), at::ones_like(source, source.options().dtype(at::kBool)));
  }
  if (p == 1) {
    return call.results(at::zeros_like(source), at::zeros_like(source, source.options().dtype(at::kBool)));
  }
  check_dtype(source);
  auto [mask, elements] = empty_mask(source, at::kBool);
  const DrawsInside draws;
  elements.bernoulli_(1 - p, cpu_generator(std::nullopt, call.device().index()));
  return call.results(source.mul(mask).mul_(1 / (1 - p)), mask);
}

/// As native_dropout, but p is the probability of keeping an element and the mask is of bytes.
std::tuple<at::Tensor, at::Tensor> fused_dropout(const at::Tensor& self, double p,
                                                 std::optional<at::Generator> generator) {
  DeviceCall call(self);
  const at::Tensor source = call(self);
  check_dtype(source);
  auto [mask, elements] = empty_mask(source, at::kByte);
  const DrawsInside draws;
  elements.bernoulli_(p, cpu_generator(generator, call.device().index()));
  return call.results(source.mul(mask).mul_(1 / p), mask);
}

at::Tensor masked_scale(const at::Tensor& self, const at::Tensor& mask, double scale) {
  DeviceCall call(self);
  return call.result(call(self).mul(call(mask)).mul_(scale));
}

}  // namespace
}  // namespace macatorch

#include "registered/random/Dropout.h"
