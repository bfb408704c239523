#include <ATen/ATen.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_native.h>

#include <c10/util/strides.h>

#include <algorithm>

#include "alias/DeviceCall.h"
#include "alias/ViewCopies.h"
#include "dispatch/LayoutRule.h"
#include "fast/LayoutCopy.h"
#include "graph/GraphCapture.h"
#include "registered/Specs.h"

// What upstream's layout allows and the strides of the layout rule do not: Note [Layout on the way to the device].

namespace macatorch {
namespace {

/// `self` contiguous: itself, its storage reordered in place, or, where somebody else holds that, a copy which no write
/// may come to. See Note [Views that are copies].
at::Tensor in_upstream_order(const at::Tensor& self) {
  if (reorder_in_place(self)) {
    return self;
  }
  at::Tensor copy;
  {
    DeviceCall call(self);
    copy = call.result(in_format(call(self), at::MemoryFormat::Contiguous));
  }
  if (!in_launched_operator()) {  // a graph's results are where its capture had them, which is guarded already
    remember_view_copy(self.storage(), copy.storage());
    TORCH_WARN_ONCE("a view of a tensor of shape ", self.sizes(), " with the channels-last strides ", self.strides(),
                    " is a copy here, since somebody else holds its memory (autograd, say): images arrive in "
                    "channels-last on this device. Values are right, and a write to either side raises an error. "
                    ".reshape(...) copies without it; PYTORCH_DEFAULT_NCHW=1 keeps upstream's layout.");
  }
  return copy;
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) {
  if (C10_LIKELY(self.is_contiguous())) {
    return at::native::view(self, size);
  }
  const at::DimVector wanted = at::infer_size_dv(size, self.numel());
  if (at::detail::computeStride(self.sizes(), self.strides(), wanted).has_value()) {
    return at::native::view(self, size);
  }
  const std::optional<at::DimVector> strides = upstream_strides(self);
  if (!strides || !at::detail::computeStride(self.sizes(), *strides, wanted).has_value()) {
    return at::native::view(self, size);  // upstream's error
  }
  return at::native::view(in_upstream_order(self), size);
}

/// Elements of another size, and pairs as complex numbers, need a last dimension whose elements lie side by side.
bool lacks_dense_rows(const at::Tensor& self) {
  return self.dim() > 0 && self.stride(-1) != 1 && upstream_strides(self).has_value();
}

at::Tensor view_dtype(const at::Tensor& self, at::ScalarType dtype) {
  const bool resizes = c10::elementSize(dtype) != static_cast<size_t>(self.element_size());
  return at::native::view_dtype(resizes && lacks_dense_rows(self) ? in_upstream_order(self) : self, dtype);
}

at::Tensor view_as_complex(const at::Tensor& self) {
  return at::native::view_as_complex(lacks_dense_rows(self) && self.size(-1) == 2 ? in_upstream_order(self) : self);
}

/// A size for the same memory: its elements are those of upstream's layout, in their order.
const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  if (C10_UNLIKELY(!self.is_contiguous()) && self.sizes() != size && !layout_hint(self).empty() &&
      !reorder_in_place(self)) {
    TORCH_WARN_ONCE("resize_ shows the elements of a tensor of shape ", self.sizes(), " in the order of its memory.",
                    layout_hint(self));
  }
  return at::native::resize_cuda_(self, size, format);
}

/// Strides that a program has worked out for a contiguous tensor of this shape, without asking the tensor for its own.
bool assumes_contiguous(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  const at::DimVector contiguous = c10::contiguous_strides(self.sizes());
  const auto has = [](at::IntArrayRef strides, int64_t one) {
    return std::find(strides.begin(), strides.end(), one) != strides.end();
  };
  bool own = true;
  for (size_t i = 0; i < size.size() && i < stride.size(); ++i) {
    if (size[i] > 1 && stride[i] != 0) {
      if (!has(contiguous, stride[i])) {
        return false;
      }
      own &= has(self.strides(), stride[i]);
    }
  }
  return !own;
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<int64_t> storage_offset) {
  if (C10_UNLIKELY(!self.is_contiguous()) && !layout_hint(self).empty() && assumes_contiguous(self, size, stride)) {
    TORCH_WARN_ONCE("as_strided with the strides ", stride, " of a tensor of shape ", self.sizes(),
                    " reads it in the order of its memory.", layout_hint(self));
  }
  return at::native::as_strided_tensorimpl(self, size, stride, storage_offset);
}

}  // namespace
}  // namespace macatorch

#include "registered/copy/Views.h"
