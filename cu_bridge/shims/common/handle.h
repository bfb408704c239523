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

// Whose handle it is. cuBLAS and cuBLASLt take each other's.
enum class HandleKind : int { kUntold, kBlas, kDnn, kSparse, kSolver, kFft, kRand, kNccl };

// Handles are opaque types of each library; all are this one inside. For a handle that isHandle knows.
template <class Handle>
LibraryHandle* handleOf(Handle handle) {
  return reinterpret_cast<LibraryHandle*>(const_cast<void*>(static_cast<const void*>(handle)));
}

// Whether it is a live handle of that kind. Any value may be asked about.
template <class Handle>
bool isHandle(Handle handle, HandleKind kind) {
  return mcHandleIs(handle, static_cast<int>(kind)) != 0;
}

// Creating a handle needs a device, as it does on real hardware.
template <class Handle>
bool createHandle(Handle* handle, HandleKind kind = HandleKind::kUntold) {
  int count = 0;
  if (mcGetDeviceCount(&count) != mcSuccess) return false;
  *handle = reinterpret_cast<Handle>(new LibraryHandle);
  mcHandleAdd(*handle, static_cast<int>(kind));
  return true;
}

// False if it is no live handle.
template <class Handle>
bool destroyHandle(Handle handle, HandleKind kind = HandleKind::kUntold) {
  if (mcHandleRemove(handle, static_cast<int>(kind)) == 0) return false;
  delete handleOf(handle);
  return true;
}

}  // namespace mxmaca
