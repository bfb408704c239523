#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/acos_ops.h>
#include <ATen/ops/asin_ops.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/sigmoid_ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "alias/DeviceCall.h"
#include "dispatch/Unboxed.h"
#include "registered/Specs.h"

namespace macatorch {

// Functions of complex numbers for which upstream's CPU kernels use formulas that overflow, cancel or lose infinities, and
// CUDA's do not: the C library's, element by element. Which of them are wrong differs from release to release.

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
  static constexpr double kTiny = 0;
  template <class T>
  static Complex<T> at(Complex<T> z) {
    return std::exp(z);
  }
};
struct Exp2 {
  static constexpr double kTiny = 0;
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
    const auto x = static_cast<double>(z.real()), y = static_cast<double>(z.imag());
    const double square = x * x + y * y;
    if (C10_LIKELY(square > 1e-290 && square < 1e290)) {
      return {static_cast<T>(x / square), static_cast<T>(-y / square)};
    }
    const bool both_infinite = std::isinf(x) && std::isinf(y);
    if (both_infinite || std::isnan(x) || std::isnan(y)) {
      return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
    }
    if (std::isinf(x) || std::isinf(y)) {
      return {0, 0};
    }
    return T(1) / z;
  }
};
struct Sigmoid {
  // The square of its divisor overflows where the result is tiny.
  static constexpr double kTiny = 1e-9;
  template <class T>
  static Complex<T> at(Complex<T> z) {
    if (z.real() < 0) {
      const Complex<T> power = std::exp(z);
      return power / (T(1) + power);
    }
    return T(1) / (T(1) + std::exp(-z));
  }
};

/// Upstream's formula: the C library has none. Not a number in one part leaves what the other has to say.
struct Log1p {
  template <class T>
  static Complex<T> at(Complex<T> z) {
    const T x = z.real(), y = z.imag();
    const T angle = std::atan2(y, x + T(1));
    if (std::abs(z) < T(0.5)) {
      const T square = x * (T(2) + x) + y * y;  // |1 + z|^2 - 1
      return {square == 0 ? x : std::log1p(square) / T(2), angle};
    }
    return {std::log(std::hypot(x + T(1), y)), angle};
  }
};

// ---- Functions that are computed anew -------------------------------------------------------------------------------

/// The function of an iterator's input, into its output; `Stored` in memory, computed as `T`.
template <class Function, class Stored, class T>
void compute(at::TensorIterator& iterator) {
  iterator.for_each([](char** data, const int64_t* strides, int64_t columns, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      char* to = data[0] + row * strides[2];
      const char* from = data[1] + row * strides[3];
      for (int64_t i = 0; i < columns; ++i) {
        const auto& z = *reinterpret_cast<const Stored*>(from + i * strides[1]);
        using Part = decltype(z.real());
        const Complex<T> value = Function::template at<T>({static_cast<T>(z.real()), static_cast<T>(z.imag())});
        *reinterpret_cast<Stored*>(to + i * strides[0]) =
            Stored(static_cast<Part>(value.real()), static_cast<Part>(value.imag()));
      }
    }
  });
}

/// The function of a complex `self`; `out` may be undefined. TensorIterator checks and resizes as upstream's kernel does.
template <class Function>
at::Tensor computed(const at::Tensor& self, const at::Tensor& out) {
  DeviceCall call(self);
  at::Tensor target = out.defined() ? call(out, /*write=*/true) : at::Tensor();
  auto iterator = at::TensorIterator::unary_float_op(target, call(self));
  switch (iterator.common_dtype()) {
    case at::kComplexDouble: compute<Function, c10::complex<double>, double>(iterator); break;
    case at::kComplexFloat: compute<Function, c10::complex<float>, float>(iterator); break;
    default: compute<Function, c10::complex<at::Half>, float>(iterator); break;
  }
  iterator.cast_outputs();
  if (!out.defined()) {
    return call.result(iterator.output());
  }
  call.write_back();
  return out;
}

/// Operators on complex tensors of one device; all others are the general rule's.
template <class Function, class Op, const OperatorSpec& spec>
struct Anew {
  static at::Tensor function(const at::Tensor& self) {
    return C10_UNLIKELY(self.is_complex()) ? computed<Function>(self, {}) : Unboxed<Op, spec>::call(self);
  }
  static at::Tensor& in_place(at::Tensor& self) {
    if (C10_LIKELY(!self.is_complex())) {
      return Unboxed<Op, spec>::call(self);
    }
    computed<Function>(self, self);
    return self;
  }
  static at::Tensor& to_out(const at::Tensor& self, at::Tensor& out) {
    if (C10_LIKELY(!self.is_complex() || self.device() != out.device())) {
      return Unboxed<Op, spec>::call(self, out);
    }
    computed<Function>(self, out);
    return out;
  }
};

