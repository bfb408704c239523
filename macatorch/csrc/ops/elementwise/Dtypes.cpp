#include <ATen/ATen.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/histc_ops.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/trace_ops.h>

#include <optional>
#include <vector>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "arguments/Release.h"
#include "dispatch/Unboxed.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// Dtypes that CUDA's kernel takes and the CPU's does not.

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
  at::Tensor out = given.tensor("out");
  std::optional<c10::Device> common;
  c10::impl::check_and_update_common_device(common, self, spec.method, "self");
  c10::impl::check_and_update_common_device(common, out, spec.method, "out");
  const at::Tensor result =
      integer_histc(self, *given.integer("bins"), given["min"].toScalar(), given["max"].toScalar());
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

// Up to torch 2.4 the CPU's kernel that joins small tensors knows no 8-bit floats, and the one for large tensors does.
// Joining moves bytes alone, so that bytes are joined there.
constexpr bool kBytesAreJoined = !MACATORCH_TORCH_AT_LEAST(2, 5);

/// Tensors of one dtype of 8-bit floats as bytes; none if they are not.
std::vector<at::Tensor> bytes_of(const at::ITensorListRef& tensors) {
  std::vector<at::Tensor> bytes;
  if (tensors.size() == 0 || !at::isFloat8Type(tensors.front().scalar_type())) {
    return bytes;
  }
  const at::ScalarType dtype = tensors.front().scalar_type();
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() != dtype) {
      return {};
    }
    bytes.push_back(tensor.view(at::kByte));
  }
  return bytes;
}

at::Tensor cat(const at::ITensorListRef& tensors, int64_t dim) {
  if constexpr (kBytesAreJoined) {
    const std::vector<at::Tensor> bytes = bytes_of(tensors);
    if (!bytes.empty()) {
      return at::cat(bytes, dim).view(tensors.front().scalar_type());
    }
  }
  return Unboxed<at::_ops::cat, spec_cat>::call(tensors, dim);
}

at::Tensor& cat_out(const at::ITensorListRef& tensors, int64_t dim, at::Tensor& out) {
  if constexpr (kBytesAreJoined) {
    const std::vector<at::Tensor> bytes = bytes_of(tensors);
    if (!bytes.empty() && out.scalar_type() == tensors.front().scalar_type()) {
      at::Tensor joined = out.view(at::kByte);
      at::cat_out(joined, bytes, dim);
      if (joined.sizes() != out.sizes()) {
        // Both headers are over one storage, which has grown.
        out.as_strided_(joined.sizes(), joined.strides(), joined.storage_offset());
      }
      return out;
    }
  }
  return Unboxed<at::_ops::cat_out, spec_cat_out>::call(tensors, dim, out);
}

// Up to torch 2.4 the CPU's kernel that fills knows no 8-bit floats.
constexpr bool kBytesAreFilled = !MACATORCH_TORCH_AT_LEAST(2, 5);

template <class Float>
at::Scalar byte_of(const at::Scalar& number) {
  return static_cast<int64_t>(number.to<Float>().x);  // raises what CUDA does for a number out of range
}

at::Scalar byte_of(const at::Scalar& number, at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat8_e5m2: return byte_of<c10::Float8_e5m2>(number);
    case at::kFloat8_e4m3fn: return byte_of<c10::Float8_e4m3fn>(number);
#if MACATORCH_TORCH_AT_LEAST(2, 2)
    case at::kFloat8_e5m2fnuz: return byte_of<c10::Float8_e5m2fnuz>(number);
    case at::kFloat8_e4m3fnuz: return byte_of<c10::Float8_e4m3fnuz>(number);
#endif
    default: TORCH_INTERNAL_ASSERT(false, "no 8-bit float: ", dtype);
  }
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& number) {
  if (kBytesAreFilled && at::isFloat8Type(self.scalar_type())) {
    self.view(at::kByte).fill_(byte_of(number, self.scalar_type()));
    return self;
  }
  return Unboxed<at::_ops::fill__Scalar, spec_fill__Scalar>::call(self, number);
}

// scatter of 8-bit floats moves bytes as well, but for a number.
constexpr bool kBytesAreScattered = MACATORCH_TORCH_AT_LEAST(2, 15);

at::Tensor bytes_of(const at::Tensor& source, at::ScalarType /*dtype*/) { return source.view(at::kByte); }
at::Scalar bytes_of(const at::Scalar& number, at::ScalarType dtype) {
  return at::scalar_tensor(number, at::TensorOptions().dtype(dtype)).view(at::kByte).item();
}

/// Whether CUDA's kernel takes the source for a tensor of the dtype.
bool has_dtype(const at::Tensor& source, at::ScalarType dtype) { return source.scalar_type() == dtype; }
bool has_dtype(const at::Scalar& /*number*/, at::ScalarType /*dtype*/) { return true; }

template <class Op>
struct Scatter {
  template <class Form, class Source>
  static typename Form::Result call(const Form& form, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                                    const Source& source) {
    const at::ScalarType dtype = self.scalar_type();
    if (C10_LIKELY(!kBytesAreScattered || !at::isFloat8Type(dtype) || !has_dtype(source, dtype))) {
      return form.kernel(self, dim, index, source);
    }
    form.check_out(dtype);
    return form.give(Op::call(self.view(at::kByte), dim, index, bytes_of(source, dtype)).view(dtype));
  }
};

}  // namespace
}  // namespace macatorch

#include "registered/elementwise/Dtypes.h"
