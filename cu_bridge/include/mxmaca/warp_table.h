// Where the lanes of a warp leave pointers for each other: the threads of a block run on one processor's thread.
#pragma once

#ifdef __CUDACC__
#include "execution.h"

namespace mxmaca {

struct WarpTable {
  const void* first[32];
  const void* second[32];
};
static thread_local WarpTable __attribute__((unused)) warp_tables[32];

inline __device__ WarpTable& warp_table() { return warp_tables[linear_thread() / 32]; }

}  // namespace mxmaca
#endif
