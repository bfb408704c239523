#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstddef>

namespace macatorch {

/// Puts an allocator that replays known steps (AllocationReplay.h) in front of upstream's caching allocator. Does nothing
/// where another allocator or other settings than the default ones are asked for, or MACA_ALLOCATOR_CACHE is 0.
void install_device_allocator();

/// A block on the current stream of `device` that the front gives out without upstream's allocator; nullptr if it does
/// not know. Its deleter is that of the device's allocator.
void* replay_request(c10::DeviceIndex device, size_t nbytes);

}  // namespace macatorch
