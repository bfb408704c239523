// What all families of cuSOLVER's functions answer with.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "numbers.h"
#include "objects.h"

namespace mxmaca {
namespace cusolver {

inline bool known(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_C_32F || type == CUDA_C_64F;
}

using mxmaca::letter;
inline char letter(cusolverEigMode_t mode) { return mode == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N'; }

// What every buffer size says is needed.
constexpr Index kWorkspace = 1;

constexpr BlasInt kNoMemory = -1010;  // of LAPACK's C interface
constexpr BlasInt kNoMemoryToTranspose = -1011;

// Where the caller wants to know what LAPACK said: 0, the number of the column that failed, or of the wrong argument
// with a minus.
inline Status report(int* info, BlasInt found) {
  reachData();
  if (found == kNoMemory || found == kNoMemoryToTranspose) return CUSOLVER_STATUS_ALLOC_FAILED;
  if (info != nullptr) *info = static_cast<int>(found);
  return found < 0 ? CUSOLVER_STATUS_INVALID_VALUE : CUSOLVER_STATUS_SUCCESS;
}
inline Status needsNone(int* lwork) {
  MXMACA_REQUIRE(lwork != nullptr);
  *lwork = kWorkspace;  // callers allocate what they are told, and some take 0 for a failure
  return CUSOLVER_STATUS_SUCCESS;
}
inline Status needsNone(size_t* device, size_t* host) {
  MXMACA_REQUIRE(device != nullptr && host != nullptr);
  *device = *host = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace cusolver
}  // namespace mxmaca
