#pragma once

#include <ATen/ATen.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <type_traits>

namespace macatorch {

// Note [Walking over arguments]
// Boxed calls, unboxed wrappers, function tables and captures all look at every tensor among the arguments of a call.
// One set of functions serves them: for boxed values, and for the types that arguments have in C++.

/// Calls `visit(tensor)` for every defined tensor in an argument: a tensor, an optional one, a list, an iterator's
/// operands. What holds no tensor is passed over.
template <class T, class Visit>
void for_each_tensor(const T& argument, const Visit& visit) {
  if constexpr (std::is_base_of_v<at::TensorBase, T>) {
    if (argument.defined()) {
      visit(argument);
    }
  } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
    if (argument) {
      for_each_tensor(*argument, visit);
    }
  } else if constexpr (std::is_same_v<T, at::TensorList> || std::is_same_v<T, at::ITensorListRef> ||
                       std::is_same_v<T, c10::List<std::optional<at::Tensor>>>) {
    for (const auto& tensor : argument) {
      for_each_tensor<std::conditional_t<std::is_same_v<T, c10::List<std::optional<at::Tensor>>>,
                                         std::optional<at::Tensor>, at::Tensor>>(tensor, visit);
    }
  } else if constexpr (std::is_base_of_v<at::TensorIteratorBase, T>) {
    for (int i = 0; i < argument.ntensors(); ++i) {
      for_each_tensor(argument.tensor(i), visit);
    }
  }
}
template <class Visit>
void for_each_tensor(at::Tensor* const& argument, const Visit& visit) {
  if (argument != nullptr) {
    for_each_tensor(*argument, visit);
  }
}

/// Boxed: a tensor, a list of them, a list of optional ones.
template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      visit(value.toTensor());
    }
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) {
      visit(tensor);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      for_each_tensor(element, visit);
    }
  }
}

/// `value` with every tensor replaced by `change(tensor)`; lists keep their element type.
template <class Change>
c10::IValue map_tensors(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? c10::IValue(change(value.toTensor())) : value;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    list.reserve(value.toListRef().size());
    for (const c10::IValue& element : value.toListRef()) {
      list.push_back(change(element.toTensor()));
    }
    return list;
  }
  if (value.isList() && value.toListRef().size() != 0) {
    auto list = c10::impl::GenericList(value.toList().elementType());
    list.reserve(value.toListRef().size());
    for (const c10::IValue& element : value.toListRef()) {
      list.push_back(map_tensors(element, change));
    }
    return list;
  }
  return value;
}

/// Whether the operator writes to its argument `index`: by its schema, or because it keeps running statistics, of which
/// most schemas of batch normalisation do not tell.
inline bool is_written(const c10::FunctionSchema& schema, size_t index) {
  const c10::Argument& argument = schema.arguments()[index];
  if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
    return true;
  }
  return (argument.name() == "running_mean" || argument.name() == "running_var") &&
         schema.name().find("backward") == std::string::npos;
}

}  // namespace macatorch
