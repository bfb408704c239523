#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace macatorch {

// Note [Layout on the way to the device]
// The device works best on channels-last tensors, so a strided, contiguous CPU tensor of 4 dimensions with more than one
// channel that moves to the device arrives as torch.channels_last, unless the caller names a memory format or
// PYTORCH_DEFAULT_NCHW is set. PYTORCH_DEFAULT_NDHWC and PYTORCH_DEFAULT_NLC turn the same on for 5 and 3 dimensions.

/// Whether tensors of so many dimensions arrive channels-last.
bool arrives_channels_last(int64_t dims);

/// Why a tensor that looks contiguous is not, in words: the layout rule; "" if that is not the reason.
std::string layout_hint(const at::Tensor& tensor);

}  // namespace macatorch
