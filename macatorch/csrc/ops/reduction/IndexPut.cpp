#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "arguments/Arguments.h"
#include "dispatch/Precision.h"
#include "registered/Specs.h"

namespace macatorch {

// Sums of halves at indices that repeat (the gradient of an index). CUDA's kernels for slices of at most a warp add in
// float and round once; the one for longer slices rounds each sum, as upstream's CPU kernel always does.

namespace {

constexpr int64_t kWarp = 32;

/// Elements that belong to one index: those of the dimensions that have none behind the indexed ones, or of all such
/// dimensions where the indexed ones do not stand together.
int64_t slice_size(const at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices) {
  std::vector<bool> indexed;
  for (const std::optional<at::Tensor>& index : indices) {
    const bool given = index.has_value() && index->defined();
    const bool mask = given && (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte);
    indexed.insert(indexed.end(), mask ? static_cast<size_t>(std::max<int64_t>(index->dim(), 1)) : 1, given);
  }
  indexed.resize(static_cast<size_t>(self.dim()), false);
  const auto first = std::find(indexed.begin(), indexed.end(), true);
  const auto last = std::find(indexed.rbegin(), indexed.rend(), true).base();
  const bool together = std::find(first, last, false) == last;
  int64_t size = 1;
  for (auto at = together ? last : indexed.begin(); at != indexed.end(); ++at) {
    size *= *at ? 1 : self.size(at - indexed.begin());
  }
  return size;
}

template <const OperatorSpec& spec>
void index_put(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Arguments given(op, stack);
  const at::Tensor self = given.tensor("self"), values = given.tensor("values");
  // What shares memory is for the kernel to warn of or refuse.
  const bool adds = given.flag("accumulate") && is_half(self.scalar_type()) &&
                    values.scalar_type() == self.scalar_type() && self.layout() == at::kStrided &&
                    at::has_internal_overlap(self) != at::MemOverlap::Yes && !values.is_alias_of(self);
  if (C10_LIKELY(!adds) || slice_size(self, given["indices"].to<c10::List<std::optional<at::Tensor>>>()) > kWarp) {
    call_boxed(spec, op, stack);
    return;
  }
  const at::Tensor sums = widen(self);
  const size_t first = stack->size() - op.schema().arguments().size();
  (*stack)[first] = sums;
  (*stack)[first + 2] = widen(values);
  call_boxed(spec, op, stack);
  stack->back() = self.copy_(sums);
}

}  // namespace
}  // namespace macatorch

#include "registered/reduction/IndexPut.h"
