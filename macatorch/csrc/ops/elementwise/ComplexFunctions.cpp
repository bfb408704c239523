#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
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
#include "dispatch/Precision.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {

// Functions of complex numbers for which upstream's CPU kernels use formulas that overflow, cancel or lose infinities,
// and CUDA's do not: the C library's, element by element. Which of them are wrong differs from release to release.

namespace {

// A function of one number, of either precision.
constexpr auto kAcos = [](auto z) { return std::acos(z); };
constexpr auto kAsin = [](auto z) { return std::asin(z); };
constexpr auto kAtan = [](auto z) { return std::atan(z); };
constexpr auto kExp = [](auto z) { return std::exp(z); };

constexpr auto kExp2 = [](auto z) {
  const std::complex<double> power(static_cast<double>(z.real()) * M_LN2, static_cast<double>(z.imag()) * M_LN2);
  return decltype(z)(std::exp(power));
};

/// NumPy's rules, which upstream follows here and not the C library's.
constexpr auto kReciprocal = [](auto z) -> decltype(z) {
  using T = typename decltype(z)::value_type;
  const auto x = static_cast<double>(z.real()), y = static_cast<double>(z.imag());
  const double square = x * x + y * y;
  if (C10_LIKELY(square > 1e-290 && square < 1e290)) {
    return {static_cast<T>(x / square), static_cast<T>(-y / square)};
  }
  if (std::isnan(x) || std::isnan(y) || (std::isinf(x) && std::isinf(y))) {
    return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
  }
  return std::isinf(x) || std::isinf(y) ? decltype(z)(0, 0) : T(1) / z;
};

constexpr auto kSigmoid = [](auto z) -> decltype(z) {
  using T = typename decltype(z)::value_type;
  if (z.real() < 0) {
    const auto power = std::exp(z);
    return power / (T(1) + power);
  }
  return T(1) / (T(1) + std::exp(-z));
};

/// Upstream's formula: the C library has none. A NaN in one part leaves the other part as it is.
constexpr auto kLog1p = [](auto z) -> decltype(z) {
  using T = typename decltype(z)::value_type;
  const T x = z.real(), y = z.imag();
  const T angle = std::atan2(y, x + T(1));
  if (std::abs(z) < T(0.5)) {
    const T square = x * (T(2) + x) + y * y;  // |1 + z|^2 - 1
    return {square == 0 ? x : std::log1p(square) / T(2), angle};
  }
  return {std::log(std::hypot(x + T(1), y)), angle};
};

// ---- Functions that replace the CPU kernel -------------------------------------------------------------------------

/// The function of an iterator's input, into its output.
template <const auto& function, class Stored>
void compute(at::TensorIterator& iterator) {
  iterator.for_each([](char** data, const int64_t* strides, int64_t columns, int64_t rows) {
    using Part = decltype(Stored().real());
    using Wide = std::complex<at::opmath_type<Part>>;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < columns; ++i) {
        const auto& z = *reinterpret_cast<const Stored*>(data[1] + row * strides[3] + i * strides[1]);
        const Wide value = function(Wide(z.real(), z.imag()));
        *reinterpret_cast<Stored*>(data[0] + row * strides[2] + i * strides[0]) =
            Stored(static_cast<Part>(value.real()), static_cast<Part>(value.imag()));
      }
    }
  });
  iterator.cast_outputs();
}

template <const auto& function>
struct Replaced {
  template <class Form>
  static typename Form::Result call(const Form& form, const at::Tensor& self) {
    if (C10_LIKELY(!self.is_complex()) || (Form::writes && self.device() != form.out().device())) {
      return form.kernel(self);
    }
    // TensorIterator checks and resizes as upstream's kernel does.
    DeviceCall call(self);
    const at::Tensor out = form.out();
    at::Tensor target = call(out, /*write=*/true);
    auto iterator = at::TensorIterator::unary_float_op(target, call(self));
    AT_DISPATCH_COMPLEX_TYPES_AND(at::kComplexHalf, iterator.common_dtype(), "complex function",
                                  [&] { compute<function, scalar_t>(iterator); });
    call.write_back();
    return form.give(out.defined() ? out : call.result(iterator.output()));
  }
};

