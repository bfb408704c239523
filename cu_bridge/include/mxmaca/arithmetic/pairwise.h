// Reduction in halves, as a parallel machine adds: the rounding error grows with the logarithm of the length.
#pragma once

#include <cstddef>

#include "../../host_defines.h"

namespace mxmaca {

template <class T, class Operation, class Get>
__host__ __device__ T pairwise_part(std::ptrdiff_t begin, std::ptrdiff_t end, Operation& operation, Get& get) {
  if (end - begin <= 32) {
    T sum = get(begin);
    for (std::ptrdiff_t i = begin + 1; i < end; ++i) sum = static_cast<T>(operation(sum, get(i)));
    return sum;
  }
  const std::ptrdiff_t middle = begin + (end - begin) / 2;
  const T left = pairwise_part<T>(begin, middle, operation, get);
  return static_cast<T>(operation(left, pairwise_part<T>(middle, end, operation, get)));
}

// init (op) get(0) (op) ... (op) get(n - 1); the order of the operands is kept.
template <class T, class Operation, class Get>
__host__ __device__ T pairwise(std::ptrdiff_t n, T init, Operation operation, Get get) {
  if (n <= 0) return init;
  return static_cast<T>(operation(init, pairwise_part<T>(0, n, operation, get)));
}

}  // namespace mxmaca
