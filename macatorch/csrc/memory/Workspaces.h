#pragma once

#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstdint>

namespace macatorch {

// Note [Workspaces of cuBLAS]
// On hardware the first product on a stream makes upstream take a workspace for cuBLAS from the caching allocator,
// which keeps it until torch._C._cuda_clearCublasWorkspaces(): programs see it in their memory statistics, and have the
// memory that is left. Products here need none, but take it as well. Upstream looks for it at each product, which costs
// 5 % of a small one; so a thread remembers for which stream it has looked, until a workspace is given back. Who sees
// that is the allocator in front of upstream's (fast/DeviceAllocator.h); where there is none, upstream looks each time.
// Since 2.15 upstream takes one for each product and gives it back behind it, unless told to keep them: programs see it
// in the peak.

/// The state that the allocator and take_workspace share.
struct Workspaces {
  /// How many have been given back. A workspace that was seen before may be gone when this has changed.
  static std::atomic<uint64_t> returned;
  /// True without an allocator in front, and when one was taken past it.
  static std::atomic<bool> unseen;
  /// While the calling thread takes one.
  static thread_local bool taking;
};

/// Takes a workspace for the current stream of `device`, unless it has one; since 2.15 it is given back at once.
/// Graphs' operators take none: what they ask for has its place in the graph.
/// Raises: c10::OutOfMemoryError.
void take_workspace(c10::DeviceIndex device);

}  // namespace macatorch
