#include <ATen/ATen.h>

#include <array>
#include <limits>

#include "alias/CompositeTensors.h"
#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "dispatch/Precision.h"
#include "fast/Lines.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
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
  for (const at::Tensor& tensor : {self, batch2, result}) {
    TORCH_CHECK(tensor.device() == device,
                "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
                tensor.device(), "!");
  }
  // One matrix may serve all products: its members have no batch dimension then.
  const bool rows = batch1.layout() == at::kSparseCsr || batch1.layout() == at::kSparseBsr;
  const at::Tensor compressed = rows ? batch1.crow_indices() : batch1.ccol_indices();
  const bool shared = compressed.dim() == 1;
  const at::Tensor matrices =
      shared ? at::_sparse_compressed_tensor_unsafe(compressed, rows ? batch1.col_indices() : batch1.row_indices(),
                                                    batch1.values(), batch1.sizes().slice(1), batch1.options())
             : batch1;
  DeviceScope scope(device.index());
  AnyAliases aliases;
  at::Tensor target = aliases.bind(result, true);
  const at::Tensor start = aliases.bind(self, false);
  const at::Tensor sparse = aliases.bind(matrices, false);
  const at::Tensor dense = aliases.bind(batch2, false);
  const std::array<int64_t, 3> shape{batch1.size(0), batch1.size(1), batch2.size(2)};
  at::native::resize_output(target, shape);
  const at::Tensor expanded = start.expand(shape);
  for (int64_t i = 0; i < shape[0]; ++i) {
    const at::Tensor matrix = shared ? sparse : sparse.select(0, i);
    target.select(0, i).copy_(at::addmm(expanded.select(0, i), matrix, dense.select(0, i), beta, alpha));
  }
  aliases.write_back(device);
  return result;
}

at::Tensor& bmm_out(const at::Tensor& self, const at::Tensor& mat2, at::Tensor& result) {
  TORCH_CHECK(self.dim() == 3 && mat2.dim() == 3, "batch1 must be a 3D tensor");
  const at::Tensor zero = at::zeros({1, 1, 1}, mat2.options());
  return baddbmm_out(zero, self, mat2, 0, 1, result);
}

/// The CPU's kernel for two coalesced tensors takes no booleans. A product with a dense tensor is checked as a dense
/// one is.
void sparse_mul_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments arguments(op, stack);
  const at::Tensor self = arguments.tensor("self");
  const at::Tensor other = arguments.tensor("other");
  at::Tensor out = arguments.tensor("out");
  if (self.is_sparse() && other.is_sparse()) {
    check_on_device(arguments, "mul: expected '", "' to be CUDA, but got CPU");
  }
  const auto boolean = [](const at::Tensor& tensor) { return tensor.is_sparse() && tensor.scalar_type() == at::kBool; };
  if (!boolean(self) || !boolean(other) || !boolean(out)) {
    call_boxed(spec_Sparse_mul_out, op, stack);
    return;
  }
  const at::Tensor product = at::mul(self.to(at::kByte), other.to(at::kByte)).to(at::kBool);
  out.resize_as_sparse_(product);
  arguments.give(out.copy_(product));
}

/// Puts the elements of each row of a CSR matrix (each column of a CSC one) in order, as cuSPARSE does; the CPU's
/// kernel leaves them as they come.
void sort_rows(const at::Tensor& matrix) {
  const bool rows = matrix.layout() == at::kSparseCsr;
  if ((!rows && matrix.layout() != at::kSparseCsc) || matrix.dim() != 2 || !is_on_device(matrix)) {
    return;
  }
  const at::Tensor compressed = rows ? matrix.crow_indices() : matrix.ccol_indices();
  at::Tensor plain = rows ? matrix.col_indices() : matrix.row_indices();
  const at::Tensor counts = compressed.diff().to(at::kLong);
  const at::Tensor lines = at::repeat_interleave(counts);
  const at::Tensor place = lines.mul(matrix.size(rows ? 1 : 0)).add(plain.to(at::kLong));
  if (place.numel() < 2 || place.diff().gt(0).all().item<bool>()) {
    return;
  }
  const at::Tensor order = place.argsort();
  at::Tensor values = matrix.values();
  plain.copy_(plain.index_select(0, order));
  values.copy_(values.index_select(0, order));
}

/// A matrix out of order would not pass torch.sparse.check_sparse_tensor_invariants.
class UncheckedInvariants {
 public:
  UncheckedInvariants() { at::globalContext().setCheckSparseTensorInvariants(false); }
  ~UncheckedInvariants() { at::globalContext().setCheckSparseTensorInvariants(before_); }
  UncheckedInvariants(const UncheckedInvariants&) = delete;
  UncheckedInvariants& operator=(const UncheckedInvariants&) = delete;

 private:
  decltype(at::globalContext().checkSparseTensorInvariants()) before_ =
      at::globalContext().checkSparseTensorInvariants();
};

