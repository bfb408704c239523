#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/SmallVector.h>

#include <memory>
#include <unordered_map>

#include "alias/DeviceScope.h"
#include "arguments/Device.h"

namespace macatorch {

// Note [CPU aliases]
// A CPU kernel must see CPU tensors. For the time of one call each device tensor gets an alias: a CPU TensorImpl with a
// StorageImpl of its own over the device tensor's bytes. (One StorageImpl for both does not do: a view made inside the
// kernel takes its device from the storage.) Aliases come from a per-thread pool and borrow the bytes, as the caller
// keeps the device tensor alive. An alias that outlives its call, because the kernel kept it, is given a reference to
// the device storage and leaves the pool. Tensors that share a storage share the alias's storage too, so that
// upstream's overlap checks go on working.

class CpuAlias;

/// The aliases of one operator call, and the way back: what the CPU kernel returned as device tensors.
class CpuAliases {
 public:
  CpuAliases() = default;
  ~CpuAliases();
  CpuAliases(const CpuAliases&) = delete;
  CpuAliases& operator=(const CpuAliases&) = delete;

  /// CPU alias of a strided CUDA tensor. `write` says that the kernel may write to it or resize it.
  at::Tensor bind(const at::Tensor& device_tensor, bool write);

  /// Says that the kernel may write to a tensor whose alias was bound for reading.
  void will_write(const at::Tensor& alias);

  /// Carries what the kernel did to written tensors (a new size, a new storage) over to the device tensors.
  void write_back(c10::Device device);

  /// A result of the kernel as a tensor on `device`: the argument itself if it is one, a view if it shares an
  /// argument's storage, otherwise the same tensor relabelled in place.
  at::Tensor to_device(at::Tensor result, c10::Device device) const;

 private:
  struct Slot {
    c10::intrusive_ptr<c10::TensorImpl> alias;
    const c10::TensorImpl* device;
    bool write;
    bool owns_storage;  // false: the storage is another slot's
  };
  Slot* find(const void* key);
  void remember(const Slot& slot, size_t position);

  c10::SmallVector<Slot, 6> slots_;
  // Long lists of tensors (foreach operators) are looked up here: by TensorImpl, and by StorageImpl for its owner.
  std::unique_ptr<std::unordered_map<const void*, size_t>> index_;
};

/// Turns a plain strided CPU tensor whose memory the device owns into a CUDA tensor, in place.
void relabel(c10::TensorImpl& tensor, c10::Device device);

/// True for what the fast path takes: a dense strided CUDA tensor without names, symbolic sizes or special layout.
inline bool is_plain_cuda(const c10::TensorImpl& tensor) noexcept {
  constexpr c10::DispatchKeySet device(kDeviceKey);
  return tensor.key_set().has_all(device);
}

}  // namespace macatorch
