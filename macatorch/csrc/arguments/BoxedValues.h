#pragma once

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace macatorch {

/// Calls `visit(tensor)` for every defined tensor in `value`: a tensor, a list of them, a list of optional ones.
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

/// Whether the operator writes to its argument `index`: by its schema, or because it keeps running statistics, of which most
/// schemas of batch normalisation do not tell.
inline bool is_written(const c10::FunctionSchema& schema, size_t index) {
  const c10::Argument& argument = schema.arguments()[index];
  if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
    return true;
  }
  return (argument.name() == "running_mean" || argument.name() == "running_var") &&
         schema.name().find("backward") == std::string::npos;
}

}  // namespace macatorch
