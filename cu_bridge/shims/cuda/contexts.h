// What the files of the driver interface share about contexts.
#pragma once

#include <atomic>

#include "result.h"

// A device's primary context, or one that cuCtxCreate made. All contexts of a device share its memory, and what is
// allocated while one is current outlives it.
struct CUctx_st {
  std::atomic<unsigned int> flags{0};
  std::atomic<int> retained{0};  // of a primary one
  int device = -1;               // of a created one
};

CUcontext primaryContext(int device);
