// Statuses of the driver interface. The numbers are those of the runtime below, where the driver has such an error.
#pragma once

#include "mc_runtime.h"

#pragma GCC visibility push(default)
#include "cuda.h"
#pragma GCC visibility pop

namespace mxmaca {

inline CUresult driverResult(mcError_t error) {
  switch (error) {
    case mcErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    case mcErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
    case mcErrorInvalidConfiguration:
    case mcErrorInvalidPitchValue:
    case mcErrorInvalidMemcpyDirection: return CUDA_ERROR_INVALID_VALUE;
    default: return static_cast<CUresult>(error);
  }
}

}  // namespace mxmaca

// Leaves the function with what a check has found.
#define RETURN_IF_WRONG(check)                                      \
  do {                                                              \
    const mcError_t wrong_ = (check);                               \
    if (wrong_ != mcSuccess) return ::mxmaca::driverResult(wrong_); \
  } while (0)

// Leaves the function if the thread has no current context.
#define NEEDS_CONTEXT() RETURN_IF_WRONG(mcContextIsSet() != 0 ? mcSuccess : mcErrorDeviceUninitialized)

#define RETURN_IF_NULL(pointer) RETURN_IF_WRONG((pointer) == nullptr ? mcErrorInvalidValue : mcSuccess)
