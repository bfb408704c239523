#include <ATen/ATen.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/nested/NestedTensorBinaryOps.h>

#include "arguments/Arguments.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

/// Adds or multiplies part i of a nested tensor by row i of a dense one, shape (parts, 1, width). Upstream's table has
/// a CUDA kernel for it and no CPU function: here part by part.
void dense_elementwise(at::Tensor& result, const at::Tensor& self, const at::Tensor& other,
                       const at::native::NESTED_DENSE_OP& op) {
  std::vector<at::Tensor> targets = result.unbind();
  const std::vector<at::Tensor> parts = self.unbind();
  for (size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor row = other.select(0, static_cast<int64_t>(i));
    op == at::native::NESTED_DENSE_OP::ADD ? at::add_out(targets[i], parts[i], row)
                                           : at::mul_out(targets[i], parts[i], row);
  }
}

/// A nested tensor without parts has no CPU form; what is no batch of matrices is refused before.
void bmm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Arguments arguments(op, stack);
  TORCH_CHECK(arguments.tensor("self").dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(arguments.tensor("mat2").dim() == 3, "batch2 must be a 3D tensor");
  call_boxed(spec_NestedTensor_bmm, op, stack);
}

/// Query, key and value (b, heads, t, width) of a packed projection. CUDA pads the longest sequence to a multiple of 8,
/// and what is behind the end of a sequence is zero; on the CPU it is the bias.
void transform_bias_rescale_qkv(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  constexpr int64_t kMultiple = 8;
  const std::vector<at::Tensor> sequences = Arguments(op, stack).tensor("qkv").unbind();
  call_boxed(spec_NestedTensor__transform_bias_rescale_qkv, op, stack);
  for (auto value = stack->end() - 3; value != stack->end(); ++value) {
    const at::Tensor heads = value->toTensor();
    const int64_t length = heads.size(2);
    for (size_t i = 0; i < sequences.size(); ++i) {
      heads.select(0, static_cast<int64_t>(i)).slice(1, sequences[i].size(0)).zero_();
    }
    *value = at::constant_pad_nd(heads, {0, 0, 0, (kMultiple - length % kMultiple) % kMultiple});
  }
}

}  // namespace
}  // namespace macatorch

#include "registered/sparse/Nested.h"
