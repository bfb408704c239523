// Running a kernel that cucc has compiled.
#pragma once

#include <vector>

#include "execution/child_launch.h"
#include "mc_kernel.h"

namespace mc {

struct LaunchArguments {
  mcDim3 grid, block;
  void** arguments;
  size_t sharedBytes;
  mcStream_t stream;
  bool cooperative = false;  // all blocks run at once
  unsigned part = 0;         // see Note [Parts]
};

// Returns when all blocks have run, and all that they have launched; a failure inside the kernel is made sticky.
mcError_t runKernel(const mcKernelEntry& kernel, const LaunchArguments& launch);
// The same for what a block has launched so far.
mcError_t runChildren(std::vector<ChildLaunch> children, unsigned part = 0);

}  // namespace mc
