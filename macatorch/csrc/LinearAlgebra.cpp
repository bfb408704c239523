#include <ATen/ATen.h>

#include "Arguments.h"
#include "NeuralNet.h"
#include "Operators.h"

namespace macatorch {

MACATORCH_SPEC(cholesky_inverse);
MACATORCH_SPEC(cholesky_inverse_out);

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

}  // namespace

void register_linear_algebra(torch::Library& cuda) {
  implement<&cholesky_inverse<spec_cholesky_inverse>>(cuda, "cholesky_inverse");
  implement<&cholesky_inverse<spec_cholesky_inverse_out>>(cuda, "cholesky_inverse.out");
}

}  // namespace macatorch
