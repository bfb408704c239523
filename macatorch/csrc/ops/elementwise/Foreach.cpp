#include <ATen/ATen.h>

#include <algorithm>

#include "arguments/Arguments.h"
#include "dispatch/Precision.h"
#include "registered/Specs.h"

namespace macatorch {

// Operators on lists. Upstream's CPU form calls the plain operator for each tensor, on the aliases that it is given:
// that is fast, and misses what the device's own operator does differently.

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

bool any_half(const std::vector<at::Tensor>& list) {
  return std::any_of(list.begin(), list.end(), [](const at::Tensor& tensor) { return is_half(tensor.scalar_type()); });
}

/// A number that is infinite in half precision.
bool overflows(const at::Scalar& number) { return !number.isComplex() && overflows_half(number.toDouble()); }

/// A sum of low precision with a factor or with a number that no half holds is the device's operator's, which rounds
/// once.
bool sums_round_between(const Arguments& arguments) {
  const c10::IValue alpha = arguments["alpha"], scalar = arguments["scalar"], scalars = arguments["scalars"];
  bool candidate = alpha.isScalar() && !alpha.toScalar().equal(1);
  candidate |= scalar.isScalar() && overflows(scalar.toScalar());
  if (scalars.isList()) {
    for (const c10::IValue& number : scalars.toListRef()) {
      candidate |= overflows(number.toScalar());
    }
  }
  return C10_UNLIKELY(candidate) && (any_half(arguments.tensors("self")) ||
                                     (arguments["other"].isTensorList() && any_half(arguments.tensors("other"))));
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
      rounds |= is_half(tensor.scalar_type()) && tensor.scalar_type() != other.scalar_type();
    }
  }
  if (C10_UNLIKELY(rounds)) {
    op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
    return;
  }
  call_boxed(spec, op, stack);
}

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/Foreach.h"
