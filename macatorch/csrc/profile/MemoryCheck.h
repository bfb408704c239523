#pragma once

#include <mc_runtime.h>

namespace macatorch {

/// MACA_CHECK=memory. Each tensor then gets an allocation of its own, and the runtime is told which operator computes.
void register_memory_check();

/// The innermost operator of the calling thread computes from now on to its end. In that mode alone.
void enter_checked_operator();

}  // namespace macatorch