// ---- Functions whose CPU kernel is fast, and wrong where its result shows it ---------------------------------------

/// What both parts of a result must not be below.
constexpr double kNoLimit = 0;
constexpr double kSigmoidLimit = 1e-9;  // the square of the divisor overflows where the result is tiny

/// Whether a result has to be computed again: it is not finite, or below the limit.
template <const double& limit, class T>
bool is_suspect(std::complex<T> z) {
  const T x = std::abs(z.real()), y = std::abs(z.imag());
  return !(x <= std::numeric_limits<T>::max() && y <= std::numeric_limits<T>::max()) || (x < T(limit) && y < T(limit));
}

constexpr int64_t kBlock = 64;

/// Whether kBlock results may have a suspect one. By the bits, without a branch and of a constant length, so that the
/// compiler makes vector instructions of it.
template <const double& limit, class T>
bool block_may_be_suspect(const std::complex<T>* results) {
  using Bits = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;
  constexpr Bits sign = Bits(1) << (sizeof(T) * 8 - 1);
  constexpr Bits mantissa = (Bits(1) << (std::numeric_limits<T>::digits - 1)) - 1;
  constexpr Bits exponent = ~(sign | mantissa);
  constexpr T least = T(limit);
  Bits tiny = 0;
  std::memcpy(&tiny, &least, sizeof(T));
  std::array<Bits, 2 * kBlock> parts;
  std::memcpy(parts.data(), results, sizeof(parts));
  Bits found = 0;
  for (const Bits part : parts) {
    // Infinities and NaN have all bits of the exponent: one more carries into the sign. A number below the limit
    // borrows from the sign.
    found |= (part & exponent) + (mantissa + 1);
    found |= (part & ~sign) - tiny;
  }
  return (found & sign) != 0;
}

template <const auto& function, const double& limit, class T>
void repair(const at::Tensor& from, const at::Tensor& to) {
  const auto* source = reinterpret_cast<const std::complex<T>*>(from.const_data_ptr());
  auto* target = reinterpret_cast<std::complex<T>*>(to.mutable_data_ptr());
  at::parallel_for(0, (from.numel() + kBlock - 1) / kBlock, 256, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, last = std::min(first + kBlock, from.numel());
      if (last - first == kBlock && C10_LIKELY(!block_may_be_suspect<limit>(target + first))) {
        continue;
      }
      for (int64_t i = first; i < last; ++i) {
        if (is_suspect<limit>(target[i])) {
          target[i] = function(source[i]);
        }
      }
    }
  });
}

/// Computes again what the CPU kernel has got wrong in `result`.
template <const auto& function, const double& limit>
void correct(const at::Tensor& input, const at::Tensor& result) {
  if (!result.is_complex() || result.numel() == 0) {
    return;
  }
  DeviceCall call(result);
  const at::Tensor to = call(result, /*write=*/true);
  const at::Tensor values = widen(to).contiguous();  // `to` itself, where that is possible
  const at::Tensor from = call(input).to(values.scalar_type()).contiguous();
  values.scalar_type() == at::kComplexDouble ? repair<function, limit, double>(from, values)
                                             : repair<function, limit, float>(from, values);
  if (!values.is_same(to)) {
    to.copy_(values);
  }
  call.write_back();
}

template <const auto& function, const double& limit>
struct Repaired {
  template <class Form>
  static typename Form::Result call(const Form& form, const at::Tensor& self) {
    if (C10_LIKELY(!self.is_complex())) {
      return form.kernel(self);
    }
    const at::Tensor given = Form::writes ? self.clone() : self;  // `out` may be the same memory
    typename Form::Result result = form.kernel(self);
    correct<function, limit>(given, result);
    return result;
  }
};

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/ComplexFunctions.h"
