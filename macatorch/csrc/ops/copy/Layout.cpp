#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Copy.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/copy_ops.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/strides.h>
#include <sys/mman.h>

#include "alias/CompositeTensors.h"
#include "alias/DeviceCall.h"
#include "arguments/Device.h"
#include "dispatch/LayoutRule.h"
#include "fast/LayoutCopy.h"
#include "graph/GraphCapture.h"
#include "memory/HostBlocks.h"
#include "ops/copy/Integers.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

bool applies(const at::Tensor& self, const std::optional<at::Device>& device) {
  return device && is_on_device(*device) && self.is_cpu() && self.layout() == at::kStrided &&
         arrives_channels_last(self.dim()) && self.size(1) > 1 && self.is_contiguous() && !self.is_quantized();
}

/// Whether a copy to the host goes back to the layout that upstream's tensor has: what arrived by the rule leaves
/// contiguous. Who asks for torch.preserve_format by name gets it.
bool goes_home(const at::Tensor& self, const std::optional<at::Device>& device) {
  return device && device->is_cpu() && is_on_device(self) && !self.is_quantized() && upstream_strides(self).has_value();
}

/// Whether a copy fills a large new host tensor without gaps. See Note [Host blocks].
bool fetches_much(const at::Tensor& self, std::optional<at::Layout> layout, const std::optional<at::Device>& device,
                  std::optional<bool> pin_memory, std::optional<at::MemoryFormat> memory_format) {
  const at::MemoryFormat format = memory_format.value_or(at::MemoryFormat::Preserve);
  return device && device->is_cpu() && is_on_device(self) && self.layout() == at::kStrided && !self.is_quantized() &&
         layout.value_or(at::kStrided) == at::kStrided && !pin_memory.value_or(false) &&
         (format == at::MemoryFormat::Preserve || format == at::MemoryFormat::Contiguous) &&
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
  if (!memory_format && goes_home(self, device)) {
    memory_format = at::MemoryFormat::Contiguous;
  }
  if (fetches_much(self, layout, device, pin_memory, memory_format)) {
    at::DimVector strides(self.strides());
    if (memory_format == at::MemoryFormat::Contiguous) {
      strides = c10::contiguous_strides(self.sizes());
    }
    at::Tensor result = at::detail::empty_strided_generic(
        self.sizes(), strides, &HostBlocks::get(), c10::DispatchKeySet(kHostKey), dtype.value_or(self.scalar_type()));
    return result.copy_(self, non_blocking);
  }
  return at::native::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
}

/// Asks for huge pages under a large host tensor that a copy is about to fill: new memory is then faulted in by 2 MiB
/// at a time, which otherwise takes five times as long as the copy itself. Only a wish: no answer changes what is
/// copied.
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

/// Whether a copy is one of bytes that takes its place in the stream, if that waits for something. One that may not
/// return before it is done, or that computes, waits for its turn instead.
bool can_be_queued(const at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  const auto plain = [](const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && tensor.is_non_overlapping_and_dense() &&
           (is_on_device(tensor) ? is_plain_cuda(*tensor.unsafeGetTensorImpl()) : tensor.is_cpu());
  };
  // For a profiler every copy of bytes is one, also one that waits.
  const bool may_return = non_blocking || (is_on_device(self) && is_on_device(src)) || profiled != 0;
  return may_return && thread_state().depth == 0 && captures_under_way.load(std::memory_order_relaxed) == 0 &&
         plain(self) && plain(src) && self.scalar_type() == src.scalar_type() && self.sizes() == src.sizes() &&
         self.strides() == src.strides() && self.is_conj() == src.is_conj() && self.is_neg() == src.is_neg() &&
         !self.is_same(src);
}

/// Upstream's own copy, which for such tensors is one of the runtime's, with the events that the allocators and other
/// devices' streams need.
void queue_copy(const at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  auto iterator = at::TensorIteratorConfig()
                      .add_output(self)
                      .add_input(src)
                      .resize_outputs(false)
                      .check_all_same_dtype(false)
                      .check_all_same_device(false)
                      .build();
  if (iterator.numel() != 0) {
    at::native::copy_stub(kDevice, iterator, non_blocking);
  }
}

/// `copy_` where one side or both are on a device. As upstream, a copy between host and device waits unless
/// non_blocking.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  if (!non_blocking && is_on_device(self) != is_on_device(src)) {
    wait_as_upstream();
  }
  if (self.is_cpu() && self.layout() == at::kStrided) {
    prefer_huge_pages(self);
  }
  if (C10_UNLIKELY((pending() | profiled.load(std::memory_order_relaxed)) != 0)) {
    if (can_be_queued(self, src, non_blocking)) {
      const c10::cuda::CUDAGuard device((is_on_device(self) ? self : src).device());
      queue_copy(self, src, non_blocking);
      return self;
    }
    if (is_on_device(self) && is_on_device(src) && self.device() != src.device()) {
      wait_for_turn(src.device().index());
    }
  }
  DeviceCall call(is_on_device(self) ? self : src);
  at::Tensor target = call.alias(self, true);
  const at::Tensor source = call.alias(src);
  if (!copy_transposed(target, source)) {
    at::_ops::copy_::redispatch(c10::DispatchKeySet(kHostKey), target, source, non_blocking);
    if (C10_UNLIKELY(becomes_integers(source.scalar_type(), target.scalar_type())) && is_on_device(self) &&
        is_on_device(src) && target.is_cpu() && source.is_cpu() && !source._is_zerotensor()) {
      correct_integers(target, source);
    }
  }
  call.write_back();
  return self;
}

/// `copy_` where one side or both are quantised tensors on a device.
at::Tensor& copy_quantized(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  const c10::Device device = (is_on_device(self) ? self : src).device();
  DeviceScope scope(device.index());
  AnyAliases aliases;
  at::Tensor target = aliases.bind(self, true);
  const at::Tensor source = aliases.bind(src, false);
  at::_ops::copy_::redispatch(c10::DispatchKeySet(kQuantizedHostKey), target, source, non_blocking);
  aliases.write_back(device);
  return self;
}

}  // namespace
}  // namespace macatorch

#include "registered/copy/Layout.h"
