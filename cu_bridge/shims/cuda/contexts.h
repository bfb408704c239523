// What the files of the driver interface share about contexts.
#pragma once

#include <atomic>

#include "result.h"

// A context is a device's primary one; there are no others.
struct CUctx_st {
  std::atomic<unsigned int> flags{0};
  std::atomic<int> retained{0};
};

CUcontext primaryContext(int device);
