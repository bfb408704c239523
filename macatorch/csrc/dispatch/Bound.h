#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <tuple>
#include <vector>

namespace macatorch {

// Note [Bound arguments]
// A typed call (an unboxed wrapper, a function table) hands its arguments on with CPU tensors in the place of the
// device's. `Call` makes them, by `alias(tensor, written)`, and takes results back, by `result(tensor)`.

/// One argument as the CPU's function gets it; holds what the function only refers to. `done` is called after it.
template <class Call, class T>
struct Bound {
  T value;
  Bound(Call&, T given) : value(given) {}
  T get() { return value; }
  void done(Call&) {}
};
template <class Call>
struct Bound<Call, const at::Tensor&> {
  at::Tensor value;
  Bound(Call& call, const at::Tensor& given) : value(call.alias(given)) {}
  const at::Tensor& get() { return value; }
  void done(Call&) {}
};
template <class Call>
struct Bound<Call, at::Tensor&> {
  at::Tensor value;
  Bound(Call& call, const at::Tensor& given) : value(call.alias(given, true)) {}
  at::Tensor& get() { return value; }
  void done(Call&) {}
};
template <class Call>
struct Bound<Call, const std::optional<at::Tensor>&> {
  std::optional<at::Tensor> value;
  Bound(Call& call, const std::optional<at::Tensor>& given) {
    if (given) {
      value = call.alias(*given);
    }
  }
  const std::optional<at::Tensor>& get() { return value; }
  void done(Call&) {}
};
template <class Call>
struct BoundList {
  std::vector<at::Tensor> value;
  template <class List>
  BoundList(Call& call, const List& given) {
    value.reserve(given.size());
    for (const at::Tensor& tensor : given) {
      value.push_back(call.alias(tensor));
    }
  }
  void done(Call&) {}
};
template <class Call>
struct Bound<Call, at::TensorList> : BoundList<Call> {
  Bound(Call& call, at::TensorList given) : BoundList<Call>(call, given) {}
  at::TensorList get() { return this->value; }
};
template <class Call>
struct Bound<Call, const at::ITensorListRef&> : BoundList<Call> {
  at::ITensorListRef list;
  Bound(Call& call, const at::ITensorListRef& given) : BoundList<Call>(call, given), list(this->value) {}
  const at::ITensorListRef& get() { return list; }
};

template <class Call>
at::Tensor result_of(const Call& call, at::Tensor value) {
  return call.result(std::move(value));
}
template <class Call>
std::vector<at::Tensor> result_of(const Call& call, std::vector<at::Tensor> values) {
  for (at::Tensor& value : values) {
    value = call.result(std::move(value));
  }
  return values;
}
template <class Call, class... T>
std::tuple<T...> result_of(const Call& call, std::tuple<T...> values) {
  return std::apply([&](auto&... value) { return std::tuple<T...>(result_of(call, std::move(value))...); }, values);
}
template <class Call, class T>
T result_of(const Call&, T value) {
  return value;
}

}  // namespace macatorch
