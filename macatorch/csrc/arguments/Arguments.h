#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "arguments/Device.h"

namespace macatorch {

/// Arguments of a boxed call by name. Releases differ in what an operator takes; one function here serves all of them.
class Arguments {
 public:
  Arguments(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : schema_(op.schema()), stack_(*stack), first_(stack->size() - schema_.arguments().size()) {}

  /// None where the release does not have the argument, or the caller did not give it.
  c10::IValue operator[](const char* name) const {
    const auto index = schema_.argumentIndexWithName(name);
    return index ? stack_[first_ + static_cast<size_t>(*index)] : c10::IValue();
  }
  /// Gives the call another argument, which the release must have.
  void replace(const char* name, c10::IValue value) const {
    const auto index = schema_.argumentIndexWithName(name);
    TORCH_INTERNAL_ASSERT(index);
    stack_[first_ + static_cast<size_t>(*index)] = std::move(value);
  }
  /// Undefined where it is None.
  at::Tensor tensor(const char* name) const {
    const c10::IValue value = (*this)[name];
    return value.isNone() ? at::Tensor() : value.toTensor();
  }
  std::vector<at::Tensor> tensors(const char* name) const {
    const c10::IValue value = (*this)[name];
    return value.isNone() ? std::vector<at::Tensor>() : value.toTensorVector();
  }
  std::optional<int64_t> integer(const char* name) const {
    const c10::IValue value = (*this)[name];
    return value.isNone() ? std::nullopt : std::make_optional(value.toInt());
  }
  std::optional<double> number(const char* name) const {
    const c10::IValue value = (*this)[name];
    return value.isNone() ? std::nullopt : std::make_optional(value.toScalar().toDouble());
  }
  std::optional<at::ScalarType> dtype(const char* name) const {
    const c10::IValue value = (*this)[name];
    return value.isNone() ? std::nullopt : std::make_optional(value.toScalarType());
  }
  bool flag(const char* name) const {
    const c10::IValue value = (*this)[name];
    return !value.isNone() && value.toBool();
  }
  /// Whether the release's operator has a result of this name.
  bool has_result(const char* name) const {
    for (const c10::Argument& result : schema_.returns()) {
      if (result.name() == name) {
        return true;
      }
    }
    return false;
  }

  /// Ends the call: takes the arguments from the stack and puts the results there.
  template <class... T>
  void give(T&&... results) {
    TORCH_INTERNAL_ASSERT(schema_.returns().size() == sizeof...(T));
    stack_.resize(first_);
    (stack_.emplace_back(std::forward<T>(results)), ...);
  }

 private:
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  size_t first_;
};

/// Refuses the first of `self`, `other` and `out` that is on the CPU in the words of upstream's kernel: `before`, its
/// name, `after`.
inline void check_on_device(const Arguments& given, const char* before, const char* after) {
  for (const char* name : {"self", "other", "out"}) {
    TORCH_CHECK(is_on_device(given.tensor(name)), before, name, after);
  }
}

}  // namespace macatorch
