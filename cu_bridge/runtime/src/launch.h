// Running a kernel that cucc has compiled.
#pragma once

#include "mc_kernel.h"

namespace mc {

struct KernelFacts {
  const char* name;  // mangled
  mcDeviceFunction function;
};

// Returns when all blocks have run; a failure inside the kernel is made sticky.
mcError_t runKernel(const KernelFacts& kernel, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                    bool cooperative);

}  // namespace mc
