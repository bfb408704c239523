// In which memory an address lies. The rest of what CUDA has here comes with the CUDA runtime header.
#pragma once
#define __SM_20_INTRINSICS_H__

#include "cuda_runtime.h"

#ifdef __CUDACC__
#include "mxmaca/kernel_interface.h"

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
  __cudaKernelFail(999, "__isGridConstant() is not supported on the simulated device");
}
#endif
