// CUDA's declaration specifiers: nothing to a host compiler, and to cucc (which defines them) words that it finds after
// preprocessing.
#pragma once
#define __HOST_DEFINES_H__

#ifndef __managed__
#define __managed__
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif
#ifndef __grid_constant__
#define __grid_constant__
#endif

#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __shared__
#define __shared__
#endif
#ifndef __constant__
#define __constant__
#endif
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
#ifndef __builtin_align__
#define __builtin_align__(n) __attribute__((aligned(n)))
#endif
#ifndef __inline_hint__
#define __inline_hint__
#endif
#ifndef __align__
#define __align__(n) __attribute__((aligned(n)))
#endif
#define CUDARTAPI
#define CUDART_CB
#define CUDAAPI
#define CUDA_CB
