#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

namespace macatorch {

/// Tensors over the same memory as the arguments of one operator, without a share in it. What was one tensor or one
/// storage is one again.
class Borrowed {
 public:
  /// A composite tensor is what it was when it was first asked for: an operator may give it other members meanwhile.
  at::Tensor operator()(const at::Tensor& tensor);

  /// A composite tensor as it is now.
  at::Tensor as_it_is(const at::Tensor& tensor);

 private:
  at::Tensor plain(const at::Tensor& tensor);

  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> storages_;
  std::vector<at::Tensor> members_;  // made for the asking: their addresses are keys
};

}  // namespace macatorch
