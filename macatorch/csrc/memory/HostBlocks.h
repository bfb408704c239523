#pragma once

#include <cstddef>

#include "memory/Allocator.h"

namespace macatorch {

// Note [Host blocks]
// A large host tensor that `.cpu()` fills lies in new memory, which the kernel has to clear page by page before the
// copy writes it: with huge pages that still takes half as long as the copy. A program that fetches results does so
// again and again, so a block that it gave back is kept for the next one, up to `kKept` bytes. A block that is kept is
// marked as free (MADV_FREE): the kernel takes its pages whenever it needs memory, before it swaps anything.

/// The allocator of large host tensors that are filled from a device: blocks of whole huge pages.
class HostBlocks final : public Allocator {
 public:
  /// From this size on it pays.
  static constexpr size_t kLeast = size_t{4} << 20;
  /// Blocks that nobody uses take at most so much.
  static constexpr size_t kKept = size_t{512} << 20;

  static HostBlocks& get();

  /// Uninitialised memory of `bytes`. Smaller sizes (a storage that is resized) and what the system refuses are left to
  /// the CPU's own allocator, which has upstream's error for it.
  c10::DataPtr allocate(size_t bytes) override;
  void copy_data(void* target, const void* source, size_t bytes) const override;
};

}  // namespace macatorch
