// Ends kernels that run for longer than MACA_KERNEL_TIMEOUT, or that still run after Ctrl-C.
//
// A thread of its own looks several times a second at what the workers run; launches do not know of it. What is to end
// gets a signal, whose handler leaves the kernel as after a memory fault. It does so only where the kernel's own code
// runs, so that no lock of another library stays taken; else the signal comes again.
#pragma once

#include "execution/worker.h"

namespace mc {

// The calling thread's worker.
void watch(Worker* worker);
void unwatch(Worker* worker);

}  // namespace mc
