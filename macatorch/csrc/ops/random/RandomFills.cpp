#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "arguments/Arguments.h"
#include "arguments/Names.h"
#include "registered/Specs.h"

namespace macatorch {

// Random numbers in place. On CUDA one stream of numbers goes through the memory of a tensor in order, whatever its
// strides; upstream's CPU kernels draw in another way where a tensor is not contiguous.

namespace {

template <const OperatorSpec& spec>
void fill_in_memory_order(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const at::Tensor self = (*stack)[first].toTensor();
  if (C10_LIKELY(self.is_contiguous()) || has_names(self) || at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    call_boxed(spec, op, stack);
    return;
  }
  const at::Tensor dense = self.is_non_overlapping_and_dense() ? self : at::empty_like(self);
  (*stack)[first] = dense.as_strided({dense.numel()}, {1});
  call_boxed(spec, op, stack);
  if (!dense.is_same(self)) {
    self.copy_(dense);
  }
  stack->back() = self;
}

/// CUDA draws halves as floats and rounds them, so that they have the floats' tails and a seed gives the same numbers
/// in both. Returns the floats, by which `self` was replaced on the stack; undefined where nothing is to be rounded.
at::Tensor replace_by_floats(torch::jit::Stack* stack, size_t place) {
  const at::Tensor self = (*stack)[place].toTensor();
  if (!at::isReducedFloatingType(self.scalar_type()) || has_names(self) ||
      at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    return {};
  }
  at::Tensor floats = at::empty_like(self, self.options().dtype(at::kFloat));
  (*stack)[place] = floats;
  return floats;
}

template <const OperatorSpec& spec>
void normal(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const at::Tensor self = (*stack)[first].toTensor();
  const at::Tensor floats = replace_by_floats(stack, first);
  fill_in_memory_order<spec>(op, stack);
  if (floats.defined()) {
    self.copy_(floats);
    stack->back() = self;
  }
}

/// A number that rounds to the upper bound, which is none of the results, becomes the lower one, as on CUDA.
template <const OperatorSpec& spec>
void uniform(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const at::Tensor self = (*stack)[first].toTensor();
  const double from = (*stack)[first + 1].toDouble(), to = (*stack)[first + 2].toDouble();
  if (at::isReducedFloatingType(self.scalar_type())) {
    at::empty({0}, self.scalar_type()).uniform_(from, to);  // refuses bounds that are not of this dtype
  }
  const at::Tensor floats = replace_by_floats(stack, first);
  call_boxed(spec, op, stack);
  if (floats.defined()) {
    self.copy_(floats);
    self.masked_fill_(self.eq(to), from);
    stack->back() = self;
  }
}

/// CUDA's numbers are never 0 at a finite rate. The CPU kernel draws finer ones, and of halves the least become 0.
template <const OperatorSpec& spec>
void exponential(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const double rate = (*stack)[stack->size() - op.schema().arguments().size() + 1].toDouble();
  fill_in_memory_order<spec>(op, stack);
  at::Tensor self = stack->back().toTensor();
  if (self.scalar_type() == at::kHalf && std::isfinite(rate)) {
    constexpr double kLeastHalf = 1.0 / (1 << 24);
    self.clamp_min_(kLeastHalf);
  }
}

/// normal(mean, std) into `out`, by which the dimensions of all three are ordered as they lie in its memory.
template <const OperatorSpec& spec>
void normal_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t first = stack->size() - schema.arguments().size();
  c10::IValue& place = (*stack)[first + static_cast<size_t>(*schema.argumentIndexWithName("out"))];
  const at::Tensor out = place.toTensor();
  const auto shape_of = [](const c10::IValue& value) {
    return value.isTensor() ? value.toTensor().sizes() : at::IntArrayRef();
  };
  const at::IntArrayRef mean = shape_of((*stack)[first]);
  const at::IntArrayRef std = shape_of((*stack)[first + 1]);
  if (C10_LIKELY(out.is_contiguous()) || has_names(out) || at::has_internal_overlap(out) == at::MemOverlap::Yes ||
      !at::is_expandable_to(mean, out.sizes()) || !at::is_expandable_to(std, out.sizes()) ||
      out.sizes() != at::IntArrayRef(at::infer_size(mean, std))) {
    call_boxed(spec, op, stack);
    return;
  }
  const at::Tensor dense = out.is_non_overlapping_and_dense() ? out : at::empty_like(out);
  std::vector<int64_t> order(static_cast<size_t>(dense.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return dense.stride(a) > dense.stride(b); });
  place = dense.permute(order);
  for (size_t i = 0; i < 2; ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (value.isTensor()) {
      value = value.toTensor().expand(out.sizes()).permute(order);
    }
  }
  call_boxed(spec, op, stack);
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
  stack->back() = out;
}

}  // namespace
}  // namespace macatorch

#include "registered/random/RandomFills.h"
