#include "graph/Borrowed.h"

#include <utility>

#include "arguments/Device.h"
#include "graph/CompositeMembers.h"

namespace macatorch {

at::Tensor Borrowed::operator()(const at::Tensor& tensor) {
  const auto found = tensors_.find(tensor.unsafeGetTensorImpl());
  if (found != tensors_.end()) {
    return found->second;
  }
  return tensors_.emplace(tensor.unsafeGetTensorImpl(), is_composite(tensor) ? as_it_is(tensor) : plain(tensor))
      .first->second;
}

at::Tensor Borrowed::as_it_is(const at::Tensor& tensor) {
  std::vector<at::Tensor> borrowed;
  for (const at::Tensor& member : members_of(tensor)) {
    members_.push_back(member);
    borrowed.push_back(is_on_device(member) ? (*this)(member) : member);
  }
  return with_members(tensor, borrowed);
}

at::Tensor Borrowed::plain(const at::Tensor& tensor) {
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
  return borrowed;
}

}  // namespace macatorch
