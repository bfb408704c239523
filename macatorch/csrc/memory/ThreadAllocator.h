#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstddef>

namespace macatorch {

// Note [Memory of a device operator]
// Memory of the simulated device is host memory, so an operator on CUDA tensors is computed by upstream's CPU kernel.
// What that kernel allocates has to come from the device's caching allocator, or memory statistics and out-of-memory
// would lie. So the CPU allocator of the process is replaced by one that asks where the calling thread is.

/// Per-thread state of the innermost device operator; depth is 0 outside of any.
struct ThreadState {
  int depth = 0;
  c10::DeviceIndex device = 0;
};

ThreadState& thread_state() noexcept;

/// Replaces the process's CPU allocator by one that serves threads on the device from the caching allocator.
void install_allocator();

/// A block on the current stream of `device` with the deleter of its allocator, or nullptr: the allocator itself is
/// asked.
using BlockSource = void* (*)(c10::DeviceIndex device, size_t nbytes);

/// Asks `source` first, from now on.
void set_block_source(BlockSource source) noexcept;

/// The allocator that install_allocator put in front; aliases of device tensors name it as theirs.
c10::Allocator* scoped_allocator() noexcept;

/// True if `data` was handed out by the device's caching allocator to a thread on the device.
bool is_device_owned(const c10::DataPtr& data) noexcept;

}  // namespace macatorch
