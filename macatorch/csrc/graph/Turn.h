#pragma once

#include <c10/core/Device.h>

namespace macatorch {

extern const volatile int* const pending_work;  // mcPendingWork()

/// How much work is pending on streams of the process. Who sees 0 sees what finished work has written: on Arm a plain
/// load would not order what is read after it.
inline int pending() { return __atomic_load_n(pending_work, __ATOMIC_ACQUIRE); }

/// Returns when it is the turn of an operator on the current stream of `device`.
void wait_for_turn(c10::DeviceIndex device);

}  // namespace macatorch