// ---- Functions whose CPU kernel is fast, and wrong where its result gives it away ----------------------------------------

/// Whether a result has to be computed again: it is not finite, or its parts are below Function::kTiny.
template <class Function, class T>
bool is_suspect(Complex<T> z) {
  const T x = std::abs(z.real()), y = std::abs(z.imag());
  return !(x <= std::numeric_limits<T>::max() && y <= std::numeric_limits<T>::max()) ||
         (x < T(Function::kTiny) && y < T(Function::kTiny));
}

constexpr int64_t kBlock = 64;

/// Whether kBlock results may have a suspect one. By the bits, without a branch and of a constant length, so that the
/// compiler makes vector instructions of it.
template <class Function, class T>
bool block_may_be_suspect(const Complex<T>* results) {
  using Bits = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;
  constexpr Bits sign = Bits(1) << (sizeof(T) * 8 - 1);
  constexpr Bits mantissa = (Bits(1) << (std::numeric_limits<T>::digits - 1)) - 1;
  constexpr Bits exponent = ~(sign | mantissa);
  constexpr T limit = T(Function::kTiny);
  Bits tiny = 0;
  std::memcpy(&tiny, &limit, sizeof(T));
  std::array<Bits, 2 * kBlock> parts;
  std::memcpy(parts.data(), results, sizeof(parts));
  Bits found = 0;
  for (const Bits part : parts) {
    // Infinities and NaN have all bits of the exponent: one more carries into the sign. A smaller number's difference borrows from it.
    found |= (part & exponent) + (mantissa + 1);
    found |= (part & ~sign) - tiny;
  }
  return (found & sign) != 0;
}

template <class Function, class T>
void repair(const at::Tensor& from, const at::Tensor& to) {
  const auto* source = reinterpret_cast<const Complex<T>*>(from.const_data_ptr());
  auto* target = reinterpret_cast<Complex<T>*>(to.mutable_data_ptr());
  at::parallel_for(0, (from.numel() + kBlock - 1) / kBlock, 256, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, last = std::min(first + kBlock, from.numel());
      if (last - first == kBlock && C10_LIKELY(!block_may_be_suspect<Function>(target + first))) {
        continue;
      }
      for (int64_t i = first; i < last; ++i) {
        if (is_suspect<Function>(target[i])) {
          target[i] = Function::template at<T>(source[i]);
        }
      }
    }
  });
}

/// Computes again what the CPU kernel has got wrong in `result`.
template <class Function>
void correct(const at::Tensor& input, const at::Tensor& result) {
  if (!result.is_complex() || result.numel() == 0) {
    return;
  }
  DeviceCall call(result);
  const at::Tensor to = call(result, /*write=*/true);
  const bool wide = to.scalar_type() == at::kComplexDouble;
  const at::ScalarType dtype = wide ? at::kComplexDouble : at::kComplexFloat;
  const at::Tensor from = call(input).to(dtype).contiguous();
  const at::Tensor values = to.to(dtype).contiguous();  // `to` itself, where that is possible
  wide ? repair<Function, double>(from, values) : repair<Function, float>(from, values);
  if (!values.is_same(to)) {
    to.copy_(values);
  }
  call.write_back();
}

template <class Function, class Op, const OperatorSpec& spec>
struct Repaired {
  static at::Tensor function(const at::Tensor& self) {
    at::Tensor result = Unboxed<Op, spec>::call(self);
    if (C10_UNLIKELY(self.is_complex())) {
      correct<Function>(self, result);
    }
    return result;
  }
  static at::Tensor& in_place(at::Tensor& self) {
    if (C10_LIKELY(!self.is_complex())) {
      return Unboxed<Op, spec>::call(self);
    }
    const at::Tensor given = self.clone();
    Unboxed<Op, spec>::call(self);
    correct<Function>(given, self);
    return self;
  }
  static at::Tensor& to_out(const at::Tensor& self, at::Tensor& out) {
    if (C10_LIKELY(!self.is_complex())) {
      return Unboxed<Op, spec>::call(self, out);
    }
    const at::Tensor given = self.clone();  // `out` may be the same memory
    Unboxed<Op, spec>::call(self, out);
    correct<Function>(given, out);
    return out;
  }
};

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/ComplexFunctions.h"
