// What a thread does that waits for another one's store.
#pragma once

#include "../host_defines.h"

#ifdef __CUDACC__
#include "../cuda_runtime.h"
#endif
#ifndef __CUDA_ARCH__
#include <sched.h>
#endif

namespace mxmaca {

// Threads of a block share a processor: the one that waits must give it to the others.
inline __host__ __device__ void let_others_run() {
#ifdef __CUDA_ARCH__
  __nanosleep(0);
#else
  sched_yield();
#endif
}

// The same now and then, for what a loop may call that waits.
inline __host__ __device__ void let_others_run_sometimes() {
#ifdef __CUDA_ARCH__
  spun();
#endif
}

}  // namespace mxmaca
