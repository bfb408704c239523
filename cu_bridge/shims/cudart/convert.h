// What the files of the CUDA runtime share: CUDA's types as the runtime's, and errors.
#pragma once

#include "checks.h"
#include "own.h"

#pragma GCC visibility push(default)
#include "cuda_runtime_api.h"
#pragma GCC visibility pop

namespace mxmaca::cudart {

inline mcMemcpyKind own(cudaMemcpyKind kind) { return static_cast<mcMemcpyKind>(kind); }
inline mcDim3 own(dim3 size) { return {size.x, size.y, size.z}; }
using mxmaca::own;

inline cudaError_t result(mcError_t error) { return static_cast<cudaError_t>(error); }
// Of a check that is shared with the driver interface, which records no errors.
inline cudaError_t recorded(mcError_t error) {
  return result(error == mcSuccess || error == mcErrorNotSupported ? error : mcSetLastError(error, nullptr));
}
inline cudaError_t fail(mcError_t error) { return result(mcSetLastError(error, nullptr)); }

// The function exists, the feature does not: the error's text says so.
inline cudaError_t unsupported(const char* function) { return result(mcSetLastError(mcErrorNotSupported, function)); }

}  // namespace mxmaca::cudart

using namespace mxmaca;
using namespace mxmaca::cudart;

// Leaves the function with what a check of mxmaca has found.
#define RETURN_IF_WRONG(check)                    \
  do {                                            \
    const mcError_t wrong_ = (check);             \
    if (wrong_ != mcSuccess) return fail(wrong_); \
  } while (0)
