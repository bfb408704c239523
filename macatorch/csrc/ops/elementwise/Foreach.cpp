#include <ATen/ATen.h>

#include <algorithm>

#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "arguments/Walker.h"
#include "dispatch/Precision.h"
#include "registered/Specs.h"

namespace macatorch {

// Operators on lists. Upstream's CPU form calls the plain operator for each tensor, on the aliases that it is given:
// that is fast, and misses what the device's own operator does differently.

namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

/// Calls the device's operator for tensor after tensor if `apart`, else the CPU's for the whole list.
template <const OperatorSpec& spec>
void call_list(const OperatorHandle& op, Stack* stack, bool apart) {
  if (C10_UNLIKELY(apart)) {
    op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
  } else {
    call_boxed(spec, op, stack);
  }
}

/// Complex numbers and booleans go to the device's operator.
template <const OperatorSpec& spec>
void each(const OperatorHandle& op, Stack* stack) {
  bool apart = false;
  for (auto value = stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size()); value != stack->end();
       ++value) {
    apart |= value->isComplexDouble();
    if (value->isTensorList()) {
      for_each_tensor(
          *value, [&](const at::Tensor& tensor) { apart |= tensor.is_complex() || tensor.scalar_type() == at::kBool; });
    }
  }
  call_list<spec>(op, stack, apart);
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
  call_list<spec>(op, stack, sums_round_between(Arguments(op, stack)));
}

/// Of many elements the device's operator has the norm: see Note [Norms of many elements].
template <const OperatorSpec& spec>
void norm(const OperatorHandle& op, Stack* stack) {
  bool many = false;
  for (const at::Tensor& tensor : Arguments(op, stack).tensors("self")) {
    many |= tensor.numel() > kExactNorm;
  }
  call_list<spec>(op, stack, many);
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
  if (is_on_device(other)) {
    for (const at::Tensor& tensor : arguments.tensors("self")) {
      rounds |= is_half(tensor.scalar_type()) && tensor.scalar_type() != other.scalar_type();
    }
  }
  call_list<spec>(op, stack, rounds);
}

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/Foreach.h"
