#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ScalarOps.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/remainder_ops.h>

#include <atomic>
#include <optional>
#include <string_view>
#include <type_traits>

#include "alias/DeviceCall.h"
#include "arguments/Device.h"
#include "ops/Forms.h"
#include "ops/elementwise/LowNumbers.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// Note [Divisors 0 and -1]
// A processor traps where an integer is divided by zero, and where the smallest one is divided by -1. Upstream's CPU
// kernels raise in the first case and, in some releases, end the process in the second. On a GPU both have a result.
// Upstream's tests expect all bits set after a division by zero, in quotient and remainder; of 64 bits only the lower
// 32 if the dividend has no others.

enum class Part { Remainder, Truncated, Floored };

constexpr int64_t kBlock = 128;

/// Whether kBlock divisors have a 0, or a -1 if there are negative ones. Without a branch and of a constant length, so
/// that the compiler makes vector instructions of it.
template <class T>
bool block_has_special(const T* data) {
  using Bits = std::make_unsigned_t<T>;
  Bits found = 0;  // in the highest bit
  for (int64_t i = 0; i < kBlock; ++i) {
    const auto bits = static_cast<Bits>(data[i]);
    found |= std::is_signed_v<T> ? static_cast<Bits>((static_cast<Bits>(bits + 1) >> 1) - 1)
                                 : static_cast<Bits>((bits - 1) & ~bits);
  }
  return (found >> (sizeof(T) * 8 - 1)) != 0;
}

/// Whether an integer tensor of any strides has a 0 or a -1: in the dtype of the division, where 256 may be 0.
bool has_special(const at::Tensor& divisor) {
  const at::Tensor dense = divisor.contiguous();
  return AT_DISPATCH_INTEGRAL_TYPES(dense.scalar_type(), "divisors", [&] {
    const auto* data = dense.const_data_ptr<scalar_t>();
    const int64_t blocks = dense.numel() / kBlock;
    std::atomic<bool> found{false};
    at::parallel_for(0, blocks, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (C10_UNLIKELY(block_has_special(data + i * kBlock))) {
          found.store(true, std::memory_order_relaxed);
          return;
        }
      }
    });
    for (int64_t i = blocks * kBlock; i < dense.numel(); ++i) {
      if (data[i] == 0 || (std::is_signed_v<scalar_t> && data[i] == static_cast<scalar_t>(-1))) {
        return true;
      }
    }
    return found.load();
  });
}

struct Special {
  at::Tensor divisor;  // 1 in place of 0 and -1
  at::Tensor where;    // which those are
  at::Tensor values;   // the results there
};

