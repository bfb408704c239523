#pragma once

#include <torch/library.h>

namespace macatorch {

/// copy_, and the move from the CPU to the device.
void register_copies(torch::Library& cuda);

/// Copies of quantised tensors.
void register_quantized();

/// view, whose error says why strides are not what the program expects.
void register_views(torch::Library& cuda);

}  // namespace macatorch
