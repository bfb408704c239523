#include <ATen/ATen.h>

#include "Arguments.h"
#include "NeuralNet.h"
#include "Operators.h"

namespace macatorch {

MACATORCH_SPEC(cholesky_inverse);
MACATORCH_SPEC(cholesky_inverse_out);
MACATORCH_SPEC(linalg_eig);
MACATORCH_SPEC(linalg_lstsq_out);
MACATORCH_SPEC(_linalg_svd);
MACATORCH_SPEC(_linalg_svd_U);

namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

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
  at::Tensor out = arguments.tensor("out");
  if (out.defined()) {
    arguments.give(out.resize_(inverse.sizes()).copy_(inverse));
  } else {
    arguments.give(inverse);
  }
}

/// cuSOLVER gives these vectors row by row, LAPACK column by column.
void make_last_result_contiguous(Stack* stack) {
  c10::IValue& vectors = stack->back();
  vectors = vectors.toTensor().contiguous();
}

/// `driver` chooses among cuSOLVER's methods; the CPU has its own, and refuses to hear of them.
template <const OperatorSpec& spec>
void svd(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  c10::IValue& driver = (*stack)[stack->size() - op.schema().arguments().size() +
                                 static_cast<size_t>(*op.schema().argumentIndexWithName("driver"))];
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

void eig(const OperatorHandle& op, Stack* stack) {
  call_boxed(spec_linalg_eig, op, stack);
  // Before cuSOLVER had this, upstream computed it on the host, with MAGMA.
  if (MXMACA_CUDA_MAJOR >= 13) {
    make_last_result_contiguous(stack);
  }
}

/// CUDA has one method, which gives residuals and no rank; the CPU's default is another one, which gives a rank only.
void lstsq(const OperatorHandle& op, Stack* stack) {
  c10::IValue& driver = (*stack)[stack->size() - op.schema().arguments().size() +
                                 static_cast<size_t>(*op.schema().argumentIndexWithName("driver"))];
  TORCH_CHECK(driver.isNone() || driver.toStringRef() == "gels",
              "torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA");
  driver = "gels";
  call_boxed(spec_linalg_lstsq_out, op, stack);
}

}  // namespace

void register_linear_algebra(torch::Library& cuda) {
  implement<&svd<spec__linalg_svd>>(cuda, "_linalg_svd");
  implement<&svd<spec__linalg_svd_U>>(cuda, "_linalg_svd.U");
  implement<&eig>(cuda, "linalg_eig");
  implement<&lstsq>(cuda, "linalg_lstsq.out");
  implement<&cholesky_inverse<spec_cholesky_inverse>>(cuda, "cholesky_inverse");
  implement<&cholesky_inverse<spec_cholesky_inverse_out>>(cuda, "cholesky_inverse.out");
}

}  // namespace macatorch
