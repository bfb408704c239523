#include <ATen/ATen.h>
#include <torch/library.h>

#include <vector>

#include "arguments/Arguments.h"
#include "dispatch/Operators.h"

namespace macatorch {
namespace {

/// What FSDP hands to a reduce-scatter (torch 2.15 and later): _chunk_cat of gradients that may have several dtypes,
/// each rounded to that of `out`.
void chunk_cat_mixed_dtype(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  at::Tensor out = given.tensor("out");
  std::vector<at::Tensor> tensors = given.tensors("tensors");
  for (at::Tensor& tensor : tensors) {
    tensor = tensor.to(out.scalar_type());
  }
  at::_chunk_cat_out(out, tensors, *given.integer("dim"), *given.integer("num_chunks"));
  given.give();
}

}  // namespace
}  // namespace macatorch

#include "registered/distributed/ChunkCat.h"
