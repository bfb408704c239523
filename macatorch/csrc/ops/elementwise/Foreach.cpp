#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "arguments/Arguments.h"
#include "dispatch/Operators.h"
#include "ops/NeuralNet.h"

namespace macatorch {

// Operators on lists. Upstream's CPU form calls the plain operator for each tensor, on the aliases that it is given: that is
// fast, and misses what the device's own operator does differently.

#define MACATORCH_EACH(apply) \
  apply(_foreach_abs);        \
  apply(_foreach_acos);       \
  apply(_foreach_asin);       \
  apply(_foreach_atan);       \
  apply(_foreach_exp);        \
  apply(_foreach_log1p);      \
  apply(_foreach_reciprocal); \
  apply(_foreach_sigmoid)
#define MACATORCH_EACH_POWER(apply) \
  apply(List);                      \
  apply(Scalar);                    \
  apply(ScalarList)

#define MACATORCH_BOTH(name) \
  MACATORCH_SPEC(name);      \
  MACATORCH_SPEC(name##_)
#define MACATORCH_POWER(overload)          \
  MACATORCH_SPEC(_foreach_pow_##overload); \
  MACATORCH_SPEC(_foreach_pow__##overload)
MACATORCH_EACH(MACATORCH_BOTH);
MACATORCH_EACH_POWER(MACATORCH_POWER);
MACATORCH_SPEC(_foreach_pow_ScalarAndTensor);
MACATORCH_SPEC(_foreach_add_Tensor);
MACATORCH_SPEC(_foreach_add__Tensor);
MACATORCH_SPEC(_foreach_mul_Tensor);
MACATORCH_SPEC(_foreach_mul__Tensor);
MACATORCH_SPEC(_foreach_div_Tensor);
MACATORCH_SPEC(_foreach_div__Tensor);
#define MACATORCH_SUM(name)          \
  MACATORCH_SPEC(name##_List);       \
  MACATORCH_SPEC(name##__List);      \
  MACATORCH_SPEC(name##_Scalar);     \
  MACATORCH_SPEC(name##__Scalar);    \
  MACATORCH_SPEC(name##_ScalarList); \
  MACATORCH_SPEC(name##__ScalarList)
MACATORCH_SUM(_foreach_add);
MACATORCH_SUM(_foreach_sub);
#undef MACATORCH_SUM
MACATORCH_SPEC(_foreach_addcdiv_Tensor);
MACATORCH_SPEC(_foreach_addcdiv__Tensor);
MACATORCH_SPEC(_foreach_addcmul_Tensor);
MACATORCH_SPEC(_foreach_addcmul__Tensor);
#undef MACATORCH_BOTH
#undef MACATORCH_POWER

namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

bool differs(const at::Tensor& tensor) { return tensor.is_complex() || tensor.scalar_type() == at::kBool; }

/// Complex numbers and booleans go to the device's operator tensor by tensor, all else to the CPU's as one list.
template <const OperatorSpec& spec>
void each(const OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    const c10::IValue& value = (*stack)[i];
    if (value.isTensorList()) {
      for (const c10::IValue& tensor : value.toListRef()) {
        if (C10_UNLIKELY(differs(tensor.toTensor()))) {
          op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
          return;
        }
      }
    } else if (C10_UNLIKELY(value.isComplexDouble())) {
      op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
      return;
    }
  }
  call_boxed(spec, op, stack);
}

bool is_low(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}
bool any_low(const std::vector<at::Tensor>& list) { return std::any_of(list.begin(), list.end(), is_low); }

/// A number whose rounding to half is an infinity.
bool overflows(const at::Scalar& number) {
  return !number.isComplex() && std::isfinite(number.toDouble()) &&
         std::abs(number.toDouble()) > std::numeric_limits<at::Half>::max();
}

/// A sum of low precision with a factor or with a number that no half holds is the device's operator's, which rounds once.
bool sums_round_between(const Arguments& arguments) {
  const c10::IValue alpha = arguments["alpha"], scalar = arguments["scalar"], scalars = arguments["scalars"];
  bool candidate = alpha.isScalar() && !alpha.toScalar().equal(1);
  candidate |= scalar.isScalar() && overflows(scalar.toScalar());
  if (scalars.isList()) {
    for (const c10::IValue& number : scalars.toListRef()) {
      candidate |= overflows(number.toScalar());
    }
  }
  return C10_UNLIKELY(candidate) && (any_low(arguments.tensors("self")) ||
                                     (arguments["other"].isTensorList() && any_low(arguments.tensors("other"))));
}

template <const OperatorSpec& spec>
void sum(const OperatorHandle& op, Stack* stack) {
  if (sums_round_between(Arguments(op, stack))) {
    op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
    return;
  }
  call_boxed(spec, op, stack);
}

/// The numbers of `scalars` are read on the host.
template <const OperatorSpec& spec>
void with_scalars(const OperatorHandle& op, Stack* stack) {
  const at::Tensor scalars = Arguments(op, stack).tensor("scalars");
  TORCH_CHECK(scalars.is_cpu(), "Expected scalars to be on CPU, got ", scalars.device(), " instead.");
  call_boxed(spec, op, stack);
}

/// CUDA's kernel for a list of one dtype reads `other` on the device; lists that it does not take are added one by one.
template <const OperatorSpec& spec>
void add_tensor(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  const std::vector<at::Tensor> list = arguments.tensors("self");
  const at::Tensor other = arguments.tensor("other");
  const bool alike = std::all_of(list.begin(), list.end(), [&](const at::Tensor& tensor) {
    return tensor.device() == list[0].device() && tensor.scalar_type() == other.scalar_type() &&
           tensor.is_non_overlapping_and_dense();
  });
  if (alike && !list.empty() && other.dim() == 0) {
    TORCH_CHECK(other.device() == list[0].device(), "scalar tensor expected to be on ", list[0].device(), " but is on ",
                other.device());
  }
  sum<spec>(op, stack);
}

/// A number on the device is rounded to the dtype of low-precision elements first; the device's operator does.
template <const OperatorSpec& spec>
void scaled(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  const at::Tensor other = arguments.tensor("other");
  bool rounds = false;
  if (other.is_cuda()) {
    for (const at::Tensor& tensor : arguments.tensors("self")) {
      rounds |= is_low(tensor) && tensor.scalar_type() != other.scalar_type();
    }
  }
  if (C10_UNLIKELY(rounds)) {
    op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
    return;
  }
  call_boxed(spec, op, stack);
}

}  // namespace

void register_foreach(torch::Library& cuda) {
#define MACATORCH_BOTH(name)                  \
  implement<&each<spec_##name>>(cuda, #name); \
  implement<&each<spec_##name##_>>(cuda, #name "_")
#define MACATORCH_POWER(overload)                                                  \
  implement<&each<spec__foreach_pow_##overload>>(cuda, "_foreach_pow." #overload); \
  implement<&each<spec__foreach_pow__##overload>>(cuda, "_foreach_pow_." #overload)
  MACATORCH_EACH(MACATORCH_BOTH);
  MACATORCH_EACH_POWER(MACATORCH_POWER);
#undef MACATORCH_BOTH
#undef MACATORCH_POWER
  implement<&each<spec__foreach_pow_ScalarAndTensor>>(cuda, "_foreach_pow.ScalarAndTensor");
#define MACATORCH_SUM(name)                                             \
  implement<&sum<spec_##name##_List>>(cuda, #name ".List");             \
  implement<&sum<spec_##name##__List>>(cuda, #name "_.List");           \
  implement<&sum<spec_##name##_Scalar>>(cuda, #name ".Scalar");         \
  implement<&sum<spec_##name##__Scalar>>(cuda, #name "_.Scalar");       \
  implement<&sum<spec_##name##_ScalarList>>(cuda, #name ".ScalarList"); \
  implement<&sum<spec_##name##__ScalarList>>(cuda, #name "_.ScalarList")
  MACATORCH_SUM(_foreach_add);
  MACATORCH_SUM(_foreach_sub);
#undef MACATORCH_SUM
  implement<&add_tensor<spec__foreach_add_Tensor>>(cuda, "_foreach_add.Tensor");
  implement<&add_tensor<spec__foreach_add__Tensor>>(cuda, "_foreach_add_.Tensor");
  implement<&scaled<spec__foreach_mul_Tensor>>(cuda, "_foreach_mul.Tensor");
  implement<&scaled<spec__foreach_mul__Tensor>>(cuda, "_foreach_mul_.Tensor");
  implement<&scaled<spec__foreach_div_Tensor>>(cuda, "_foreach_div.Tensor");
  implement<&scaled<spec__foreach_div__Tensor>>(cuda, "_foreach_div_.Tensor");
  implement<&with_scalars<spec__foreach_addcdiv_Tensor>>(cuda, "_foreach_addcdiv.Tensor");
  implement<&with_scalars<spec__foreach_addcdiv__Tensor>>(cuda, "_foreach_addcdiv_.Tensor");
  implement<&with_scalars<spec__foreach_addcmul_Tensor>>(cuda, "_foreach_addcmul.Tensor");
  implement<&with_scalars<spec__foreach_addcmul__Tensor>>(cuda, "_foreach_addcmul_.Tensor");
}

}  // namespace macatorch
