#pragma once

#include <torch/library.h>

#include <string>

namespace macatorch {

// Note [Layout on the way to the device]
// The device works best on channels-last tensors, so a strided, contiguous CPU tensor of 4 dimensions with more than one
// channel that moves to the device arrives as torch.channels_last, unless the caller names a memory format or
// PYTORCH_DEFAULT_NCHW is set. PYTORCH_DEFAULT_NDHWC and PYTORCH_DEFAULT_NLC turn the same on for 5 and 3 dimensions.

/// copy_, and the move from the CPU to the device.
void register_copies(torch::Library& cuda);

/// Copies of quantised tensors.
void register_quantized();

/// Why a tensor that looks contiguous is not, in words: the layout rule; "" if that is not the reason.
std::string layout_hint(const at::Tensor& tensor);

/// view, whose error says why strides are not what the program expects.
void register_views(torch::Library& cuda);

}  // namespace macatorch
