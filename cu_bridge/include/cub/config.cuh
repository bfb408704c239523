// The namespace of cub (which a program may wrap in one of its own) and the macros that programs use.
#pragma once

#include "version.cuh"

#ifdef CUB_WRAPPED_NAMESPACE
#define CUB_NS_PREFIX namespace CUB_WRAPPED_NAMESPACE {
#define CUB_NS_POSTFIX }
#define CUB_NS_QUALIFIER ::CUB_WRAPPED_NAMESPACE::cub
#elif defined(THRUST_CUB_WRAPPED_NAMESPACE)
#define CUB_NS_PREFIX namespace THRUST_CUB_WRAPPED_NAMESPACE {
#define CUB_NS_POSTFIX }
#define CUB_NS_QUALIFIER ::THRUST_CUB_WRAPPED_NAMESPACE::cub
#endif
#ifndef CUB_NS_PREFIX
#define CUB_NS_PREFIX
#endif
#ifndef CUB_NS_POSTFIX
#define CUB_NS_POSTFIX
#endif
#ifndef CUB_NS_QUALIFIER
#define CUB_NS_QUALIFIER ::cub
#endif

#define CUB_NAMESPACE_BEGIN \
  CUB_NS_PREFIX             \
  namespace cub {
#define CUB_NAMESPACE_END \
  }                       \
  CUB_NS_POSTFIX

#define CUB_RUNTIME_FUNCTION __host__ __device__
#define CUB_PTX_WARP_THREADS 32
#define CUB_WARP_THREADS(arch) 32
#define CUB_LOG_WARP_THREADS(arch) 5
#define CUB_PTX_LOG_WARP_THREADS 5
#define CUB_PTX_ARCH 800
#define CUB_MIN(a, b) (((a) > (b)) ? (b) : (a))
#define CUB_MAX(a, b) (((a) > (b)) ? (a) : (b))
#define CUB_QUOTIENT_FLOOR(x, y) ((x) / (y))
#define CUB_QUOTIENT_CEILING(x, y) (((x) + (y) - 1) / (y))
#define CUB_ROUND_UP_NEAREST(x, y) (CUB_QUOTIENT_CEILING(x, y) * (y))
#define CUB_IS_DEVICE_CODE 1
#define CUB_PREVENT_MACRO_SUBSTITUTION
#define CubDebug(e) (e)
#define CubDebugExit(e)                                                                                \
  do {                                                                                                 \
    const cudaError_t cub_error = (e);                                                                 \
    if (cub_error != cudaSuccess) {                                                                    \
      fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", static_cast<int>(cub_error), __FILE__, __LINE__, \
              cudaGetErrorString(cub_error));                                                          \
      exit(1);                                                                                         \
    }                                                                                                  \
  } while (0)
