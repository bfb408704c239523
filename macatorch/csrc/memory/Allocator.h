#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstring>

#include "arguments/Release.h"

namespace macatorch {

#if MACATORCH_TORCH_AT_LEAST(2, 4)
using c10::Allocator;

inline void copy_by(const c10::Allocator& allocator, void* target, const void* source, size_t bytes) {
  allocator.copy_data(target, source, bytes);
}
#else
/// Upstream's as it is in later releases: it may change while it allocates, and copies what it has allocated.
struct Allocator : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) const final { return const_cast<Allocator*>(this)->allocate(bytes); }
  virtual c10::DataPtr allocate(size_t bytes) = 0;
  virtual void copy_data(void* target, const void* source, size_t bytes) const = 0;

 protected:
  static void default_copy_data(void* target, const void* source, size_t bytes) { std::memcpy(target, source, bytes); }
};

inline void copy_by(const c10::Allocator& /*copies nothing itself*/, void* target, const void* source, size_t bytes) {
  std::memcpy(target, source, bytes);
}
#endif

}  // namespace macatorch
