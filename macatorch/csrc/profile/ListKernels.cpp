#include "profile/ListKernels.h"

#include <ATen/ATen.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

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
  const auto is_integer = [](const at::Tensor& t) { return at::isIntegralType(t.scalar_type(), true); };
  const bool takes_integers = is_one_of(name, {"add", "sub", "mul", "clamp_max", "clamp_min", "maximum", "minimum",
                                               "zero", "neg", "abs", "sign", "max", "clone"});
  if (!takes_integers && std::any_of(lists[0].begin(), lists[0].end(), is_integer)) {
    return false;
  }
  if (is_one_of(name, {"abs"}) && lists[0][0].is_complex()) {
    return false;
  }
  const double order = numbers.empty() || numbers[0].isComplex() ? 2 : numbers[0].toDouble();
  if (is_one_of(name, {"norm"}) && order != 1 && order != 2 && order != std::numeric_limits<double>::infinity()) {
    return false;
  }
  if (is_one_of(name, {"lerp", "norm", "max", "powsum"})) {
    numbers.clear();
  }
  if (numbers.size() > 1 && numbers.size() != lists[0].size()) {
    return false;
  }
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
