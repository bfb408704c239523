#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#if __has_include(<ATen/NamedTensorUtils.h>)
#include <ATen/NamedTensorUtils.h>
#define MACATORCH_NAMED_TENSORS 1
#else
#define MACATORCH_NAMED_TENSORS 0
#endif

namespace macatorch {

// Names of dimensions. Newer releases have none; whether this one does, its headers tell.

inline bool has_names([[maybe_unused]] const at::TensorBase& tensor) {
#if MACATORCH_NAMED_TENSORS
  return tensor.has_names();
#else
  return false;
#endif
}

/// Gives `to` the names of `from`, if it has any.
inline void carry_names([[maybe_unused]] c10::TensorImpl& to, [[maybe_unused]] const c10::TensorImpl& from) {
#if MACATORCH_NAMED_TENSORS
  if (C10_UNLIKELY(from.has_named_tensor_meta())) {
    to.set_named_tensor_meta(from.named_tensor_meta()->clone());
  }
#endif
}

}  // namespace macatorch
