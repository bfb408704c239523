// For self-checking kernel programs: CHECK in host code, EXPECT in device code, `return summary()` at the end of main.
#pragma once

#include <cstdio>

static int failures = 0;
__device__ int device_failures = 0;

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition) && ++failures <= 20) {                       \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                             \
  } while (0)

#define EXPECT(condition)                                                                                      \
  do {                                                                                                         \
    if (!(condition) && atomicAdd(&device_failures, 1) < 20) {                                                 \
      printf("%s:%d: %s (block %d thread %d)\n", __FILE__, __LINE__, #condition, static_cast<int>(blockIdx.x), \
             static_cast<int>(threadIdx.x));                                                                   \
    }                                                                                                          \
  } while (0)

static int summary() {
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(error));
    return 1;
  }
  int inside = 0;
  CHECK(cudaMemcpyFromSymbol(&inside, device_failures, sizeof inside) == cudaSuccess);
  std::printf("%d failures\n", failures + inside);
  return failures + inside != 0;
}
