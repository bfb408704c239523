#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>

#include "alias/DeviceCall.h"
#include "dispatch/Unboxed.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// CUDA's kernels take a low-precision input to a float result (half_to_float), and a float gradient back to a
// low-precision one, in one step; the CPU's refuse the one and misread the other. Both are computed in float here.

bool is_low(at::ScalarType dtype) { return dtype == at::kHalf || dtype == at::kBFloat16; }

template <class Op, const OperatorSpec& spec>
at::Tensor forward(const at::Tensor& self, int64_t dim, bool half_to_float) {
  if (C10_LIKELY(!half_to_float)) {
    return Unboxed<Op, spec>::call(self, dim, false);
  }
  TORCH_CHECK(is_low(self.scalar_type()), "conversion is supported for Half type only");
  DeviceCall call(self);
  return call.result(Op::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), call(self).to(at::kFloat), dim, false));
}

template <class Op, class OutOp, const OperatorSpec& spec, const OperatorSpec& out_spec>
at::Tensor& forward_out(const at::Tensor& self, int64_t dim, bool half_to_float, at::Tensor& out) {
  if (C10_LIKELY(!half_to_float)) {
    return Unboxed<OutOp, out_spec>::call(self, dim, false, out);
  }
  TORCH_CHECK(out.scalar_type() == at::kFloat, "Expected out tensor to have dtype float, but got ", out.dtype(),
              " instead");
  const at::Tensor result = forward<Op, spec>(self, dim, true);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

template <class Op, const OperatorSpec& spec>
at::Tensor backward(const at::Tensor& grad_output, const at::Tensor& output, int64_t dim, at::ScalarType input_dtype) {
  if (C10_LIKELY(grad_output.scalar_type() == input_dtype)) {
    return Unboxed<Op, spec>::call(grad_output, output, dim, input_dtype);
  }
  TORCH_CHECK(grad_output.scalar_type() == at::kFloat && is_low(input_dtype),
              "expected input and grad types to match, or input to be at::Half and grad to be at::Float");
  DeviceCall call(grad_output);
  const at::Tensor grad = Op::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), call(grad_output),
                                         call(output).to(at::kFloat), dim, at::kFloat);
  return call.result(grad.to(input_dtype));
}

template <class Op, class OutOp, const OperatorSpec& spec, const OperatorSpec& out_spec>
at::Tensor& backward_out(const at::Tensor& grad_output, const at::Tensor& output, int64_t dim,
                         at::ScalarType input_dtype, at::Tensor& grad_input) {
  if (C10_LIKELY(grad_output.scalar_type() == input_dtype)) {
    return Unboxed<OutOp, out_spec>::call(grad_output, output, dim, input_dtype, grad_input);
  }
  TORCH_CHECK(grad_input.scalar_type() == input_dtype, "Expected out tensor to have dtype ", input_dtype, ", but got ",
              grad_input.dtype(), " instead");
  const at::Tensor result = backward<Op, spec>(grad_output, output, dim, input_dtype);
  at::native::resize_output(grad_input, result.sizes());
  return grad_input.copy_(result);
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/Softmax.h"
