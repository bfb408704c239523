#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>

namespace macatorch {

/// Tensors over the same memory as the arguments of one operator, without a share in it. What was one tensor or one
/// storage is one again.
class Borrowed {
 public:
  at::Tensor operator()(const at::Tensor& tensor);

 private:
  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> storages_;
};

}  // namespace macatorch
