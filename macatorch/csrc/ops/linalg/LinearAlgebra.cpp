#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>
#include <vector>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

/// Upstream's kernel recognises an `out` that is the input by its reference. An alias is another one: it would be
/// resized.
void addr_out(const OperatorHandle& op, Stack* stack) {
  const Arguments given(op, stack);
  const at::Tensor self = given.tensor("self"), rows = given.tensor("vec1"), columns = given.tensor("vec2");
  if (self.is_same(given.tensor("out")) && rows.dim() == 1 && columns.dim() == 1) {
    TORCH_CHECK(self.dim() == 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
    TORCH_CHECK(self.size(0) == rows.size(0) && self.size(1) == columns.size(0), "size mismatch, input: ", self.sizes(),
                ", v1: ", rows.sizes(), ", v2: ", columns.sizes());
  }
  call_boxed(spec_addr_out, op, stack);
}

/// Upstream's kernel views batches as one dimension, which the strides of the layout rule do not allow.
template <const OperatorSpec& spec>
void matrix_exp(const OperatorHandle& op, Stack* stack) {
  const Arguments given(op, stack);
  given.replace("self", given.tensor("self").contiguous());
  call_boxed(spec, op, stack);
}

/// LAPACK refuses a factor with a zero on its diagonal; CUDA's solver divides by it.
template <const OperatorSpec& spec>
void cholesky_inverse(const OperatorHandle& op, Stack* stack) {
  const Stack given(stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size()), stack->end());
  const size_t first = stack->size() - given.size();
  try {
    call_boxed(spec, op, stack);
    return;
  } catch (const c10::LinAlgError&) {
    stack->resize(first);
    stack->insert(stack->end(), given.begin(), given.end());
  }
  Arguments arguments(op, stack);
  const at::Tensor factor = arguments.tensor("self");
  const at::Tensor identity = at::eye(factor.size(-1), factor.options()).expand_as(factor);
  const at::Tensor inverse = at::cholesky_solve(identity, factor, arguments.flag("upper"));
  const at::Tensor out = arguments.tensor("out");
  arguments.give(out.defined() ? out.resize_(inverse.sizes()).copy_(inverse) : inverse);
}

/// cuSOLVER gives these vectors row by row, LAPACK column by column.
void make_last_result_contiguous(Stack* stack) {
  c10::IValue& vectors = stack->back();
  vectors = vectors.toTensor().contiguous();
}

c10::IValue& driver_of(const OperatorHandle& op, Stack* stack) {
  const auto index = static_cast<size_t>(*op.schema().argumentIndexWithName("driver"));
  return (*stack)[stack->size() - op.schema().arguments().size() + index];
}

/// `driver` chooses among cuSOLVER's methods. The CPU has none to choose from, and refuses the argument.
template <const OperatorSpec& spec>
void svd(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  c10::IValue& driver = driver_of(op, stack);
  if (!driver.isNone()) {
    const std::string name = driver.toStringRef();
    TORCH_CHECK(name == "gesvd" || name == "gesvdj" || name == "gesvda", "torch.linalg.svd: unknown svd driver ", name,
                " in svd_cusolver computation. Allowed values are gesvd, gesvdj and gesvda.");
    driver = c10::IValue();
  }
  const bool has_out = arguments.tensor("U").defined();
  call_boxed(spec, op, stack);
  if (!has_out) {
    make_last_result_contiguous(stack);
  }
}

/// Upstream computes it on the host, with MAGMA, where cuSOLVER does not have it, and copies it into rows.
void eig(const OperatorHandle& op, Stack* stack) {
  call_boxed(spec_linalg_eig, op, stack);
  make_last_result_contiguous(stack);
}

/// CUDA has one method, which gives residuals and no rank; the CPU's default is another one, which gives a rank only.
void lstsq(const OperatorHandle& op, Stack* stack) {
  c10::IValue& driver = driver_of(op, stack);
  TORCH_CHECK(driver.isNone() || driver.toStringRef() == "gels",
              "torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA");
  driver = "gels";
  call_boxed(spec_linalg_lstsq_out, op, stack);
}

// ---- LU without pivoting, which LAPACK does not have ----------------------------------------------------------------

/// Rows `first` on of the columns from `first` to `last`, in place. Gives the first zero on the diagonal, counted from
/// 1, or 0.
template <class T>
int32_t factor_panel(T* matrix, int64_t rows, int64_t stride, int64_t first, int64_t last) {
  int32_t zero = 0;
  for (int64_t k = first; k < last; ++k) {
    const T* pivot = matrix + k * stride;
    if (pivot[k] == T(0)) {
      zero = zero == 0 ? static_cast<int32_t>(k + 1) : zero;
      continue;
    }
    for (int64_t i = k + 1; i < rows; ++i) {
      T* row = matrix + i * stride;
      row[k] /= pivot[k];
      for (int64_t j = k + 1; j < last; ++j) {
        row[j] -= row[k] * pivot[j];
      }
    }
  }
  return zero;
}

