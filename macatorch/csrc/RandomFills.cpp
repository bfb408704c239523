#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include "Arguments.h"
#include "NeuralNet.h"
#include "Operators.h"

namespace macatorch {

// Random numbers in place. On CUDA one stream of numbers goes through the memory of a tensor in order, whatever its strides;
// upstream's CPU kernels draw in another way where a tensor is not contiguous.

MACATORCH_SPEC(normal_);
MACATORCH_SPEC(exponential_);
MACATORCH_SPEC(bernoulli__float);

namespace {

template <const OperatorSpec& spec>
void fill_in_memory_order(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const at::Tensor self = (*stack)[first].toTensor();
  if (C10_LIKELY(self.is_contiguous()) || self.has_names() || at::has_internal_overlap(self) == at::MemOverlap::Yes) {
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

}  // namespace

void register_random_fills(torch::Library& cuda) {
  implement<&fill_in_memory_order<spec_normal_>>(cuda, "normal_");
  implement<&fill_in_memory_order<spec_exponential_>>(cuda, "exponential_");
  implement<&fill_in_memory_order<spec_bernoulli__float>>(cuda, "bernoulli_.float");
}

}  // namespace macatorch