/// The special divisors of an integer division. None if it has none, or if the operator itself has to refuse it.
std::optional<Special> find_special(const at::Tensor& self, const at::Tensor& other, Part part) {
  const bool scalar = other.is_cpu() && other.dim() == 0;
  if (C10_LIKELY(!at::isIntegralType(other.scalar_type(), /*includeBool=*/true)) ||
      !at::isIntegralType(self.scalar_type(), /*includeBool=*/true) ||
      !(scalar || (is_on_device(other) && (self.device() == other.device() || (self.is_cpu() && self.dim() == 0))))) {
    return std::nullopt;
  }
  const at::ScalarType dtype = at::result_type(self, other);
  if (dtype == at::kBool) {
    return std::nullopt;
  }
  if (scalar) {
    if (!has_special(other.to(dtype))) {
      return std::nullopt;
    }
  } else {
    DeviceCall call(other);
    if (!has_special(call(other).to(dtype))) {
      return std::nullopt;
    }
  }
  const c10::Device device = scalar ? self.device() : other.device();
  const at::Tensor dividend = self.to(device, dtype);
  const at::Tensor divisor = other.to(device, dtype);
  const at::Tensor zero = divisor.eq(0);
  Special special;
  special.where = dtype == at::kByte ? zero : zero.logical_or(divisor.eq(-1));
  // In place: the layout of a result follows from that of its operands.
  special.divisor = other.to(device).clone().masked_fill_(special.where, 1);
  if (other.unsafeGetTensorImpl()->is_wrapped_number()) {
    special.divisor.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  at::Tensor by_zero = at::full({}, dtype == at::kByte ? 255 : -1, divisor.options());
  if (dtype == at::kLong) {
    const at::Tensor fits = dividend.ge(0).logical_and(dividend.lt(int64_t(1) << 32));
    by_zero = at::where(fits, at::full({}, int64_t(0xFFFFFFFF), divisor.options()), by_zero);
  }
  if (part == Part::Floored) {
    by_zero = by_zero.sub(dividend.lt(0).to(dtype));
  }
  const at::Tensor by_minus_one =
      part == Part::Remainder ? at::zeros({}, divisor.options()) : at::zeros_like(dividend).sub(dividend);
  special.values = at::where(zero, by_zero, by_minus_one);
  return special;
}

// Note [Quotients that overflow]
// Upstream's vectorised kernels of float and bfloat16 give NaN for a modulus whose quotient overflows float, and for a
// floored quotient, which is computed from it. CUDA's do not. In double precision the quotient fits, and the modulus is
// exact.

bool may_overflow(at::ScalarType dtype) { return dtype == at::kFloat || dtype == at::kBFloat16; }

template <class T>
bool any_nan(const T* data, int64_t count) {
  std::atomic<bool> found{false};
  at::parallel_for(0, count, int64_t{1} << 15, [&](int64_t begin, int64_t end) {
    int any = 0;
    for (int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<float>(data[i]);
      any |= static_cast<int>(value != value);
    }
    if (any != 0) {
      found.store(true, std::memory_order_relaxed);
    }
  });
  return found.load();
}

/// Whether a result that may_overflow has a NaN.
bool has_nan(const at::Tensor& result) {
  if (!may_overflow(result.scalar_type()) || !(is_on_device(result) || result.is_cpu()) ||
      result.layout() != at::kStrided) {
    return false;
  }
  const at::Tensor dense = result.contiguous();
  return dense.scalar_type() == at::kFloat ? any_nan(dense.const_data_ptr<float>(), dense.numel())
                                           : any_nan(dense.const_data_ptr<at::BFloat16>(), dense.numel());
}

/// Computes the NaN of `result` again, in double precision; what is NaN there too stays so.
template <class Op, class... Mode>
void repair(at::Tensor result, const at::Tensor& self, const at::Tensor& other, const Mode&... mode) {
  if (C10_UNLIKELY(has_nan(result))) {
    // A Python number is infinite where the common dtype does not hold it.
    const at::ScalarType common = at::result_type(self, other);
    const at::Tensor wide = Op::call(self.to(common).to(at::kDouble), other.to(common).to(at::kDouble), mode...);
    result.copy_(at::where(at::isnan(result), wide.to(result.scalar_type()), result));
  }
}

/// The operand as it is before the form writes, if the two share memory and the result may have to be repaired.
template <class Form>
decltype(auto) before(const Form& form, const at::Tensor& operand) {
  if constexpr (Form::writes) {
    const at::Tensor& out = form.target;
    return may_overflow(out.scalar_type()) && operand.is_alias_of(out) ? operand.clone() : operand;
  } else {
    return operand;
  }
}

using Mode = std::optional<c10::string_view>;

constexpr Part part_of(Part part) { return part; }
Part part_of(const Mode& mode, Part /*otherwise*/) { return *mode == "floor" ? Part::Floored : Part::Truncated; }

/// A division whose functional form is `Op`. Its part is `part`, or what the argument `mode` names.
template <class Op, Part part>
struct Division {
  template <class Form, class... Modes>
  static typename Form::Result call(const Form& form, const at::Tensor& self, const at::Tensor& other,
                                    const Modes&... mode) {
    if constexpr (sizeof...(Modes) != 0) {
      if (!(mode && ...)) {  // the quotient is no integer
        return form.kernel(self, other, mode...);
      }
    }
    if (part != Part::Remainder && is_cpu_number(other) && is_low(self.scalar_type())) {
      return by_number(form, self, other, mode...);
    }
    if (part_of(mode..., part) == Part::Floored && is_half(at::result_type(self, other))) {
      return of_halves(form, self, other, mode...);
    }
    const at::Tensor& given = before(form, self);
    const at::Tensor& divisor = before(form, other);
    const std::optional<Special> special = find_special(self, other, part_of(mode..., part));
    if (C10_UNLIKELY(special.has_value())) {
      form.check_elementwise(self, other);  // the kernel is not given `other` itself
    }
    typename Form::Result result = form.kernel(self, special ? special->divisor : other, mode...);
    if (C10_UNLIKELY(special.has_value())) {
      result.copy_(at::where(special->where, special->values.to(result.scalar_type()), result));
    }
    repair<Op>(result, given, divisor, mode...);
    return result;
  }

 private:
  /// CUDA's kernel has the modulus, and the quotient that follows from it, in float; upstream's CPU kernel rounds each
  /// of its steps, and is off by a unit now and then.
  template <class Form, class... Modes>
  static C10_NOINLINE typename Form::Result of_halves(const Form& form, const at::Tensor& self, const at::Tensor& other,
                                                      const Modes&... mode) {
    const auto fits = [](const at::Tensor& tensor, const at::Tensor& beside) {
      return tensor.layout() == at::kStrided &&
             (is_on_device(tensor) ? tensor.device() == beside.device() || is_cpu_number(beside)
                                   : is_cpu_number(tensor));
    };
    if (!fits(self, other) || !fits(other, self)) {
      return form.kernel(self, other, mode...);
    }
    form.check_elementwise(self, other);
    const at::ScalarType common = at::result_type(self, other);
    DeviceCall call(is_on_device(self) ? self : other);
    const auto wide = [&](const at::Tensor& tensor) {
      return (is_on_device(tensor) ? call(tensor) : tensor).to(common).to(at::kFloat);
    };
    const at::Tensor dividend = wide(self), divisor = wide(other);
    at::Tensor whole = Op::call(dividend, divisor, mode...);
    repair<Op>(whole, dividend, divisor, mode...);
    const at::Tensor quotient = call.result(whole.to(common));
    return form.takes(quotient) ? form.give(quotient) : form.kernel(self, other, mode...);
  }

  /// CUDA's kernels round neither the number nor the quotient before its integer part is taken. Truncated quotients of
  /// other low precision they round before, as upstream's CPU kernels do.
  template <class Form, class... Modes>
  static C10_NOINLINE typename Form::Result by_number(const Form& form, const at::Tensor& self, const at::Tensor& other,
                                                      const Modes&... mode) {
    const bool computed = at::result_type(self, other) == self.scalar_type() && !self.is_complex();
    at::Tensor quotient;
    if (computed) {
      quotient = in_wide_blocks(self, [&](const at::Tensor& block) {
        at::Tensor whole = Op::call(block, other, mode...);
        repair<Op>(whole, block, other, mode...);
        return whole;
      });
    }
    if (!quotient.defined() || !form.takes(quotient)) {
      return form.kernel(self, other, mode...);
    }
    form.check_elementwise(self, other);
    return form.give(quotient);
  }
};

/// A number modulo a tensor; the same kernel.
at::Tensor scalar_remainder(const at::Scalar& self, const at::Tensor& other) {
  using Op = at::_ops::remainder_Tensor;
  at::Tensor wrapped = c10::scalar_to_tensor(self);
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return Derived<Division<Op, Part::Remainder>, Op, spec_remainder_Tensor>::call(wrapped, other);
}

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/IntegerDivision.h"
