// What the files of the driver interface share about contexts.
#pragma once

#include <atomic>

#include "result.h"

// A number that no other context of the process has.
inline unsigned long long nextContextId() {
  static std::atomic<unsigned long long> last{0};
  return ++last;
}

// A device's primary context, or one that cuCtxCreate made. All contexts of a device share its memory, and what is
// allocated while one is current outlives it.
struct CUctx_st {
  std::atomic<unsigned int> flags{0};
  std::atomic<int> retained{0};  // of a primary one
  int device = -1;               // of a created one
  unsigned int part = 0;         // of the device's multiprocessors: of one that a green context stands behind
  unsigned long long id = nextContextId();
  std::atomic<unsigned int> users{1};  // its creator, and those of cuCtxAttach
};

CUcontext primaryContext(int device);
// A context of a part of a device, and its end.
CUresult createPart(CUcontext* context, int device, unsigned int part);
CUresult destroyPart(CUcontext context);
// The device and the part of a context; false for any other address.
bool isContext(CUcontext context, int* device, unsigned int* part);
