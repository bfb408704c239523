// The allocations of this process, found by any address inside them.
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

// The allocation that holds `address`. `way` (0 or 1) chooses the cache line of the calling thread, so that the two
// sides of a copy do not push each other out.
bool findAllocation(const void* address, Allocation* found, int way = 0);

void insertAllocation(Allocation allocation);
bool eraseAllocation(const void* base, mcMemoryKind kind, Origin origin, Allocation* erased);
bool updateAllocation(const void* base, int file, size_t moved);
uint64_t nextAllocationId();

// Address space of whole pages, on a 2 MiB boundary from 2 MiB up, so that huge pages can back it.
void* mapMemory(size_t bytes, size_t* mapped, int file);

constexpr size_t kHugePage = size_t{2} << 20;

// pool.cpp: whether the block came from a pool, which then has it again.
bool returnToPool(void* pointer);
mcError_t releaseDeviceMemory(void* pointer);

// Takes `bytes` from a device's capacity, if the host can back them too. The caller gives them back to `account`.
bool chargeDevice(int device, size_t bytes, uint64_t* account);

mcError_t allocateOn(int device, mcMemoryKind kind, unsigned int flags, size_t bytes, void** pointer);

}  // namespace mc
