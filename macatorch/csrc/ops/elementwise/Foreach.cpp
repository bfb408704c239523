#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "arguments/Walker.h"
#include "dispatch/Precision.h"
#include "ops/copy/Integers.h"
#include "ops/elementwise/LowNumbers.h"
#include "profile/ListKernels.h"
#include "registered/Specs.h"

namespace macatorch {

// Operators on lists. Upstream's CPU form calls the plain operator for each tensor, on the aliases that it is given:
// that is fast, and misses what the device's own operator does differently.

namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

/// What is one kernel of CUDA's is one in a profile, although operators compute it one by one.
void begin_list_kernel(std::optional<ListKernel>& named, const OperatorHandle& op, const Stack& stack) {
  named.emplace(op, stack);
  // A power of a number has it in front of the list.
  for (auto value = stack.end() - static_cast<ptrdiff_t>(op.schema().arguments().size());
       named->is_one() && value != stack.end(); ++value) {
    if (value->isTensorList()) {
      operator_begins(value->toTensorVector().front().device().index());
      return;
    }
  }
}

/// Calls the device's operator for tensor after tensor if `apart`, else the CPU's for the whole list.
template <const OperatorSpec& spec>
void call_list(const OperatorHandle& op, Stack* stack, bool apart) {
  if (C10_UNLIKELY(apart)) {
    std::optional<ListKernel> named;
    if (C10_UNLIKELY(profiled.load(std::memory_order_relaxed) != 0)) {
      begin_list_kernel(named, op, *stack);
    }
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

/// The numbers of a call: one for all tensors, or one for each.
std::vector<at::Scalar> numbers_of(const c10::IValue& given) {
  if (given.isScalar()) {
    return {given.toScalar()};
  }
  std::vector<at::Scalar> numbers;
  if (given.isList()) {
    for (const c10::IValue& number : given.toListRef()) {
      numbers.push_back(number.toScalar());
    }
  }
  return numbers;
}

/// Whether a number meets halves that do not hold it. See Note [Numbers and low precision].
bool any_not_held(const std::vector<at::Scalar>& numbers, const std::vector<at::Tensor>& list) {
  if (numbers.empty() || (numbers.size() != 1 && numbers.size() != list.size())) {
    return false;  // another number of them is for the operator to refuse
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const at::ScalarType dtype = list[i].scalar_type();
    if (is_half(dtype) && !is_held(numbers[numbers.size() == 1 ? 0 : i], dtype)) {
      return true;
    }
  }
  return false;
}

/// A sum of low precision with a factor, or with a number that the elements do not hold, is the device's operator's,
/// which rounds once.
bool sums_round_between(const Arguments& arguments) {
  const c10::IValue alpha = arguments["alpha"];
  std::vector<at::Tensor> list = arguments.tensors("self");
  for (const char* name : {"scalar", "scalars"}) {
    if (C10_UNLIKELY(any_not_held(numbers_of(arguments[name]), list))) {
      return true;
    }
  }
  if (C10_LIKELY(!alpha.isScalar() || alpha.toScalar().equal(1))) {
    return false;
  }
  if (arguments["other"].isTensorList()) {
    const std::vector<at::Tensor> others = arguments.tensors("other");
    list.insert(list.end(), others.begin(), others.end());
  }
  return std::any_of(list.begin(), list.end(), [](const at::Tensor& tensor) { return is_half(tensor.scalar_type()); });
}

template <const OperatorSpec& spec>
void sum(const OperatorHandle& op, Stack* stack) {
  call_list<spec>(op, stack, sums_round_between(Arguments(op, stack)));
}

/// Powers of halves with a number that they do not hold. CUDA's kernels of lists have it in float; that of a single
/// tensor rounds it.
template <const OperatorSpec& spec>
void power(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  const bool number_first = arguments["self"].isScalar();
  const std::vector<at::Tensor> tensors = arguments.tensors(number_first ? "exponent" : "self");
  const c10::IValue given = arguments[number_first ? "self" : "exponent"];
  const std::vector<at::Scalar> numbers = numbers_of(given);
  const bool fits = !given.isList() || numbers.size() == tensors.size();
  if (C10_LIKELY(!fits || !any_not_held(numbers, tensors))) {
    each<spec>(op, stack);
    return;
  }
  std::vector<at::Tensor> powers;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Scalar& number = numbers[numbers.size() == 1 ? 0 : i];
    const at::Tensor wide = widen(tensors[i]);
    powers.push_back((number_first ? at::pow(number, wide) : at::pow(wide, number)).to(tensors[i].scalar_type()));
  }
  if (op.schema().returns().empty()) {
    at::_foreach_copy_(tensors, powers);
    torch::jit::drop(*stack, op.schema().arguments().size());
  } else {
    torch::jit::drop(*stack, op.schema().arguments().size());
    torch::jit::push(*stack, std::move(powers));
  }
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

/// See Note [Floating point to integers].
template <const OperatorSpec& spec>
void copies(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  const std::vector<at::Tensor> to = arguments.tensors("self"), from = arguments.tensors("src");
  bool any = false;
  for (size_t i = 0; i < std::min(to.size(), from.size()); ++i) {
    any |= becomes_integers(from[i].scalar_type(), to[i].scalar_type());
  }
  call_list<spec>(op, stack, any);
}

/// The numbers of `scalars` are read on the host.
template <const OperatorSpec& spec>
void with_scalars(const OperatorHandle& op, Stack* stack) {
  const at::Tensor scalars = Arguments(op, stack).tensor("scalars");
  TORCH_CHECK(scalars.is_cpu(), "Expected scalars to be on CPU, got ", scalars.device(), " instead.");
  call_list<spec>(op, stack, true);  // the CPU's kernel takes no lists of the device beside it
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
