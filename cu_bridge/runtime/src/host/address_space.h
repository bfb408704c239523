// Address space for memory of the device, far from everything else in the process.
#pragma once

#include <cstddef>

namespace mc {

// Maps `bytes`, whole pages, on a boundary of `alignment`, a power of two and at least a page. `protection`, `flags`
// and `file` are mmap's. nullptr: the system refuses.
void* mapApart(size_t bytes, size_t alignment, int protection, int flags, int file);

}  // namespace mc
