#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/histc_ops.h>
#include <ATen/ops/trace_ops.h>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "dispatch/Unboxed.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// Integers and booleans that CUDA's kernel takes and the CPU's does not.

bool is_integer(const at::Tensor& tensor) { return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false); }

/// A bound as CUDA's kernel reads it: a whole number, which the input's dtype need not hold.
at::Scalar whole(const at::Scalar& bound) { return bound.to<int64_t>(); }

/// Quotients of integers below 2^53 are the same in double precision.
at::Tensor integer_histc(const at::Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max) {
  const at::ScalarType dtype = self.scalar_type();
  DeviceCall call(self);
  const at::Tensor wide = call(self).to(at::kDouble);
  return call.result(
      at::_ops::histc::redispatch(c10::DispatchKeySet(kHostKey), wide, bins, whole(min), whole(max)).to(dtype));
}

/// histc and its out= form; what else there is to them (use_deterministic_algorithms) concerns floating dtypes alone.
template <const OperatorSpec& spec>
void histc(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self");
  if (!is_integer(self)) {
    call_boxed(spec, op, stack);
    return;
  }
  const at::Tensor result =
      integer_histc(self, *given.integer("bins"), given["min"].toScalar(), given["max"].toScalar());
  at::Tensor out = given.tensor("out");
  if (!out.defined()) {
    given.give(result);
    return;
  }
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "Expected out tensor to have dtype ", self.dtype(), ", but got ",
              out.dtype(), " instead");
  at::native::resize_output(out, result.sizes());
  given.give(out.copy_(result));
}

at::Tensor trace(const at::Tensor& self) {
  if (self.scalar_type() != at::kBool) {
    return Unboxed<at::_ops::trace, spec_trace>::call(self);
  }
  TORCH_CHECK(self.dim() == 2, "expected a matrix");
  return self.diagonal().sum();
}

at::Tensor& abs_out(const at::Tensor& self, at::Tensor& out) {
  return self.scalar_type() == at::kBool ? at::logical_or_out(out, self, self)
                                         : Unboxed<at::_ops::abs_out, spec_abs_out>::call(self, out);
}

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/Dtypes.h"