/// Replaces one contiguous matrix by its factors, block by block: a panel of columns, the rows beside it, what is left.
int32_t factor(const at::Tensor& matrix) {
  constexpr int64_t kPanel = 32;
  const int64_t rows = matrix.size(0), columns = matrix.size(1), steps = std::min(rows, columns);
  int32_t zero = 0;
  for (int64_t first = 0; first < steps; first += kPanel) {
    const int64_t last = std::min(first + kPanel, steps);
    AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(matrix.scalar_type(), "lu_factor", [&] {
      const int32_t found = factor_panel(matrix.mutable_data_ptr<scalar_t>(), rows, columns, first, last);
      zero = zero == 0 ? found : zero;
    });
    if (last == columns) {
      break;
    }
    const at::Tensor corner = matrix.slice(0, first, last).slice(1, first, last);
    at::Tensor beside = matrix.slice(0, first, last).slice(1, last);
    beside.copy_(at::linalg_solve_triangular(corner, beside, /*upper=*/false, /*left=*/true, /*unitriangular=*/true));
    matrix.slice(0, last).slice(1, last).sub_(at::mm(matrix.slice(0, last).slice(1, first, last), beside));
  }
  return zero;
}

struct Factors {
  at::Tensor lu;
  at::Tensor pivots;
  at::Tensor info;
};

Factors factors(const at::Tensor& given) {
  const at::ScalarType dtype = given.scalar_type();
  if (dtype != at::kFloat && dtype != at::kDouble && dtype != at::kComplexFloat && dtype != at::kComplexDouble) {
    refuse_dtype("lu_factor_cusolver", dtype);
  }
  DeviceCall call(given);
  const at::Tensor work = call(given).clone(at::MemoryFormat::Contiguous);
  const int64_t rows = work.size(-2), columns = work.size(-1), steps = std::min(rows, columns);
  const at::IntArrayRef batch = work.sizes().slice(0, static_cast<size_t>(work.dim() - 2));
  at::Tensor info = at::zeros(batch, at::TensorOptions().dtype(at::kInt));
  if (work.numel() != 0) {
    const at::Tensor matrices = work.view({-1, rows, columns});
    auto* zero = info.mutable_data_ptr<int32_t>();
    for (int64_t i = 0; i < matrices.size(0); ++i) {
      zero[i] = factor(matrices.select(0, i));
    }
  }
  std::vector<int64_t> shape = batch.vec();
  shape.push_back(steps);
  // In column-major order, as cuSOLVER's.
  at::Tensor by_columns = at::empty(work.mT().sizes(), work.options()).copy_(work.mT());
  return {call.result(std::move(by_columns)).mT(),
          call.result(at::arange(1, steps + 1, at::TensorOptions().dtype(at::kInt)).expand(shape).contiguous()),
          call.result(info)};
}

/// Whether a call asks for factors without pivots, of a matrix that upstream takes.
bool without_pivots(const Arguments& arguments) {
  const at::Tensor matrix = arguments.tensor("A");
  return !arguments.flag("pivot") && is_on_device(matrix) && matrix.layout() == at::kStrided && matrix.dim() >= 2 &&
         (matrix.is_floating_point() || matrix.is_complex());
}

template <const OperatorSpec& spec>
void lu_factor_ex(const OperatorHandle& op, Stack* stack) {
  Arguments arguments(op, stack);
  if (!without_pivots(arguments)) {
    call_boxed(spec, op, stack);
    return;
  }
  const at::Tensor matrix = arguments.tensor("A");
  const Factors found = factors(matrix);
  if (arguments.flag("check_errors")) {
    at::_linalg_check_errors(found.info, "torch.linalg.lu_factor_ex", matrix.dim() == 2);
  }
  arguments.give(write_same_out(arguments.tensor("LU"), found.lu),
                 write_same_out(arguments.tensor("pivots"), found.pivots),
                 write_same_out(arguments.tensor("info"), found.info));
}

template <const OperatorSpec& spec>
void lu(const OperatorHandle& op, Stack* stack) {
  Arguments arguments(op, stack);
  if (!without_pivots(arguments)) {
    call_boxed(spec, op, stack);
    return;
  }
  const Factors found = factors(arguments.tensor("A"));
  const auto [permutation, lower, upper] =
      at::lu_unpack(found.lu, found.pivots, /*unpack_data=*/true, /*unpack_pivots=*/false);
  arguments.give(write_same_out(arguments.tensor("P"), permutation), write_same_out(arguments.tensor("L"), lower),
                 write_same_out(arguments.tensor("U"), upper));
}

}  // namespace
}  // namespace macatorch

#include "registered/linalg/LinearAlgebra.h"
