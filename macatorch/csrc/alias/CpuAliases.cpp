#include "alias/CpuAliases.h"

#include <ATen/ops/_efficientzerotensor.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstring>
#include <vector>

#include "alias/ViewCopies.h"
#include "arguments/Device.h"
#include "arguments/Names.h"
#include "arguments/Release.h"
#include "graph/Work.h"

namespace macatorch {

using c10::DataPtr;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::StorageImpl;
using c10::TensorImpl;

/// A TensorImpl whose protected fields this file may set; it adds no state, so any TensorImpl can be seen as one.
class CpuAlias final : public TensorImpl {
 public:
  CpuAlias(c10::Storage&& storage, caffe2::TypeMeta dtype)
      : TensorImpl(std::move(storage), DispatchKeySet(kHostKey), dtype) {}

  static CpuAlias& of(TensorImpl& tensor) { return static_cast<CpuAlias&>(tensor); }
  static const CpuAlias& of(const TensorImpl& tensor) { return static_cast<const CpuAlias&>(tensor); }

  /// Everything but the storage: sizes, strides, offset, dtype, flags, conj and neg bits, names.
  void copy_metadata(const CpuAlias& from) {
    sizes_and_strides_ = from.sizes_and_strides_;
    storage_offset_ = from.storage_offset_;
    numel_ = from.numel_;
    data_type_ = from.data_type_;
    is_contiguous_ = from.is_contiguous_;
    is_channels_last_ = from.is_channels_last_;
    is_channels_last_contiguous_ = from.is_channels_last_contiguous_;
    is_channels_last_3d_ = from.is_channels_last_3d_;
    is_channels_last_3d_contiguous_ = from.is_channels_last_3d_contiguous_;
    is_non_overlapping_and_dense_ = from.is_non_overlapping_and_dense_;
    is_wrapped_number_ = from.is_wrapped_number_;
    constexpr DispatchKeySet carried({DispatchKey::Conjugate, DispatchKey::Negative, DispatchKey::ZeroTensor});
    key_set_ = cpu_keys() | (from.key_set_ & carried);
    if (C10_UNLIKELY(extra_meta_ != nullptr)) {
      extra_meta_.reset();
    }
    carry_names(*this, from);
  }

  bool same_geometry(const CpuAlias& other) const {
    return storage_offset_ == other.storage_offset_ &&
           sizes_and_strides_.sizes_arrayref() == other.sizes_and_strides_.sizes_arrayref() &&
           sizes_and_strides_.strides_arrayref() == other.sizes_and_strides_.strides_arrayref();
  }

  StorageImpl* storage_impl() const { return storage_.unsafeGetStorageImpl(); }
  void share_storage(c10::Storage storage) { storage_ = std::move(storage); }

  void set_device(c10::Device device) {
    device_opt_ = device;
    // A difference of sets leaves the bits of backends as they are.
    key_set_ = (key_set_ - backend_keys(kHostBackend)).remove_backend(kHostBackend) | backend_keys(kDeviceBackend);
  }

  static DispatchKeySet cpu_keys() {
    static const DispatchKeySet keys =
        DispatchKeySet(kHostKey) | backend_keys(kHostBackend) | c10::getAutogradRelatedKeySetFromBackend(kHostBackend);
    return keys;
  }

