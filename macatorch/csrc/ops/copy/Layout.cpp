#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/view_native.h>
#include <c10/cuda/CUDAFunctions.h>
#include <sys/mman.h>

#include "alias/CompositeTensors.h"
#include "alias/DeviceCall.h"
#include "dispatch/LayoutRule.h"
#include "fast/LayoutCopy.h"
#include "graph/GraphCapture.h"
#include "memory/HostBlocks.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

bool applies(const at::Tensor& self, const std::optional<at::Device>& device) {
  return device && device->is_cuda() && self.is_cpu() && self.layout() == at::kStrided &&
         arrives_channels_last(self.dim()) && self.size(1) > 1 && self.is_contiguous() && !self.is_quantized();
}

/// Whether a copy fills a large new host tensor with the strides of `self`. See Note [Host blocks].
bool fetches_much(const at::Tensor& self, std::optional<at::Layout> layout, const std::optional<at::Device>& device,
                  std::optional<bool> pin_memory, std::optional<at::MemoryFormat> memory_format) {
  return device && device->is_cpu() && self.is_cuda() && self.layout() == at::kStrided && !self.is_quantized() &&
         layout.value_or(at::kStrided) == at::kStrided && !pin_memory.value_or(false) &&
         memory_format.value_or(at::MemoryFormat::Preserve) == at::MemoryFormat::Preserve &&
         self.nbytes() >= HostBlocks::kLeast && self.is_non_overlapping_and_dense();
}

/// `_to_copy` from or to a device: upstream's, with the default layout of the device where the caller left it open.
at::Tensor to_copy(const at::Tensor& self, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                   std::optional<at::Device> device, std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<at::MemoryFormat> memory_format) {
  if (!memory_format && applies(self, device)) {
    if (self.dim() == 4) {
      memory_format = at::MemoryFormat::ChannelsLast;
    } else if (self.dim() == 5) {
      memory_format = at::MemoryFormat::ChannelsLast3d;
    } else {
      const int64_t channels = self.size(1);
      at::Tensor result =
          at::empty_strided(self.sizes(), {channels * self.size(2), 1, channels},
                            self.options().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory));
      return result.copy_(self, non_blocking);
    }
  }
  if (fetches_much(self, layout, device, pin_memory, memory_format)) {
    at::Tensor result = at::detail::empty_strided_generic(self.sizes(), self.strides(), &HostBlocks::get(),
                                                          c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                          dtype.value_or(self.scalar_type()));
    return result.copy_(self, non_blocking);
  }
  return at::native::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
}

/// Asks for huge pages under a large host tensor that a copy is about to fill: new memory is then faulted in by 2 MiB at a
/// time, which otherwise takes five times as long as the copy itself. Only a wish: no answer changes what is copied.
void prefer_huge_pages(const at::Tensor& host) {
  constexpr uintptr_t page = uintptr_t{2} << 20;
  if (!host.is_non_overlapping_and_dense() || host.nbytes() < 2 * page) {
    return;
  }
  const auto address = reinterpret_cast<uintptr_t>(host.const_data_ptr());
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + host.nbytes()) / page * page;
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
}

/// `copy_` where one side or both are on a device. As upstream, a copy between host and device waits unless non_blocking.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  if (!non_blocking && self.is_cuda() != src.is_cuda()) {
    refuse_wait_in_capture();
    if (C10_UNLIKELY(c10::cuda::warning_state().get_sync_debug_mode() != c10::cuda::SyncDebugMode::L_DISABLED)) {
      c10::cuda::warn_or_error_on_sync();
    }
  }
  if (self.is_cpu() && self.layout() == at::kStrided) {
    prefer_huge_pages(self);
  }
  DeviceCall call(self.is_cuda() ? self : src);
  at::Tensor target = call.anywhere(self, true);
  const at::Tensor source = call.anywhere(src);
  if (!copy_transposed(target, source)) {
    at::_ops::copy_::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), target, source, non_blocking);
  }
  call.write_back();
  return self;
}

/// `copy_` where one side or both are quantised tensors on a device.
at::Tensor& copy_quantized(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  const c10::Device device = (self.is_cuda() ? self : src).device();
  DeviceScope scope(device.index());
  AnyAliases aliases;
  at::Tensor target = aliases.bind(self, true);
  const at::Tensor source = aliases.bind(src, false);
  at::_ops::copy_::redispatch(c10::DispatchKeySet(c10::DispatchKey::QuantizedCPU), target, source, non_blocking);
  aliases.write_back(device);
  return self;
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) {
  try {
    return at::native::view(self, size);
  } catch (const c10::Error& error) {
    const std::string hint = layout_hint(self);
    if (hint.empty()) {
      throw;
    }
    TORCH_CHECK(false, error.what_without_backtrace(), hint);
  }
}

}  // namespace
}  // namespace macatorch

#include "registered/copy/Layout.h"
