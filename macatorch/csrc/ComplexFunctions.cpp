#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/ops/acos_ops.h>
#include <ATen/ops/asin_ops.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/sigmoid_ops.h>

#include <cmath>
#include <complex>
#include <limits>

#include "DeviceCall.h"
#include "NeuralNet.h"
#include "Unboxed.h"

namespace macatorch {

// Functions of complex numbers for which upstream's CPU kernels use formulas that overflow, cancel or lose infinities, and
// CUDA's do not: the C library's, element by element. Which of them are wrong differs from release to release.

#define MACATORCH_COMPLEX_FUNCTION(name) \
  MACATORCH_SPEC(name);                  \
  MACATORCH_SPEC(name##_);               \
  MACATORCH_SPEC(name##_out)

MACATORCH_COMPLEX_FUNCTION(acos);
MACATORCH_COMPLEX_FUNCTION(asin);
MACATORCH_COMPLEX_FUNCTION(atan);
MACATORCH_COMPLEX_FUNCTION(exp);
MACATORCH_COMPLEX_FUNCTION(exp2);
MACATORCH_COMPLEX_FUNCTION(reciprocal);
MACATORCH_COMPLEX_FUNCTION(sigmoid);

#undef MACATORCH_COMPLEX_FUNCTION

namespace {

template <class T>
using Complex = std::complex<T>;

struct Acos {
  template <class T>
  static Complex<T> at(Complex<T> z) {
    return std::acos(z);
  }
};
struct Asin {
  template <class T>
  static Complex<T> at(Complex<T> z) {
    return std::asin(z);
  }
};
struct Atan {
  template <class T>
  static Complex<T> at(Complex<T> z) {
    return std::atan(z);
  }
};
struct Exp {
  template <class T>
  static Complex<T> at(Complex<T> z) {
    return std::exp(z);
  }
};
struct Exp2 {
  template <class T>
  static Complex<T> at(Complex<T> z) {
    const Complex<double> power(static_cast<double>(z.real()) * M_LN2, static_cast<double>(z.imag()) * M_LN2);
    return Complex<T>(std::exp(power));
  }
};
/// NumPy's rules, which upstream follows here and not the C library's.
struct Reciprocal {
  template <class T>
  static Complex<T> at(Complex<T> z) {
    const bool both_infinite = std::isinf(z.real()) && std::isinf(z.imag());
    if (both_infinite || std::isnan(z.real()) || std::isnan(z.imag())) {
      return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
    }
    if (std::isinf(z.real()) || std::isinf(z.imag())) {
      return {0, 0};
    }
    return T(1) / z;
  }
};
struct Sigmoid {
  template <class T>
  static Complex<T> at(Complex<T> z) {
    if (z.real() < 0) {
      const Complex<T> power = std::exp(z);
      return power / (T(1) + power);
    }
    return T(1) / (T(1) + std::exp(-z));
  }
};

/// Elements of `from` that `to` gets the function of; both contiguous, and may be the same memory.
template <class Function, class T>
void compute(const at::Tensor& from, const at::Tensor& to) {
  const auto* source = reinterpret_cast<const Complex<T>*>(from.const_data_ptr());
  auto* target = reinterpret_cast<Complex<T>*>(to.mutable_data_ptr());
  at::parallel_for(0, from.numel(), 2048, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      target[i] = Function::template at<T>(source[i]);
    }
  });
}

/// Writes the function of `input` over what the CPU kernel has left in `result`.
template <class Function>
void correct(const at::Tensor& input, const at::Tensor& result) {
  if (!result.is_complex() || result.numel() == 0) {
    return;
  }
  DeviceCall call(result);
  const bool wide = input.scalar_type() == at::kComplexDouble;
  const at::Tensor from = call(input).to(wide ? at::kComplexDouble : at::kComplexFloat).contiguous();
  const at::Tensor to = call(result, /*write=*/true);
  const at::Tensor values =
      to.is_contiguous() && to.scalar_type() == from.scalar_type() ? to : at::empty(from.sizes(), from.options());
  wide ? compute<Function, double>(from, values) : compute<Function, float>(from, values);
  if (!values.is_same(to)) {
    to.copy_(values);
  }
  call.write_back();
}

template <class Function, class Op, const OperatorSpec& spec>
at::Tensor function(const at::Tensor& self) {
  at::Tensor result = Unboxed<Op, spec>::call(self);
  if (C10_UNLIKELY(self.is_complex())) {
    correct<Function>(self, result);
  }
  return result;
}

template <class Function, class Op, const OperatorSpec& spec>
at::Tensor& in_place(at::Tensor& self) {
  if (C10_LIKELY(!self.is_complex())) {
    return Unboxed<Op, spec>::call(self);
  }
  const at::Tensor given = self.clone();
  Unboxed<Op, spec>::call(self);
  correct<Function>(given, self);
  return self;
}

template <class Function, class Op, const OperatorSpec& spec>
at::Tensor& to_out(const at::Tensor& self, at::Tensor& out) {
  if (C10_LIKELY(!self.is_complex())) {
    return Unboxed<Op, spec>::call(self, out);
  }
  const at::Tensor given = self.clone();  // `out` may be the same memory
  Unboxed<Op, spec>::call(self, out);
  correct<Function>(given, out);
  return out;
}

}  // namespace

void register_complex_functions(torch::Library& cuda) {
#define MACATORCH_COMPLEX_FUNCTION(name, Function)                                         \
  cuda.impl(#name, TORCH_FN((function<Function, at::_ops::name, spec_##name>)));           \
  cuda.impl(#name "_", TORCH_FN((in_place<Function, at::_ops::name##_, spec_##name##_>))); \
  cuda.impl(#name ".out", TORCH_FN((to_out<Function, at::_ops::name##_out, spec_##name##_out>)))

  MACATORCH_COMPLEX_FUNCTION(acos, Acos);
  MACATORCH_COMPLEX_FUNCTION(asin, Asin);
  MACATORCH_COMPLEX_FUNCTION(atan, Atan);
  MACATORCH_COMPLEX_FUNCTION(exp, Exp);
  MACATORCH_COMPLEX_FUNCTION(exp2, Exp2);
  MACATORCH_COMPLEX_FUNCTION(reciprocal, Reciprocal);
  MACATORCH_COMPLEX_FUNCTION(sigmoid, Sigmoid);
#undef MACATORCH_COMPLEX_FUNCTION
}

}  // namespace macatorch
