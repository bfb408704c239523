#include <ATen/ATen.h>
#include <ATen/native/Resize.h>

#include <array>

#include "Arguments.h"
#include "CompositeTensors.h"
#include "NeuralNet.h"
#include "Operators.h"

namespace macatorch {

MACATORCH_SPEC(Sparse_mul_out);

namespace {

// Upstream multiplies batches of compressed sparse matrices on CUDA only: here matrix by matrix, by the CPU's kernel.

at::Tensor& baddbmm_out(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                        const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& result) {
  TORCH_CHECK(self.layout() == at::kStrided && batch2.layout() == at::kStrided && result.layout() == at::kStrided,
              "torch.baddbmm: Expect a strided self, batch2 and result, but got ", self.layout(), ", ", batch2.layout(),
              " and ", result.layout());
  TORCH_CHECK(
      batch1.dim() == 3 && batch2.dim() == 3 && batch1.size(0) == batch2.size(0) && batch1.size(2) == batch2.size(1),
      "torch.baddbmm: batches of shapes ", batch1.sizes(), " and ", batch2.sizes(), " cannot be multiplied");
  const c10::Device device = batch1.device();
  TORCH_CHECK(self.device() == device && batch2.device() == device && result.device() == device,
              "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
              (self.device() != device     ? self
               : batch2.device() != device ? batch2
                                           : result)
                  .device(),
              "!");
  // One matrix may serve all products: its members have no batch dimension then.
  const bool rows = batch1.layout() == at::kSparseCsr || batch1.layout() == at::kSparseBsr;
  const at::Tensor compressed = rows ? batch1.crow_indices() : batch1.ccol_indices();
  const bool shared = compressed.dim() == 1;
  const at::Tensor matrices =
      shared ? at::_sparse_compressed_tensor_unsafe(compressed, rows ? batch1.col_indices() : batch1.row_indices(),
                                                    batch1.values(), batch1.sizes().slice(1), batch1.options())
             : batch1;
  DeviceScope scope(device.index());
  AnyHeaders headers;
  at::Tensor target = headers.bind(result, true);
  const at::Tensor start = headers.bind(self, false);
  const at::Tensor sparse = headers.bind(matrices, false);
  const at::Tensor dense = headers.bind(batch2, false);
  const std::array<int64_t, 3> shape{batch1.size(0), batch1.size(1), batch2.size(2)};
  at::native::resize_output(target, shape);
  const at::Tensor expanded = start.expand(shape);
  for (int64_t i = 0; i < shape[0]; ++i) {
    const at::Tensor matrix = shared ? sparse : sparse.select(0, i);
    target.select(0, i).copy_(at::addmm(expanded.select(0, i), matrix, dense.select(0, i), beta, alpha));
  }
  headers.write_back(device);
  return result;
}

at::Tensor& bmm_out(const at::Tensor& self, const at::Tensor& mat2, at::Tensor& result) {
  TORCH_CHECK(self.dim() == 3 && mat2.dim() == 3, "batch1 must be a 3D tensor");
  const at::Tensor zero = at::zeros({1, 1, 1}, mat2.options());
  return baddbmm_out(zero, self, mat2, 0, 1, result);
}

/// The CPU's kernel for two coalesced tensors takes no booleans.
void sparse_mul_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments arguments(op, stack);
  const at::Tensor self = arguments.tensor("self");
  const at::Tensor other = arguments.tensor("other");
  at::Tensor out = arguments.tensor("out");
  const auto boolean = [](const at::Tensor& tensor) {
    return tensor.is_cuda() && tensor.is_sparse() && tensor.scalar_type() == at::kBool;
  };
  if (!boolean(self) || !boolean(other) || !boolean(out)) {
    call_boxed(spec_Sparse_mul_out, op, stack);
    return;
  }
  const at::Tensor product = at::mul(self.to(at::kByte), other.to(at::kByte)).to(at::kBool);
  out.resize_as_sparse_(product);
  arguments.give(out.copy_(product));
}

}  // namespace

void register_sparse_products() {
  static torch::Library coo(torch::Library::IMPL, "aten", c10::DispatchKey::SparseCUDA, __FILE__, __LINE__);
  implement<&sparse_mul_out>(coo, "mul.out");
  static torch::Library csr(torch::Library::IMPL, "aten", c10::DispatchKey::SparseCsrCUDA, __FILE__, __LINE__);
  csr.impl("baddbmm.out", TORCH_FN(baddbmm_out));
  csr.impl("bmm.out", TORCH_FN(bmm_out));
}

}  // namespace macatorch