 private:
  // Autograd and ADInplaceOrView are the same for every backend; the backend's own bit and its autocast key are not.
  static DispatchKeySet backend_keys(c10::BackendComponent backend) {
    return DispatchKeySet(backend) | c10::getAutocastRelatedKeySetFromBackend(backend);
  }
};

static_assert(sizeof(CpuAlias) == sizeof(TensorImpl), "CpuAlias::of() needs TensorImpl's own layout");

namespace {

constexpr size_t kPoolLimit = 64;

using AliasPtr = c10::intrusive_ptr<TensorImpl>;

/// Aliases ready for use, a thread's own.
std::vector<AliasPtr>& pool() {
  static thread_local std::vector<AliasPtr> aliases;
  return aliases;
}

c10::Storage new_storage() {
  return c10::Storage(c10::make_intrusive<StorageImpl>(
      StorageImpl::use_byte_size_t(), 0, DataPtr(nullptr, c10::Device(c10::kCPU)), scoped_allocator(), true));
}

AliasPtr new_alias(c10::Storage storage) {
  // Aliases are ordinary tensors with a version counter, wherever they are first needed.
  c10::InferenceMode ordinary(false);
  return c10::make_intrusive<CpuAlias>(std::move(storage), caffe2::TypeMeta::Make<float>());
}

AliasPtr take_alias() {
  auto& aliases = pool();
  if (aliases.empty()) {
    return new_alias(new_storage());
  }
  AliasPtr alias = std::move(aliases.back());
  aliases.pop_back();
  return alias;
}

void release_storage(void* context) { c10::raw::intrusive_ptr::decref(static_cast<StorageImpl*>(context)); }

/// Without a look at whether the memory is to be copied before a write: up to 2.1 none is.
DataPtr& data_of(StorageImpl& storage) {
#if MACATORCH_TORCH_AT_LEAST(2, 4)
  return storage._mutable_data_ptr_no_checks();
#else
  return storage.mutable_data_ptr();
#endif
}

/// An alias that outlives its call must keep the device's memory.
void own_storage(StorageImpl& alias, const TensorImpl& device) {
  DataPtr& data = data_of(alias);
  if (data.get_context() != nullptr || data.get() == nullptr) {
    return;
  }
  StorageImpl* owner = device.unsafe_storage().unsafeGetStorageImpl();
  c10::raw::intrusive_ptr::incref(owner);
  data = DataPtr(data.get(), owner, &release_storage, c10::Device(c10::kCPU));
}

/// Host memory that a CPU kernel returned as its result is copied to where a result has to be: in device memory.
void move_to_device_memory(StorageImpl& storage) {
  const size_t nbytes = storage.nbytes();
  DataPtr block = c10::cuda::CUDACachingAllocator::get()->allocate(nbytes);
  if (nbytes != 0) {
    memory_is_given(block.get(), nbytes);
    std::memcpy(block.get(), storage.data(), nbytes);
  }
  storage.set_data_ptr_noswap(std::move(block));
}

void relabel_storage(StorageImpl& storage, c10::Device device) {
  DataPtr& data = data_of(storage);
  if (data.device() == device) {
    return;  // another result of the same call shares it
  }
  if (C10_UNLIKELY(!is_device_owned(data))) {
    move_to_device_memory(storage);
  }
  data_of(storage).unsafe_set_device(device);
  storage.set_allocator(c10::cuda::CUDACachingAllocator::get());
}

}  // namespace

void relabel(TensorImpl& tensor, c10::Device device) {
  CpuAlias& view = CpuAlias::of(tensor);
  relabel_storage(*view.storage_impl(), device);
  view.set_device(device);
}

/// The slot of a device tensor, or the one that owns the alias of a device storage.
CpuAliases::Slot* CpuAliases::find(const void* key) {
  if (C10_UNLIKELY(index_ != nullptr)) {
    const auto found = index_->find(key);
    return found == index_->end() ? nullptr : &slots_[found->second];
  }
  for (Slot& slot : slots_) {
    if (slot.device == key || (slot.owns_storage && slot.device->unsafe_storage().unsafeGetStorageImpl() == key)) {
      return &slot;
    }
  }
  return nullptr;
}

void CpuAliases::remember(const Slot& slot, size_t position) {
  index_->emplace(slot.device, position);
  if (slot.owns_storage) {
    index_->emplace(slot.device->unsafe_storage().unsafeGetStorageImpl(), position);
  }
}

/// See Note [Views that are copies].
static void check_write(const StorageImpl& storage) {
  if (C10_UNLIKELY(view_copies.load(std::memory_order_relaxed) != 0)) {
    refuse_write_to_view_copy(&storage);
  }
}

/// A copy-on-write storage may get its own bytes only when it is written.
static void own_bytes(TensorImpl& alias, StorageImpl& source) {
  DataPtr& data = data_of(*CpuAlias::of(alias).storage_impl());
  if (data.get_context() == nullptr) {
    data = DataPtr(source.mutable_data(), c10::Device(c10::kCPU));
  }
}

void CpuAliases::will_write(const at::Tensor& alias) {
  for (Slot& slot : slots_) {
    if (slot.alias.get() == alias.unsafeGetTensorImpl() && !slot.write) {
      check_write(*slot.device->unsafe_storage().unsafeGetStorageImpl());
      slot.write = true;
      own_bytes(*slot.alias, *slot.device->unsafe_storage().unsafeGetStorageImpl());
    }
  }
}

at::Tensor CpuAliases::bind(const at::Tensor& device_tensor, bool write) {
  constexpr size_t kIndexFrom = 16;
  const TensorImpl* device = device_tensor.unsafeGetTensorImpl();
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(is_plain_cuda(*device));
  StorageImpl* source = device->unsafe_storage().unsafeGetStorageImpl();
  if (C10_UNLIKELY(source == nullptr)) {
    // Taken away, as from an output of a graph that has run again: this raises what was left to be said.
    static_cast<void>(device->storage());
    TORCH_CHECK(false, "a tensor without storage has no elements to compute with");
  }
  if (write) {
    check_write(*source);
  }
  Slot* sibling = nullptr;
  if (!slots_.empty()) {
    sibling = find(source);
    Slot* same = sibling != nullptr ? find(device) : nullptr;
    if (sibling != nullptr && write) {
      own_bytes(*sibling->alias, *source);
    }
    if (same != nullptr) {
      same->write |= write;
      return at::Tensor(same->alias);
    }
  }
  AliasPtr alias;
  if (sibling != nullptr) {
    alias = new_alias(sibling->alias->storage());
  } else {
    alias = take_alias();
    StorageImpl& storage = *CpuAlias::of(*alias).storage_impl();
    // Reading must not end a copy-on-write; writing has to.
    void* data = write ? source->mutable_data() : const_cast<void*>(source->data());
    data_of(storage) = DataPtr(data, c10::Device(c10::kCPU));
    storage.set_nbytes(source->nbytes());
  }
  CpuAlias::of(*alias).copy_metadata(CpuAlias::of(*device));
  slots_.push_back(Slot{alias, device, write, sibling == nullptr});
  if (C10_UNLIKELY(index_ != nullptr)) {
    remember(slots_.back(), slots_.size() - 1);
  } else if (C10_UNLIKELY(slots_.size() == kIndexFrom)) {
    index_ = std::make_unique<std::unordered_map<const void*, size_t>>();
    for (size_t i = 0; i < slots_.size(); ++i) {
      remember(slots_[i], i);
    }
  }
  return at::Tensor(std::move(alias));
}

void CpuAliases::write_back(c10::Device device) {
  for (Slot& slot : slots_) {
    if (!slot.write) {
      continue;
    }
    CpuAlias& alias = CpuAlias::of(*slot.alias);
    TensorImpl& target = *const_cast<TensorImpl*>(slot.device);
    StorageImpl& from = *alias.storage_impl();
    StorageImpl& to = *target.unsafe_storage().unsafeGetStorageImpl();
    if (C10_UNLIKELY(from.data_ptr().get_context() != nullptr)) {  // the kernel gave it a block of its own
      to.set_data_ptr_noswap(std::move(data_of(from)));
      to.set_nbytes(from.nbytes());
      data_of(from) = DataPtr(to.mutable_data(), c10::Device(c10::kCPU));
      relabel_storage(to, device);
    } else if (C10_UNLIKELY(from.nbytes() != to.nbytes())) {
      to.set_nbytes(from.nbytes());
    }
    if (C10_UNLIKELY(!alias.same_geometry(CpuAlias::of(target)))) {
      target.set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
    }
    // Some kernels leave the conjugation of an out= to its bit.
    if (C10_UNLIKELY(alias.is_conj() != target.is_conj())) {
      target._set_conj(alias.is_conj());
    }
    carry_names(target, alias);
  }
}

at::Tensor CpuAliases::to_device(at::Tensor result, c10::Device device) const {
  if (!result.defined() || !result.device().is_cpu()) {
    return result;
  }
  TensorImpl* impl = result.unsafeGetTensorImpl();
  for (const Slot& slot : slots_) {
    if (slot.alias.get() == impl) {
      return at::Tensor(c10::intrusive_ptr<TensorImpl>::reclaim_copy(const_cast<TensorImpl*>(slot.device)));
    }
  }
  TORCH_CHECK_NOT_IMPLEMENTED(impl->has_storage(),
                              "the simulated device does not compute this operator yet: its result is a ",
                              result.toString());
  const StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  for (const Slot& slot : slots_) {
    if (CpuAlias::of(*slot.alias).storage_impl() == storage) {
      CpuAlias::of(*impl).share_storage(slot.device->storage());
      CpuAlias::of(*impl).set_device(device);
      return result;
    }
  }
  const DataPtr& data = impl->unsafe_storage().unsafeGetStorageImpl()->data_ptr();
  if (C10_UNLIKELY(data.device().is_cpu() && !is_device_owned(data))) {
    if (result._is_zerotensor()) {  // zeros by its key alone: there is no memory to move
      return at::_efficientzerotensor(result.sizes(), result.options().device(device));
    }
    if (result.use_count() > 1 || result.storage().use_count() > 1) {
      // Host memory that somebody else holds, a CPU argument say: it stays theirs.
      return to_device(result.clone(), device);
    }
  }
  relabel(*impl, device);
  return result;
}

CpuAliases::~CpuAliases() {
  auto& aliases = pool();
  // Backwards: an alias that shares a storage comes after the one that owns it.
  for (size_t i = slots_.size(); i-- > 0;) {
    Slot& slot = slots_[i];
    CpuAlias& alias = CpuAlias::of(*slot.alias);
    StorageImpl& storage = *alias.storage_impl();
    const bool kept = slot.alias.use_count() > 1 || slot.alias.weak_use_count() > 1;
    if (C10_UNLIKELY(kept || (slot.owns_storage && alias.storage().use_count() > 1))) {
      own_storage(storage, *slot.device);
    } else if (C10_LIKELY(slot.owns_storage && aliases.size() < kPoolLimit)) {
      DataPtr& data = data_of(storage);
      if (C10_UNLIKELY(data.get_context() != nullptr)) {
        data.clear();
      }
      aliases.push_back(std::move(slot.alias));
    }
    slot.alias.reset();
  }
}

}  // namespace macatorch
