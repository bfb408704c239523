#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/strides.h>

#include <vector>

namespace macatorch {

/// The same elements, with the strides that their order has where no dimension is of size 1. Such a dimension may have
/// any stride (a view of one image or row, say), for which upstream's CPU kernels are not ready: batch norm's backward
/// takes input and gradient in different orders, and oneDNN reads the weights of groups in a wrong one.
inline at::Tensor plain_strides(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided) {
    return tensor;
  }
  const auto sizes = tensor.sizes();
  const auto with = [&](at::IntArrayRef strides) {
    return tensor.strides() == strides ? tensor : tensor.as_strided(sizes, strides);
  };
  // Of two orders that fit, the one that the strides suggest.
  const bool suggested = tensor.suggest_memory_format() != at::MemoryFormat::Contiguous;
  if (!suggested && tensor.is_contiguous()) {
    return with(c10::contiguous_strides(sizes));
  }
  if (sizes.size() == 4 && tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) {
    return with(c10::get_channels_last_strides_2d(sizes));
  }
  if (sizes.size() == 5 && tensor.is_contiguous(at::MemoryFormat::ChannelsLast3d)) {
    return with(c10::get_channels_last_strides_3d(sizes));
  }
  return tensor;
}

/// The same elements in contiguous order, also by the strides of dimensions of size 1.
inline at::Tensor in_rows(const at::Tensor& tensor) {
  return tensor.is_contiguous() ? tensor.as_strided(tensor.sizes(), c10::contiguous_strides(tensor.sizes()))
                                : tensor.contiguous();
}

}  // namespace macatorch
