#pragma once

#include <ATen/record_function.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

#include "graph/Turn.h"
#include "memory/ThreadAllocator.h"
#include "profile/OperatorRecords.h"

namespace macatorch {

// Note [Where a device operator runs]
// While an operator runs, its thread is "on the device": whatever the CPU kernel allocates comes from the device's
// caching allocator (Note [Memory of a device operator]), and whatever stands above the backend (autograd, autocast,
// the tracer, dispatch modes, functorch, the profiler's callbacks) sees nothing, since it has already seen the
// operator.

/// Raises the device's error, if it has one that lasts (a launch of device code that is not there): as on hardware, no
/// operator runs after it. Nor does one on a captured stream that the capture does not know of.
void check_device_error();

/// Before an operator on `device`, where work is pending or a profiler listens: waits until it is its turn on the
/// current stream, and notes when it begins.
void before_operator(c10::DeviceIndex device);

/// Puts the calling thread on `device` for the life of the object. Nests; leaves everything as it was, also on
/// unwinding.
class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex device)
      : state_(thread_state()), outer_device_(state_.device), mask_(masked_keys()) {
    check_device_error();
    if (C10_UNLIKELY((pending() | profiled.load(std::memory_order_relaxed)) != 0) && state_.depth == 0) {
      before_operator(device);
    }
    // Asked as the dispatcher asks: at::hasCallbacks() takes a lock and copies the list.
    if (C10_UNLIKELY(at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value())) {
      unrecorded_.emplace(/*is_enabled=*/false);
    }
    state_.device = device;
    ++state_.depth;
  }
  ~DeviceScope() {
    --state_.depth;
    state_.device = outer_device_;
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  static c10::DispatchKeySet masked_keys() {
    constexpr c10::DispatchKeySet modes(
        {c10::DispatchKey::Tracer, c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
         c10::DispatchKey::PythonDispatcher, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
         c10::DispatchKey::FuncTorchDynamicLayerBackMode, c10::DispatchKey::FuncTorchVmapMode});
    return c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | modes;
  }
  ThreadState& state_;
  c10::DeviceIndex outer_device_;
  c10::impl::ExcludeDispatchKeyGuard mask_;
  std::optional<at::RecordFunctionGuard> unrecorded_;  // only where somebody records: to switch it costs
};

}  // namespace macatorch
