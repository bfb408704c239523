// Memory that is charged to the account of a device, or to that of pinned memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mc_runtime.h"

namespace mc {

constexpr size_t kHugePage = size_t{2} << 20;

// Address space of whole pages, on a 2 MiB boundary from 2 MiB up, so that huge pages can back it. `file`: a memfd, or
// -1.
void* mapMemory(size_t bytes, size_t* mapped, int file);

// Takes `bytes` from a device's capacity, if the host can back them too. The caller gives them back to `account`.
bool chargeDevice(int device, size_t bytes, uint64_t* account);

mcError_t allocateOn(int device, mcMemoryKind kind, unsigned int flags, size_t bytes, void** pointer);
mcError_t allocatePinned(unsigned int flags, size_t bytes, void** pointer);
// What is pending on the device of an allocation may use it: who ends the allocation calls this first, as CUDA waits
// then.
void finishUses(const void* pointer);
// Memory of `kind`; managed memory goes as the device's.
mcError_t releaseMemory(void* pointer, mcMemoryKind kind);

}  // namespace mc