/// A sparse matrix times a dense one, in every form of mm and addmm: where Note [Sums of lines] does not apply,
/// `otherwise` runs.
template <class Otherwise>
void product_by_lines(const c10::OperatorHandle& op, torch::jit::Stack* stack, const Otherwise& otherwise) {
  Arguments given(op, stack);
  const bool adds = !given["mat1"].isNone();
  const bool in_place = op.schema().name() == "aten::addmm_";
  const at::Tensor self = adds ? given.tensor("self") : at::Tensor();
  const at::Tensor out = in_place ? self : given.tensor("out");
  const at::Tensor left = given.tensor(adds ? "mat1" : "self");
  const bool fits = !out.defined() || (is_plain_cuda(*out.unsafeGetTensorImpl()) && out.device() == left.device() &&
                                       out.scalar_type() == left.scalar_type());
  std::optional<at::Tensor> product;
  if (fits) {
    const c10::IValue beta = given["beta"], alpha = given["alpha"];
    product = sparse_product(self, left, given.tensor("mat2"), adds ? beta.toScalar() : at::Scalar(0),
                             adds ? alpha.toScalar() : at::Scalar(1));
  }
  if (!product || (in_place && self.sizes() != product->sizes())) {
    otherwise();
  } else {
    given.give(write_out(out, *product));
  }
}

template <const OperatorSpec& spec>
void list_product(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  product_by_lines(op, stack, [&] { call_boxed(spec, op, stack); });
}

template <const OperatorSpec& spec>
void sorted_product(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  product_by_lines(op, stack, [&] {
    const UncheckedInvariants unchecked;
    call_boxed(spec, op, stack);
    sort_rows(stack->back().toTensor());
  });
}

bool is_power_of_two(int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

/// Whether CUDA's kernel for large blocks (Triton) takes a product: it computes the whole sum in float.
bool is_one_kernel(const at::Tensor& blocks, int64_t columns) {
  const int64_t rows = blocks.size(-2), width = blocks.size(-1);
  return is_power_of_two(rows) && is_power_of_two(width) && rows >= 16 && width >= 16 && columns % rows == 0;
}

/// beta * self + alpha * (mat1 @ mat2) in low precision, where one matrix is block sparse: CUDA's general way rounds
/// the product, then what is scaled, then the sum.
bool block_addmm(const Arguments& arguments, at::Tensor& out) {
  const at::Tensor self = arguments.tensor("self"), mat1 = arguments.tensor("mat1"), mat2 = arguments.tensor("mat2");
  const bool left = mat1.layout() == at::kSparseBsr && mat2.layout() == at::kStrided;
  const bool right = mat1.layout() == at::kStrided && mat2.layout() == at::kSparseBsc;
  const at::ScalarType dtype = mat1.scalar_type();
  if ((!left && !right) || !is_half(dtype) || self.layout() != at::kStrided || out.layout() != at::kStrided ||
      mat1.dim() != 2 || mat2.dim() != 2 || mat1.size(1) != mat2.size(0)) {
    return false;
  }
  for (const at::Tensor& tensor : {self, mat2, out}) {
    if (tensor.device() != mat1.device() || tensor.scalar_type() != dtype) {
      return false;
    }
  }
  const at::Scalar alpha = *arguments.number("alpha"), beta = *arguments.number("beta");
  const at::Tensor blocks = left ? mat1.values() : mat2.values().transpose(-2, -1);
  if (is_one_kernel(blocks, left ? mat2.size(1) : mat1.size(0)) || (alpha.equal(1) && beta.equal(0))) {
    return false;
  }
  at::Tensor sum = at::mm(widen(mat1), widen(mat2)).to(dtype).mul_(alpha);
  if (!beta.equal(0)) {
    sum.add_(self.mul(beta));
  }
  write_out(out, sum);
  return true;
}

void addmm_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments arguments(op, stack);
  at::Tensor out = arguments.tensor("out");
  if (block_addmm(arguments, out)) {
    arguments.give(out);
  } else {
    sorted_product<spec_SparseCsr_addmm_out>(op, stack);
  }
}

/// The CPU's kernel for block sparse matrices refuses or misreads some of them: these are solved as dense ones.
void triangular_solve(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments arguments(op, stack);
  const at::Tensor self = arguments.tensor("self");
  const at::Tensor matrix = arguments.tensor("A");
  const at::Tensor out = arguments.tensor("X");
  if (matrix.layout() != at::kSparseBsr || !is_on_device(self) || !is_on_device(matrix) || !is_on_device(out) ||
      self.layout() != at::kStrided || self.scalar_type() != matrix.scalar_type()) {
    call_boxed(spec_SparseCsr_triangular_solve_X, op, stack);
    return;
  }
  const at::Tensor solution = std::get<0>(at::triangular_solve(
      self, matrix.to_dense(), arguments.flag("upper"), arguments.flag("transpose"), arguments.flag("unitriangular")));
  const bool empty = matrix._nnz() == 0;
  arguments.give(write_out(out, empty ? solution.fill_(std::numeric_limits<double>::quiet_NaN()) : solution),
                 arguments.tensor("M"));
}

}  // namespace
}  // namespace macatorch

#include "registered/sparse/SparseProducts.h"
