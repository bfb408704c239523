#pragma once

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

#include <tuple>
#include <utility>

#include "dispatch/Unboxed.h"

namespace macatorch {

// Note [Three forms of one operator]
// An operator has a functional form, and often one in place and one with `out`. What an operator here adds to the
// generated kernel is the same in all of them, so it is written once, in terms of the form:
//
//   struct Subject {
//     template <class Form> static typename Form::Result call(const Form& form, inputs...);
//   };
//
// `form.kernel(inputs...)` runs the generated kernel. Its first input is ignored in place, where it is what is written.
// `form.give(value)` ends the call with a value that was computed otherwise.

/// Resizes `out` to `value`, with upstream's warning, and copies. The result is `value` itself if `out` is undefined.
inline at::Tensor write_out(const at::Tensor& out, const at::Tensor& value) {
  if (!out.defined()) {
    return value;
  }
  at::native::resize_output(out, value.sizes());
  return out.copy_(value);
}

inline void check_dtype(const at::Tensor& out, at::ScalarType dtype) {
  TORCH_CHECK(out.scalar_type() == dtype, "Expected out tensor to have dtype ", c10::scalarTypeToTypeMeta(dtype),
              ", but got ", out.dtype(), " instead");
}

inline void check_device(const at::Tensor& out, c10::Device device) {
  TORCH_CHECK(out.device() == device, "Expected out tensor to have device ", device, ", but got ", out.device(),
              " instead");
}

/// write_out for operators that take no `out` of another device or dtype.
inline at::Tensor write_same_out(const at::Tensor& out, const at::Tensor& value) {
  if (out.defined()) {
    check_device(out, value.device());
    check_dtype(out, value.scalar_type());
  }
  return write_out(out, value);
}

template <class Op, const OperatorSpec& spec>
struct FunctionalForm {
  using Result = at::Tensor;
  static constexpr bool writes = false;
  static constexpr bool in_place = false;

  template <class... Inputs>
  at::Tensor kernel(const Inputs&... inputs) const {
    return Unboxed<Op, spec>::call(inputs...);
  }
  at::Tensor give(at::Tensor value) const { return value; }

  /// What is written; undefined here.
  at::Tensor out() const { return {}; }
  void check_out(at::ScalarType /*dtype*/) const {}
  /// Whether the form takes an elementwise result. One that does not leaves it to the kernel to raise.
  bool takes(const at::Tensor& /*value*/) const { return true; }
  void check_elementwise(const at::Tensor& /*self*/, const at::Tensor& /*other*/) const {}
};

template <class Op, const OperatorSpec& spec, bool is_in_place>
struct WritingForm {
  using Result = at::Tensor&;
  static constexpr bool writes = true;
  static constexpr bool in_place = is_in_place;

  at::Tensor& target;

  template <class... Inputs>
  at::Tensor& kernel(const at::Tensor& self, const Inputs&... inputs) const {
    if constexpr (in_place) {
      return Unboxed<Op, spec>::call(target, inputs...);
    } else {
      return Unboxed<Op, spec>::call(self, inputs..., target);
    }
  }
  at::Tensor& give(const at::Tensor& value) const {
    if (!target.is_same(value)) {
      check_device(target, value.device());
      write_out(target, value);
    }
    return target;
  }

  at::Tensor out() const { return target; }
  void check_out(at::ScalarType dtype) const { check_dtype(target, dtype); }
  bool takes(const at::Tensor& value) const {
    return at::canCast(value.scalar_type(), target.scalar_type()) &&
           (in_place ? target.sizes() == value.sizes() : target.device() == value.device());
  }
  /// What upstream's elementwise operators ask of the tensor that they write.
  void check_elementwise(const at::Tensor& self, const at::Tensor& other) const {
    if (target.is_same(self) || target.is_same(other)) {
      const std::vector<int64_t> shape = at::infer_size(self.sizes(), other.sizes());
      TORCH_CHECK(target.sizes() == at::IntArrayRef(shape), "output with shape ", target.sizes(),
                  " doesn't match the broadcast shape ", at::IntArrayRef(shape));
    }
    at::assert_no_internal_overlap(target);
    at::assert_no_partial_overlap(target, self);
    at::assert_no_partial_overlap(target, other);
  }
};

/// The function of one form, for operators.toml; `Subject` as in Note [Three forms of one operator].
template <class Subject, class Op, const OperatorSpec& spec, class Schema = typename Op::schema>
struct Derived;

template <class Subject, class Op, const OperatorSpec& spec, class... Args>
struct Derived<Subject, Op, spec, at::Tensor(Args...)> {
  static at::Tensor call(Args... args) { return Subject::call(FunctionalForm<Op, spec>{}, args...); }
};

template <class Subject, class Op, const OperatorSpec& spec, class... Args>
struct Derived<Subject, Op, spec, at::Tensor&(Args...)> {
  static constexpr bool in_place = std::is_same_v<std::tuple_element_t<0, std::tuple<Args...>>, at::Tensor&>;

  static at::Tensor& call(Args... args) {
    return call_with(std::make_index_sequence<sizeof...(Args) - (in_place ? 0 : 1)>(), std::tie(args...));
  }

 private:
  template <size_t... inputs, class All>
  static at::Tensor& call_with(std::index_sequence<inputs...>, const All& all) {
    at::Tensor& target = std::get<in_place ? 0 : sizeof...(inputs)>(all);
    return Subject::call(WritingForm<Op, spec, in_place>{target}, std::get<inputs>(all)...);
  }
};

}  // namespace macatorch
