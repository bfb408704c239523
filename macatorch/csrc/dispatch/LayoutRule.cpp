#include "dispatch/LayoutRule.h"

#include <ATen/ATen.h>
#include <ATen/FuncTorchTLS.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "alias/DeviceCall.h"
#include "graph/GraphCapture.h"
#include "memory/ThreadAllocator.h"

namespace macatorch {

bool arrives_channels_last(int64_t dims) {
  // Read once: a process has one layout.
  static const bool nchw = std::getenv("PYTORCH_DEFAULT_NCHW") != nullptr;
  static const bool ndhwc = std::getenv("PYTORCH_DEFAULT_NDHWC") != nullptr;
  static const bool nlc = std::getenv("PYTORCH_DEFAULT_NLC") != nullptr;
  return (dims == 4 && !nchw) || (dims == 5 && ndhwc) || (dims == 3 && nlc);
}

namespace {

/// No view tells: a view of such a tensor asks for the layout rule itself.
bool is_channels_last_1d(const at::Tensor& self) {
  const auto sizes = self.sizes();
  const std::array<int64_t, 3> wanted{sizes[1] * sizes[2], 1, sizes[1]};
  for (int64_t dim = 0; dim < 3; ++dim) {
    if (sizes[dim] != 1 && self.stride(dim) != wanted[dim]) {
      return false;
    }
  }
  return true;
}

/// Whether `tensor`, all of it, lies in the order of the rule and in no other.
bool is_whole(const at::Tensor& self) {
  if (self.layout() != at::kStrided || self.is_contiguous() || !arrives_channels_last(self.dim())) {
    return false;
  }
  return self.dim() == 4   ? self.is_contiguous(at::MemoryFormat::ChannelsLast)
         : self.dim() == 5 ? self.is_contiguous(at::MemoryFormat::ChannelsLast3d)
                           : is_channels_last_1d(self);
}

/// Of a part of a channels-last image, or of several: the strides of its dimensions (images,) channels, rows, columns
/// tell how many channels and columns the whole has. A dimension of size 1 tells nothing.
std::optional<at::DimVector> strides_of_part(const at::Tensor& self) {
  const size_t first = self.dim() == 4 ? 1 : 0;
  const auto sizes = self.sizes();
  const auto strides = self.strides();
  const int64_t pixel = strides[first + 2], row = strides[first + 1];
  if (strides[first] != 1 || sizes[first] < 2 || sizes[first + 1] < 2 || sizes[first + 2] < 2 || pixel < sizes[first] ||
      row % pixel != 0 || row / pixel < sizes[first + 2]) {
    return std::nullopt;
  }
  const int64_t columns = row / pixel;
  int64_t rows = sizes[first + 1];
  if (first == 1 && sizes[0] > 1) {
    if (strides[0] % row != 0 || strides[0] / row < rows) {
      return std::nullopt;
    }
    rows = strides[0] / row;
  }
  at::DimVector result;
  if (first == 1) {
    result.push_back(rows * columns * pixel);
  }
  result.push_back(rows * columns);
  result.push_back(columns);
  result.push_back(1);
  return result;
}

}  // namespace

std::optional<at::DimVector> upstream_strides(const at::Tensor& self) {
  if (is_whole(self)) {
    return c10::contiguous_strides(self.sizes());
  }
  if (self.layout() == at::kStrided && !self.is_contiguous() && arrives_channels_last(4) &&
      (self.dim() == 4 || self.dim() == 3)) {
    return strides_of_part(self);
  }
  return std::nullopt;
}

bool is_contiguous_upstream(const at::Tensor& self) {
  const std::optional<at::DimVector> strides = upstream_strides(self);
  return strides && *strides == c10::contiguous_strides(self.sizes());
}

std::string layout_hint(const at::Tensor& self) {
  if (!is_whole(self)) {
    return "";
  }
  return c10::str(
      " The tensor has the channels-last strides ", self.strides(),
      ", in which tensors arrive on this device when they are moved there from the CPU; use .reshape(...), or set "
      "PYTORCH_DEFAULT_NCHW=1 to keep upstream's layout.");
}

namespace {

/// Whether nobody can tell where the elements of `self` lie, but by the strides of `self`.
bool may_reorder(const at::Tensor& self) {
  if (!is_plain_cuda(*self.unsafeGetTensorImpl()) || !is_whole(self) || self.is_conj() || self.is_neg()) {
    return false;
  }
  // Memory of another process or library has a deleter of its own, and so has memory that a process was sent.
  const c10::DataPtr& data = self.storage().data_ptr();
  const bool allocators =
      is_device_owned(data) || data.get_deleter() == c10::cuda::CUDACachingAllocator::get()->raw_deleter();
  if (self.storage().use_count() != 1 || !allocators || graphs_were_captured.load() || in_launched_operator()) {
    return false;
  }
  // The tensors of functorch's levels keep the strides of those that they wrap.
  return at::functorch::functorchTLSAccessor() == nullptr || self.use_count() == 1;
}

void reorder(const at::Tensor& self) {
  DeviceCall call(self);
  const at::Tensor alias = call(self);
  const at::Tensor ordered = alias.contiguous();
  std::memcpy(alias.data_ptr(), ordered.const_data_ptr(), self.nbytes());
  self.unsafeGetTensorImpl()->set_sizes_and_strides(at::DimVector(self.sizes()), c10::contiguous_strides(self.sizes()),
                                                    self.storage_offset());
}

}  // namespace

bool reorder_in_place(at::TensorList tensors) {
  if (!std::all_of(tensors.begin(), tensors.end(), may_reorder)) {
    return false;
  }
  std::for_each(tensors.begin(), tensors.end(), reorder);
  return true;
}

}  // namespace macatorch
