// Kernels compiled by cucc, for the rest of the runtime.
#pragma once

#include "mc_kernel.h"

namespace mc {

bool isCompiledKernel(const void* host);
// Checks the limits of the kernel, then runs it. The configuration itself has been checked.
mcError_t launchCompiled(const void* host, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                         bool cooperative);
// The same for a stream, where it may become a node of a graph.
mcError_t submitCompiled(const void* host, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                         mcStream_t stream, bool cooperative);
void forgetModule(mcModule_t module);
// Whether [address, address + bytes) lies in a variable of device code. A walk over all of them: for addresses that are
// no allocation's.
bool insideVariable(const void* address, size_t bytes);

}  // namespace mc
