#include "graph/Borrowed.h"

#include <utility>

#include "arguments/Device.h"

namespace macatorch {

at::Tensor Borrowed::operator()(const at::Tensor& tensor) {
  const auto found = tensors_.find(tensor.unsafeGetTensorImpl());
  if (found != tensors_.end()) {
    return found->second;
  }
  const c10::Storage& storage = tensor.storage();
  auto entry = storages_.find(storage.unsafeGetStorageImpl());
  if (entry == storages_.end()) {
    c10::DataPtr data(const_cast<void*>(storage.data()), tensor.device());
    entry = storages_
                .emplace(storage.unsafeGetStorageImpl(),
                         c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data)))
                .first;
  }
  at::Tensor borrowed = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(entry->second),
                                                                 c10::DispatchKeySet(kDeviceKey), tensor.dtype());
  borrowed.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  borrowed._set_conj(tensor.is_conj());
  borrowed._set_neg(tensor.is_neg());
  return tensors_.emplace(tensor.unsafeGetTensorImpl(), std::move(borrowed)).first->second;
}

}  // namespace macatorch
