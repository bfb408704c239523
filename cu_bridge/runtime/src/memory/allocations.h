// The registry of this process's allocations, found by any address inside them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mc_runtime.h"

namespace mc {

enum class Origin : uint8_t { Owned, Registered, Mapped, Imported };

struct Allocation {
  uintptr_t base;
  size_t size;     // bytes asked for
  size_t mapped;   // bytes of address space behind it
  size_t charged;  // bytes on the ledger
  uint64_t id;
  uint64_t account;
  int device;  // visible index
  unsigned int flags;
  int file;               // memfd that backs it, or -1
  size_t moved;           // bytes from the base on that lie in that memfd
  uint32_t range, memfd;  // the entries in the list of residency.h for the rest of it and for the memfd
  mcMemoryKind kind;
  Origin origin;
};

// The allocation that holds `address`, or nullptr; as it is now, until the thread asks again. `way` (0 or 1) chooses
// where the answer lies, so that the two sides of a copy do not push each other out.
const Allocation* findAllocation(const void* address, int way = 0);

// Registers an allocation under a new id. False: memory of the program's own (Origin::Registered) overlaps another one.
bool insertAllocation(const void* base, size_t size, size_t mapped, int device, mcMemoryKind kind, Origin origin,
                      unsigned int flags = 0, uint64_t account = 0, size_t charged = 0);
// The id that was given last.
uint64_t latestAllocation();
bool eraseAllocation(const void* base, mcMemoryKind kind, Origin origin, Allocation* erased);
// `moved` bytes from the base on lie in the memfd `file` now.
bool updateAllocation(const void* base, int file, size_t moved);

}  // namespace mc
