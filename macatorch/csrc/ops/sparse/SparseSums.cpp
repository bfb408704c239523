#include <ATen/ATen.h>
#include <ATen/native/SparseTensorUtils.h>

#include "arguments/Arguments.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

/// Whether CUDA concatenates `self` and `other` into `out`. Everything else is left to the CPU kernel, which may refuse
/// it.
bool concatenates(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  for (const at::Tensor& tensor : {self, other, out}) {
    if (tensor.layout() != at::kSparse) {
      return false;
    }
  }
  if (!at::canCast(at::result_type(self, other), out.scalar_type())) {
    return false;
  }
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected 'self' and 'other' to have same size, but ", self.sizes(),
              " != ", other.sizes());
  if (self._nnz() == 0 || other._nnz() == 0) {
    return false;
  }
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim(),
              "add: expected 'self' and 'other' to have same density, but 'self' has ", self.sparse_dim(),
              " sparse dimensions while 'other' has ", other.sparse_dim(), " sparse dimensions");
  return true;
}

/// The sum of two coordinate lists is one list with the elements of both, as on CUDA: nothing has to wait for the
/// number of different indices. The CPU's kernel merges them.
void add_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self");
  const at::Tensor other = given.tensor("other");
  at::Tensor out = given.tensor("out");
  check_on_device(
      given, "add: expected '",
      self.layout() == at::kStrided ? "' to be a CUDA tensor, but got a CPU tensor" : "' to be CUDA, but got CPU");
  if (!concatenates(self, other, out)) {
    call_boxed(spec_Sparse_add_out, op, stack);
    return;
  }
  const at::ScalarType dtype = at::result_type(self, other);
  at::Tensor indices = at::cat({self._indices(), other._indices()}, 1);
  at::Tensor values =
      at::cat({self._values().to(dtype), other._values().to(dtype).mul(given["alpha"].toScalar()).to(dtype)}, 0);
  // Elements of one place are summed before they are rounded, and where there are more than the tensor has places.
  if (out.scalar_type() != dtype || indices.size(1) > self.numel()) {
    const at::Tensor sum =
        at::_sparse_coo_tensor_unsafe(indices, values, self.sizes(), values.options().layout(at::kSparse)).coalesce();
    indices = sum._indices();
    values = sum._values().to(out.scalar_type());
  }
  auto* target = at::sparse::get_sparse_impl(out);
  target->raw_resize_(self.sparse_dim(), self.dense_dim(), self.sizes());
  target->set_indices_and_values_unsafe(indices, values);
  given.give(out);
}

void add_compressed_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  check_on_device(Arguments(op, stack), "add: expected '", "' to be CUDA tensor, but got tensor on device: cpu");
  call_boxed(spec_SparseCsr_add_out, op, stack);
}

}  // namespace
}  // namespace macatorch

#include "registered/sparse/SparseSums.h"
