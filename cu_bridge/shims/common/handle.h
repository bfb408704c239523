// A library's handle: what its set functions store, and its get functions read.
#pragma once

#include <atomic>
#include <cstddef>

#include "mc_runtime.h"

namespace mxmaca {

struct LibraryHandle {
  void* stream = nullptr;
  int pointerMode = 0;
  int mathMode = 0;
  int atomicsMode = 0;
  int multiprocessors = 0;
  void* workspace = nullptr;
  size_t workspaceBytes = 0;
};

// Handles are opaque types of each library; all are this one inside.
template <class Handle>
LibraryHandle* handleOf(Handle handle) {
  return reinterpret_cast<LibraryHandle*>(const_cast<void*>(static_cast<const void*>(handle)));
}

// Creating a handle needs a device, as it does on real hardware.
template <class Handle>
bool createHandle(Handle* handle) {
  int count = 0;
  if (mcGetDeviceCount(&count) != mcSuccess) return false;
  *handle = reinterpret_cast<Handle>(new LibraryHandle);
  return true;
}

template <class Handle>
void destroyHandle(Handle handle) {
  delete handleOf(handle);
}

}  // namespace mxmaca
