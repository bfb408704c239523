// In which memory an address lies.
#pragma once

#include "../kernel_interface.h"

inline __device__ unsigned __isGlobal(const void* pointer) { return __cudaAddressSpace(pointer) == mcAddressGlobal; }
inline __device__ unsigned __isShared(const void* pointer) { return __cudaAddressSpace(pointer) == mcAddressShared; }
inline __device__ unsigned __isLocal(const void* pointer) { return __cudaAddressSpace(pointer) == mcAddressLocal; }
inline __device__ unsigned __isConstant(const void* pointer) {
  return __cudaAddressSpace(pointer) == mcAddressConstant;
}
// A block has no shared memory of another one here.
inline __device__ unsigned __isClusterShared(const void* pointer) { return __isShared(pointer); }
// Parameters are copied to each thread's own memory, so an address does not tell whether it is one's.
inline __device__ unsigned __isGridConstant(const void*) {
  __cudaKernelFail(cudaErrorLaunchFailure, "__isGridConstant() is not supported on the simulated device");
}
