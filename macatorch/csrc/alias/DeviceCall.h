#pragma once

#include <ATen/ATen.h>

#include "alias/CpuAliases.h"
#include "alias/DeviceScope.h"
#include "arguments/Names.h"

namespace macatorch {

/// One call on the device: puts the thread there and hands out CPU aliases of the device's tensors.
class DeviceCall {
 public:
  explicit DeviceCall(c10::Device device) : device_(device), scope_(device.index()) {}
  /// On the device of `lead`.
  explicit DeviceCall(const at::Tensor& lead) : DeviceCall(lead.device()) {}

  /// CPU alias of a tensor on this device; an undefined tensor as it is. A tensor elsewhere raises upstream's error.
  at::Tensor operator()(const at::Tensor& tensor, bool write = false) {
    TORCH_CHECK(!tensor.defined() || tensor.device() == device_,
                "Expected all tensors to be on the same device, but found at least two devices, ", device_, " and ",
                tensor.device(), "!");
    return alias(tensor, write);
  }
  /// The same without the check.
  at::Tensor alias(const at::Tensor& tensor, bool write = false) {
    return tensor.defined() && is_plain_cuda(*tensor.unsafeGetTensorImpl()) ? aliases_.bind(tensor, write) : tensor;
  }
  std::optional<at::Tensor> operator()(const std::optional<at::Tensor>& tensor, bool write = false) {
    return tensor && tensor->defined() ? std::make_optional((*this)(*tensor, write)) : std::nullopt;
  }

  /// A result on the device.
  at::Tensor result(at::Tensor tensor) const { return aliases_.to_device(std::move(tensor), device_); }
  template <class... T>
  std::tuple<T...> results(T... tensor) const {
    return std::tuple<T...>(result(std::move(tensor))...);
  }
  void write_back() { aliases_.write_back(device_); }

  c10::Device device() const { return device_; }

 private:
  c10::Device device_;
  DeviceScope scope_;
  CpuAliases aliases_;
};

/// On the device, strided, and without names, which upstream's kernels carry on.
inline bool is_bare(const at::Tensor& tensor) {
  return is_plain_cuda(*tensor.unsafeGetTensorImpl()) && !has_names(tensor);
}

}  // namespace macatorch
