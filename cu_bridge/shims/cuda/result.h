// Statuses of the driver interface. The numbers are those of the runtime below, where the driver has such an error.
#pragma once

#include <cstdint>

#include "checks.h"
#include "mc_runtime.h"
#include "own.h"

#pragma GCC visibility push(default)
#include "cuda.h"
#pragma GCC visibility pop

namespace mxmaca {

// Driver functions return their errors and remember none: cudaGetLastError does not speak of them.
inline CUresult result(mcError_t error) {
  if (error != mcSuccess) mcGetLastError();
  switch (error) {
    case mcErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    case mcErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
    case mcErrorInvalidConfiguration:
    case mcErrorInvalidPitchValue:
    case mcErrorInvalidMemcpyDirection: return CUDA_ERROR_INVALID_VALUE;
    default: return static_cast<CUresult>(error);
  }
}

// After work on the default stream, for a function that returns when it is done.
inline CUresult finished(CUresult submitted) {
  return submitted != CUDA_SUCCESS || __atomic_load_n(mcPendingWork(), __ATOMIC_ACQUIRE) == 0
             ? submitted
             : result(mcStreamSynchronize(nullptr));
}

inline void* address(CUdeviceptr pointer) { return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)); }
inline CUdeviceptr pointer(void* address) { return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(address)); }

}  // namespace mxmaca

using namespace mxmaca;

// Leaves the function with what a check has found.
#define RETURN_IF_WRONG(check)                      \
  do {                                              \
    const mcError_t wrong_ = (check);               \
    if (wrong_ != mcSuccess) return result(wrong_); \
  } while (0)

// Leaves the function if the thread has no current context.
#define NEEDS_CONTEXT() RETURN_IF_WRONG(mcContextIsSet() != 0 ? mcSuccess : mcErrorDeviceUninitialized)

#define RETURN_IF_NULL(pointer) RETURN_IF_WRONG((pointer) == nullptr ? mcErrorInvalidValue : mcSuccess)

// The name of a function's first form, which is the same as the second.
#define FIRST_FORM(name, parameters) CUresult name parameters __attribute__((alias(#name "_v2")));
