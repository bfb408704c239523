#pragma once

namespace macatorch {

/// Puts an allocator that replays known steps (AllocationReplay.h) in front of upstream's caching allocator. Does nothing
/// where another allocator or other settings than the default ones are asked for, or MACA_ALLOCATOR_CACHE is 0.
void install_device_allocator();

}  // namespace macatorch
