#include "profile/ListKernels.h"

#include <ATen/ATen.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "arguments/Release.h"

namespace macatorch {
namespace {

thread_local bool of_lists = false;

using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view name, Names names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view one) {
    return name == one || (name.size() == one.size() + 1 && name.substr(0, one.size()) == one && name.back() == '_');
  });
}

/// The numbers of a call: one for all tensors, or one for each.
void add_numbers(const c10::IValue& given, std::vector<at::Scalar>& numbers) {
  if (given.isScalar()) {
    numbers.push_back(given.toScalar());
  } else if (given.isList() && !given.isTensorList()) {
    for (const c10::IValue& number : given.toListRef()) {
      if (number.isScalar()) {
        numbers.push_back(number.toScalar());
      }
    }
  }
}

/// Whether two lists have tensors of the same sizes and strides, pair by pair, whatever their dtypes are.
bool lie_alike(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  const auto alike = [](const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && a.strides() == b.strides();
  };
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin(), alike);
}

/// Whether a tensor is one number of the dtype and on the device of another one.
[[maybe_unused]] bool is_number_like(const at::Tensor& tensor, const at::Tensor& other) {
  return tensor.dim() == 0 && tensor.scalar_type() == other.scalar_type() && tensor.device() == other.device();
}

/// Whether CUDA has one kernel for all tensors of a call, whose arguments are the last ones on the stack.
bool has_one_kernel(std::string_view name, const torch::jit::Stack& stack, size_t arguments) {
  constexpr std::string_view kPrefix = "aten::_foreach_";
  if (name.substr(0, kPrefix.size()) != kPrefix) {
    return false;
  }
  name.remove_prefix(kPrefix.size());
  // The rules ask operators, which are none of the program's.
  const at::RecordFunctionGuard unseen(/*is_enabled=*/false);
  std::vector<std::vector<at::Tensor>> lists;
  std::vector<at::Scalar> numbers;
  const c10::IValue& first = *(stack.end() - static_cast<ptrdiff_t>(arguments));
  for (auto value = stack.end() - static_cast<ptrdiff_t>(arguments); value != stack.end(); ++value) {
    if (value->isTensorList()) {
      lists.push_back(value->toTensorVector());
    } else {
      add_numbers(*value, numbers);
    }
  }
  const bool full = !lists.empty() && std::none_of(lists.begin(), lists.end(), [](const auto& list) {
    return list.empty() || std::any_of(list.begin(), list.end(), [](const at::Tensor& t) { return !t.defined(); });
  });
  if (!full || std::any_of(lists.begin(), lists.end(), [&](const auto& l) { return l.size() != lists[0].size(); })) {
    return false;
  }
  // What is asked of the inputs beside their places: upstream's ForeachUtils.h has the rules, and its kernels of lists
  // say which of them they follow.
  if (is_one_of(name, {"copy"})) {
    const bool each = at::native::can_use_fast_route(at::ArrayRef<at::TensorList>{lists[0]}) &&
                      at::native::can_use_fast_route(at::ArrayRef<at::TensorList>{lists.back()});
    return each && lie_alike(lists[0], lists.back());
  }
  const bool is_power_of_number = is_one_of(name, {"pow"}) && first.isScalar();
  const auto is_integer = [](const at::Tensor& t) { return at::isIntegralType(t.scalar_type(), true); };
  const bool takes_integers =
      is_power_of_number || is_one_of(name, {"add", "sub", "mul", "zero", "neg", "abs", "max", "clone"});
  if (!takes_integers && std::any_of(lists[0].begin(), lists[0].end(), is_integer)) {
    return false;
  }
  if ((is_power_of_number && lists[0][0].scalar_type() == at::kBool) ||
      (is_one_of(name, {"abs", "norm"}) && lists[0][0].is_complex())) {
    return false;
  }
  const double order = numbers.empty() || numbers[0].isComplex() ? 2 : numbers[0].toDouble();
  const bool is_sum = order == 1 || order == 2 || (order == 0 && MACATORCH_TORCH_AT_LEAST(2, 12));
  if (is_one_of(name, {"norm"}) && !is_sum && order != std::numeric_limits<double>::infinity()) {
    return false;
  }
  if (is_power_of_number || is_one_of(name, {"lerp", "norm", "max", "powsum"})) {
    numbers.clear();
  }
  if (numbers.size() > 1 && numbers.size() != lists[0].size()) {
    return false;
  }
#if MACATORCH_TORCH_AT_LEAST(2, 12)
  // A factor of no dimensions is one number for its tensor.
  const bool either = is_one_of(name, {"addcmul"});
  for (size_t i = 1; i < lists.size() && (either || (i == 1 && is_one_of(name, {"addcdiv"}))); ++i) {
    if (std::all_of(lists[i].begin(), lists[i].end(),
                    [&](const at::Tensor& t) { return is_number_like(t, lists[0][0]); })) {
      lists.erase(lists.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
  }
#endif
  const std::vector<at::TensorList> views(lists.begin(), lists.end());
  return at::native::can_use_fast_route(views, numbers);
}

}  // namespace

ListKernel::ListKernel(const c10::OperatorHandle& op, const torch::jit::Stack& stack)
    : before_(of_lists), is_one_(has_one_kernel(op.schema().name(), stack, op.schema().arguments().size())) {
  of_lists = is_one_;
}

ListKernel::~ListKernel() { of_lists = before_; }

bool is_list_kernel() { return of_lists; }

}  // namespace macatorch
