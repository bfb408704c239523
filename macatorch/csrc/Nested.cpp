#include <ATen/ATen.h>
#include <ATen/native/nested/NestedTensorBinaryOps.h>

#include "NeuralNet.h"

namespace macatorch {
namespace {

/// Adds or multiplies part i of a nested tensor by row i of a dense one, shape (parts, 1, width). Upstream's table has a
/// CUDA kernel for it and no CPU function: here part by part.
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

}  // namespace

void register_nested() { at::native::nested_dense_elementwise_stub.set_cuda_dispatch_ptr(&dense_elementwise); }

}  // namespace macatorch
