#pragma once

#include <c10/core/Device.h>

#include <atomic>

namespace macatorch {

// Note [Operators in a profile]
// On a GPU a profiler sees the kernels that an operator launches. Here an operator computes in the thread that calls
// it, so it is one kernel of its own name, from the moment when the device's part begins to the operator's end. The
// runtime passes it on to whoever listens (libcupti); this thread's call gets the number that ties the two together.

/// Whether a profiler is told of operators.
extern std::atomic<int> profiled;

/// The innermost recorded operator of this thread computes on `device` from now on.
void operator_begins(c10::DeviceIndex device);

/// Tells the runtime that there are operators to be told of.
void register_operator_records();

}  // namespace macatorch
