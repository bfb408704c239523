#include <ATen/ATen.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/sub_ops.h>

#include "arguments/Device.h"
#include "dispatch/Precision.h"
#include "ops/Forms.h"
#include "ops/elementwise/LowNumbers.h"
#include "registered/Specs.h"

namespace macatorch {

// Sums, products and quotients of low precision. CUDA computes a + alpha * b in float and rounds once. Upstream's CPU
// kernel rounds alpha * b in the elements that do not fill a vector, and always a number that is given for b: both may
// overflow where the sum does not.
// A product or a quotient with a number on the CPU is computed in float, too. Upstream's CPU kernel rounds the number
// where it is the first operand. See Note [Numbers and low precision].
// A number on the device is an element like the others: CUDA rounds it to their dtype first. Upstream's CPU kernel
// takes it for a number on the CPU and does not.

namespace {

bool rounds_between(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (C10_LIKELY(!is_low(self.scalar_type()) && !is_low(other.scalar_type()))) {
    return false;
  }
  return (!alpha.equal(1) || is_not_held(self, other) || is_not_held(other, self)) &&
         is_low(at::result_type(self, other));
}

/// True if `number` is one on the device, of another dtype than the low-precision elements that it meets. A boolean is
/// left to the operator, which may refuse it.
bool is_device_number(const at::Tensor& number, const at::Tensor& elements) {
  return is_low(elements.scalar_type()) && C10_UNLIKELY(number.scalar_type() != elements.scalar_type()) &&
         number.scalar_type() != at::kBool && number.dim() == 0 && is_on_device(number) &&
         is_low(at::result_type(number, elements));
}

/// `number` as CUDA's kernels read it.
at::Tensor as_element(const at::Tensor& number, const at::Tensor& elements) {
  return is_device_number(number, elements) ? number.to(at::result_type(number, elements)) : number;
}

/// add and sub; `Op` is the functional form. What is seldom needed is not inlined: it would cost the other calls 3 %.
template <class Op>
struct Sum {
  template <class Form>
  static typename Form::Result call(Form form, const at::Tensor& self, const at::Tensor& other,
                                    const at::Scalar& alpha) {
    return C10_LIKELY(!rounds_between(self, other, alpha)) ? form.kernel(self, other, alpha)
                                                           : round_once(form, self, other, alpha);
  }

 private:
  template <class Form>
  static C10_NOINLINE typename Form::Result round_once(Form form, const at::Tensor& self, const at::Tensor& other,
                                                       const at::Scalar& alpha) {
    const at::Tensor sum = rounded_sum(self, other, alpha);
    if (!form.takes(sum)) {
      return form.kernel(self, other, alpha);
    }
    form.check_elementwise(self, other);
    return form.give(sum);
  }

  static at::Tensor rounded_sum(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
    const at::ScalarType dtype = at::result_type(self, other);
    if (is_cpu_number(other) && self.scalar_type() == dtype) {
      return in_wide_blocks(self, [&](const at::Tensor& block) { return Op::call(block, other, alpha); });
    }
    if (is_cpu_number(self) && other.scalar_type() == dtype) {
      return in_wide_blocks(other, [&](const at::Tensor& block) { return Op::call(self, block, alpha); });
    }
    return Op::call(widen(as_element(self, other)), widen(as_element(other, self)), alpha).to(dtype);
  }
};

/// div and mul; the factors of the latter's kernel may change places. `Op` is the functional form.
template <class Op>
struct Product {
  template <class Form>
  static typename Form::Result call(Form form, const at::Tensor& self, const at::Tensor& other) {
    if (!Form::in_place && C10_UNLIKELY(is_cpu_number(self)) && is_low(other.scalar_type())) {
      return of_number(form, self, other);
    }
    return C10_LIKELY(!is_device_number(other, self) && !is_device_number(self, other))
               ? form.kernel(self, other)
               : of_elements(form, self, other);
  }

 private:
  template <class Form>
  static C10_NOINLINE typename Form::Result of_number(Form form, const at::Tensor& self, const at::Tensor& other) {
    if (std::is_same_v<Op, at::_ops::mul_Tensor>) {
      return form.kernel(other, self);
    }
    if (is_held(self.item(), other.scalar_type()) || at::result_type(self, other) != other.scalar_type()) {
      return form.kernel(self, other);
    }
    const at::Tensor quotient = in_wide_blocks(other, [&](const at::Tensor& block) { return Op::call(self, block); });
    if (!form.takes(quotient)) {
      return form.kernel(self, other);
    }
    form.check_elementwise(self, other);
    return form.give(quotient);
  }

  template <class Form>
  static C10_NOINLINE typename Form::Result of_elements(Form form, const at::Tensor& self, const at::Tensor& other) {
    return form.kernel(as_element(self, other), as_element(other, self));
  }
};

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/Sums.h"
