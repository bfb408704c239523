#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/sub_ops.h>

#include <cmath>
#include <limits>

#include "alias/DeviceCall.h"
#include "dispatch/Unboxed.h"
#include "registered/Specs.h"

namespace macatorch {

// a + alpha * b of halves, complex halves and bfloat16. CUDA computes it in float and rounds once; upstream's CPU kernel rounds
// alpha * b in the elements that do not fill a vector, and a number given for b always: both may overflow where the sum does
// not. A product with a number on the CPU is computed in float, too; upstream's CPU kernel rounds the number where it is the
// first factor. A number on the device is an element like the others: CUDA rounds it to their dtype first, upstream's CPU
// kernel, which takes it for one on the CPU, does not.

namespace {

constexpr bool is_low(at::ScalarType dtype) { return (kLowPrecision & dtype_bit(dtype)) != 0; }

/// A number whose rounding to half is an infinity.
bool overflows(const at::Tensor& number) {
  if (!number.is_cpu() || number.dim() != 0 || number.is_complex()) {
    return false;
  }
  const double value = std::abs(number.item<double>());
  return std::isfinite(value) && value > std::numeric_limits<at::Half>::max();
}

bool rounds_between(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (C10_LIKELY(!is_low(self.scalar_type()) && !is_low(other.scalar_type()))) {
    return false;
  }
  return (!alpha.equal(1) || overflows(self) || overflows(other)) && is_low(at::result_type(self, other));
}

at::Tensor widened(const at::Tensor& tensor) {
  const at::ScalarType dtype = tensor.scalar_type();
  return is_low(dtype) ? tensor.to(dtype == at::kComplexHalf ? at::kComplexFloat : at::kFloat) : tensor;
}

/// True if `number` is one on the device, of another dtype than the low-precision elements that it meets. A boolean is
/// left to the operator, which may refuse it.
bool is_device_number(const at::Tensor& number, const at::Tensor& elements) {
  return is_low(elements.scalar_type()) && C10_UNLIKELY(number.scalar_type() != elements.scalar_type()) &&
         number.scalar_type() != at::kBool && number.dim() == 0 && number.is_cuda() &&
         is_low(at::result_type(number, elements));
}

/// `number` as CUDA's kernels read it.
at::Tensor as_element(const at::Tensor& number, const at::Tensor& elements) {
  return is_device_number(number, elements) ? number.to(at::result_type(number, elements)) : number;
}

at::Tensor wide_sum(at::Tensor (*add)(const at::Tensor&, const at::Tensor&, const at::Scalar&), const at::Tensor& self,
                    const at::Tensor& other, const at::Scalar& alpha) {
  return add(widened(as_element(self, other)), widened(as_element(other, self)), alpha);
}

/// What every elementwise operator asks of the tensor that it writes to.
at::Tensor& write(at::Tensor& target, const at::Tensor& values, const at::Tensor& self, const at::Tensor& other) {
  at::assert_no_internal_overlap(target);
  for (const at::Tensor& input : {self, other}) {
    at::assert_no_partial_overlap(target, input);
  }
  return target.copy_(values);
}

template <class Op, const OperatorSpec& spec>
at::Tensor sum(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (C10_LIKELY(!rounds_between(self, other, alpha))) {
    return Unboxed<Op, spec>::call(self, other, alpha);
  }
  return wide_sum(&Op::call, self, other, alpha).to(at::result_type(self, other));
}

template <class Op, const OperatorSpec& spec, class Functional>
at::Tensor& in_place(at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (C10_UNLIKELY(rounds_between(self, other, alpha)) &&
      at::canCast(at::result_type(self, other), self.scalar_type())) {
    const at::Tensor wide = wide_sum(&Functional::call, self, other, alpha);
    if (wide.sizes() == self.sizes() && is_low(self.scalar_type())) {
      return write(self, wide, self, other);
    }
  }
  return Unboxed<Op, spec>::call(self, other, alpha);
}

template <class Op, const OperatorSpec& spec, class Functional>
at::Tensor& to_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  if (C10_UNLIKELY(rounds_between(self, other, alpha)) &&
      at::canCast(at::result_type(self, other), out.scalar_type())) {
    const at::Tensor wide = wide_sum(&Functional::call, self, other, alpha);
    if (wide.device() == out.device()) {
      check_broadcast_into_operand(out, self, other);
      at::native::resize_output(out, wide.sizes());
      return write(out, wide.to(at::result_type(self, other)), self, other);
    }
  }
  return Unboxed<Op, spec>::call(self, other, alpha, out);
}

bool begins_with_number(const at::Tensor& self, const at::Tensor& other) {
  return C10_UNLIKELY(self.is_cpu()) && self.dim() == 0 && is_low(other.scalar_type());
}

/// A product or a quotient.
template <class Op, const OperatorSpec& spec>
at::Tensor scaled(const at::Tensor& self, const at::Tensor& other) {
  using Kernel = Unboxed<Op, spec>;
  if (C10_UNLIKELY(is_device_number(other, self))) {
    return Kernel::call(self, as_element(other, self));
  }
  return C10_UNLIKELY(is_device_number(self, other)) ? Kernel::call(as_element(self, other), other)
                                                     : Kernel::call(self, other);
}
template <class Op, const OperatorSpec& spec>
at::Tensor& scaled_in_place(at::Tensor& self, const at::Tensor& other) {
  using Kernel = Unboxed<Op, spec>;
  return C10_UNLIKELY(is_device_number(other, self)) ? Kernel::call(self, as_element(other, self))
                                                     : Kernel::call(self, other);
}
template <class Op, const OperatorSpec& spec>
at::Tensor& scaled_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  using Kernel = Unboxed<Op, spec>;
  if (C10_UNLIKELY(is_device_number(other, self))) {
    return Kernel::call(self, as_element(other, self), out);
  }
  return C10_UNLIKELY(is_device_number(self, other)) ? Kernel::call(as_element(self, other), other, out)
                                                     : Kernel::call(self, other, out);
}

at::Tensor product(const at::Tensor& self, const at::Tensor& other) {
  using Mul = at::_ops::mul_Tensor;
  return begins_with_number(self, other) ? scaled<Mul, spec_mul_Tensor>(other, self)
                                         : scaled<Mul, spec_mul_Tensor>(self, other);
}
at::Tensor& product_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  using Mul = at::_ops::mul_out;
  return begins_with_number(self, other) ? scaled_out<Mul, spec_mul_out>(other, self, out)
                                         : scaled_out<Mul, spec_mul_out>(self, other, out);
}

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/Sums.h"
