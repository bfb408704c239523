#pragma once

#include <c10/core/Device.h>

namespace macatorch {

/// How much work is pending on streams of the process (mcPendingWork).
extern const volatile int* const pending_work;

/// Returns when it is the turn of an operator on the current stream of `device`.
void wait_for_turn(c10::DeviceIndex device);

}  // namespace macatorch
