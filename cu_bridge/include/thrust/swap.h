// Exchange of two values.
#pragma once

#include <utility>

#include "../host_defines.h"
#include "detail/config.h"

namespace thrust {
template <class T>
__host__ __device__ inline void swap(T& a, T& b) {
  T old = std::move(a);
  a = std::move(b);
  b = std::move(old);
}
}  // namespace thrust
