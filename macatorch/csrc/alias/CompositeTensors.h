#pragma once

#include <vector>

#include "alias/CpuAliases.h"

namespace macatorch {

// Note [Sparse, nested and quantised tensors]
// A sparse tensor is a few dense ones (indices and values), a nested one a buffer and sizes on the host. Their CPU
// aliases are built from the aliases of those members, and results are taken apart in the same way. A quantised tensor
// has an alias of its own kind over the same bytes, with the quantiser's scales and zero points as aliases.

/// CPU aliases of tensors of any layout for one operator call; dense members go through a CpuAliases.
class AnyAliases {
 public:
  /// CPU alias of a CUDA tensor; tensors elsewhere, and layouts that have no CPU form, as they are.
  at::Tensor bind(const at::Tensor& tensor, bool write);

  /// Carries what the kernel did to written tensors over to the device.
  void write_back(c10::Device device);

  /// A result of the kernel on `device`, whatever its layout.
  at::Tensor to_device(const at::Tensor& result, c10::Device device) const;

 private:
  at::Tensor quantized_alias(const at::Tensor& tensor, bool write);
  at::Tensor quantized_result(const at::Tensor& result, c10::Device device) const;

  struct Composite {
    at::Tensor alias;
    at::Tensor device;
    bool write;
    std::vector<at::Tensor> members;  // their aliases
  };
  // Aliases only borrow. The caller's stack may hold the last reference to an argument, and the members of a composite
  // are made for the asking: both are kept until the aliases are gone (members are destroyed in reverse order).
  c10::SmallVector<at::Tensor, 8> kept_;
  CpuAliases dense_;
  std::vector<Composite> composites_;
};

}  // namespace macatorch
