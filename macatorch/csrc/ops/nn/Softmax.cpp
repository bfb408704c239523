#include <ATen/ATen.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>

#include <type_traits>

#include "alias/DeviceCall.h"
#include "arguments/Release.h"
#include "dispatch/Precision.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// CUDA's kernels take a low-precision input to a float result in one step (half_to_float), and a float gradient back to
// a low-precision one. The CPU's kernels refuse the first and misread the second, so both are computed in float here.

// The CPU's kernels add the terms one by one in float where they do not lie side by side. Of a million terms that is
// off by 3e-5, of four million by 3e-4; CUDA adds up in parts. So these are computed in double, and rounded once.
constexpr int64_t kExactTerms = 32768;

bool has_many_terms(const at::Tensor& self, int64_t dim) {
  if (C10_LIKELY(self.numel() <= kExactTerms) || self.scalar_type() == at::kDouble || !self.is_floating_point()) {
    return false;
  }
  const int64_t dims = self.dim();
  // What is out of range is for the kernel to say.
  return dim >= -dims && dim < dims && self.size(dim) > kExactTerms;
}

// The CPU's kernels keep some of their steps in low precision: the logarithm its largest number and the sum (220 units
// of the last place off beside a large term), the softmax its terms where they do not lie side by side, and both
// gradients theirs where they do. CUDA's keep them in float, and so it is computed here.
bool lie_side_by_side(const at::Tensor& tensor, int64_t dim) { return dim == -1 || dim == tensor.dim() - 1; }

/// Up to torch 2.2 the CPU's kernel refuses float16 where its terms do not lie side by side.
constexpr bool kGradientsInRowsTakeHalves = MACATORCH_TORCH_AT_LEAST(2, 4);

template <class Op>
bool loses_precision(const at::Tensor& self, int64_t dim) {
  return is_half(self.scalar_type()) && (std::is_same_v<Op, at::_ops::_log_softmax> || !lie_side_by_side(self, dim));
}

template <class Op>
struct Forward {
  template <class Form>
  static typename Form::Result call(const Form& form, const at::Tensor& self, int64_t dim, bool half_to_float) {
    if (C10_LIKELY(!half_to_float)) {
      const bool many = has_many_terms(self, dim);
      if (C10_LIKELY(!many && !loses_precision<Op>(self, dim))) {
        return form.kernel(self, dim, false);
      }
      form.check_out(self.scalar_type());
      DeviceCall call(self);
      if (!many) {
        return form.give(call.result(Op::call(widen(call(self)), dim, false).to(self.scalar_type())));
      }
      return form.give(call.result(Op::call(call(self).to(at::kDouble), dim, false).to(self.scalar_type())));
    }
    TORCH_CHECK(is_half(self.scalar_type()), "conversion is supported for Half type only");
    form.check_out(at::kFloat);
    DeviceCall call(self);
    return form.give(call.result(Op::call(widen(call(self)), dim, false)));
  }
};

template <class Op>
struct Backward {
  template <class Form>
  static typename Form::Result call(const Form& form, const at::Tensor& grad_output, const at::Tensor& output,
                                    int64_t dim, at::ScalarType input_dtype) {
    if (C10_LIKELY(grad_output.scalar_type() == input_dtype)) {
      const bool many = has_many_terms(output, dim);
      const bool loses = is_half(input_dtype) && (lie_side_by_side(output, dim) || !kGradientsInRowsTakeHalves);
      if (C10_LIKELY(!(many || loses) || grad_output.scalar_type() != output.scalar_type())) {
        return form.kernel(grad_output, output, dim, input_dtype);
      }
      form.check_out(input_dtype);
      DeviceCall call(grad_output);
      const at::ScalarType wide_dtype = many ? at::kDouble : at::kFloat;
      const at::Tensor wide_grad = call(grad_output).to(wide_dtype);
      const at::Tensor wide = Op::call(wide_grad, call(output).to(wide_dtype), dim, wide_dtype);
      return form.give(call.result(wide.to(input_dtype)));
    }
    TORCH_CHECK(grad_output.scalar_type() == at::kFloat && is_half(input_dtype),
                "expected input and grad types to match, or input to be at::Half and grad to be at::Float");
    form.check_out(input_dtype);
    DeviceCall call(grad_output);
    const at::Tensor grad = Op::call(call(grad_output), call(output).to(at::kFloat), dim, at::kFloat);
    return form.give(call.result(grad.to(input_dtype)));
  }
};

}  // namespace
}  // namespace macatorch

#include "registered/nn/Softmax.h"
