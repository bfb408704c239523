#include "dispatch/LayoutRule.h"

#include <ATen/ATen.h>

#include <cstdlib>

namespace macatorch {

bool arrives_channels_last(int64_t dims) {
  // Read once: a process has one layout.
  static const bool nchw = std::getenv("PYTORCH_DEFAULT_NCHW") != nullptr;
  static const bool ndhwc = std::getenv("PYTORCH_DEFAULT_NDHWC") != nullptr;
  static const bool nlc = std::getenv("PYTORCH_DEFAULT_NLC") != nullptr;
  return (dims == 4 && !nchw) || (dims == 5 && ndhwc) || (dims == 3 && nlc);
}

std::string layout_hint(const at::Tensor& self) {
  const bool ours =
      arrives_channels_last(self.dim()) && (self.dim() == 4   ? self.is_contiguous(at::MemoryFormat::ChannelsLast)
                                            : self.dim() == 5 ? self.is_contiguous(at::MemoryFormat::ChannelsLast3d)
                                                              : self.transpose(1, 2).is_contiguous());
  if (!ours) {
    return "";
  }
  return c10::str(
      " The tensor has the channels-last strides ", self.strides(),
      ", in which tensors arrive on this device when they are moved there from the CPU; use .reshape(...), or set "
      "PYTORCH_DEFAULT_NCHW=1 to keep upstream's layout.");
}

}  // namespace macatorch
