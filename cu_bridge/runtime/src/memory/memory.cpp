// Allocating device, managed and pinned memory, and what is known about an address.

#include "capture/capture.h"
#include "devices/device.h"
#include "host/host_memory.h"
#include "memory/allocations.h"
#include "memory/device_memory.h"
#include "memory/graph_memory.h"
#include "memory/pool.h"
#include "profile/profile.h"
#include "state/state.h"
#include "state/stream_table.h"

using namespace mc;

namespace {
constexpr unsigned int kMappedHostMemory = 2;  // with unified addressing every host allocation is mapped

// A pool's, or one that a launch of a graph has left.
FreedBlock takeBlock(void* pointer) {
  FreedBlock block;
  block.ofPool = takeFromGraph(pointer, &block.giveBack);
  return block.ofPool ? block : takeFromProgram(pointer);
}
}  // namespace

mcError_t mcMalloc(void** pointer, size_t bytes) {
  const ProfiledCall call(mcCallMalloc, pointer, bytes);
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  if (pointer == nullptr) return fail(mcErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return mcSuccess;
  return allocateOn(threadState.device, mcMemoryDevice, 0, bytes, pointer);
}

mcError_t mcMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  if (pointer == nullptr || bytes == 0 || (flags != 1 && flags != 2)) return fail(mcErrorInvalidValue);
  return allocateOn(threadState.device, mcMemoryManaged, flags, bytes, pointer);
}

mcError_t mcFree(void* pointer) {
  const ProfiledCall call(mcCallFree, pointer);
  if (isForkedChild()) return checkSticky();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  if (pointer == nullptr) return checkSticky();
  const FreedBlock block = takeBlock(pointer);
  if (block.ofPool && !block.giveBack) return fail(mcErrorInvalidValue);  // free already
  finishUses(pointer);
  if (!block.ofPool) return releaseMemory(pointer, mcMemoryDevice);
  block.giveBack();
  return checkSticky();
}

mcError_t mcFreeAsync(void* pointer, mcStream_t stream) {
  const ProfiledCall call(mcCallFreeAsync, pointer, stream);
  mcError_t recorded = mcSuccess;
  const bool captured = isStream(stream) && isCaptured(stream);
  if (captured && freeInCapture(pointer, stream, &recorded)) return recorded;
  if (captured && pointer != nullptr) {
    return failWith(mcErrorInvalidValue, "a graph frees what one of its kind allocates, and this memory is not");
  }
  const mcError_t problem = checkUncaptured(stream);
  // After a lasting error memory is given back still.
  const bool lasting = problem != mcSuccess && problem == mcStickyError();
  if (pointer == nullptr || (problem != mcSuccess && !lasting)) return problem;
  if (lasting || !isPending(stream)) {
    const mcError_t error = mcFree(pointer);
    return lasting ? problem : error;
  }
  const FreedBlock block = takeBlock(pointer);
  if (!block.ofPool) return mcFree(pointer);
  if (!block.giveBack) return fail(mcErrorInvalidValue);  // free already
  const auto giveBack = [block] {
    block.giveBack();
    return mcSuccess;
  };
  const mcError_t error = submit(stream, "free", "", giveBack, mcTaskAlways);
  // The system gives no thread for it.
  if (error != mcErrorMemoryAllocation) return error;
  waitTurn(stream);
  return giveBack();
}

mcError_t mcHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  const ProfiledCall call(mcCallHostAlloc, pointer, bytes, flags);
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  constexpr unsigned int kKnownFlags = 7;  // portable, mapped, write-combined
  if (pointer == nullptr || (flags & ~kKnownFlags) != 0) return fail(mcErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return mcSuccess;
  return allocatePinned(flags | kMappedHostMemory, bytes, pointer);
}

mcError_t mcFreeHost(void* pointer) {
  const ProfiledCall call(mcCallFreeHost, pointer);
  if (!isForkedChild()) finishUses(pointer);
  return releaseMemory(pointer, mcMemoryHost);
}

mcError_t mcHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  MC_RETURN_IF_STICKY();
  const auto base = reinterpret_cast<uintptr_t>(pointer);
  if (pointer == nullptr || bytes == 0 || base + bytes < base) return fail(mcErrorInvalidValue);
  const bool inserted = insertAllocation(pointer, bytes, bytes, threadState.device, mcMemoryHost, Origin::Registered,
                                         flags | kMappedHostMemory);
  return inserted ? mcSuccess : fail(mcErrorHostMemoryAlreadyRegistered);
}

mcError_t mcHostUnregister(void* pointer) {
  Allocation allocation;
  if (pointer == nullptr) return fail(mcErrorInvalidValue);
  if (!isForkedChild()) finishUses(pointer);
  if (!eraseAllocation(pointer, mcMemoryHost, Origin::Registered, &allocation)) {
    return fail(mcErrorHostMemoryNotRegistered);
  }
  return checkSticky();
}

mcError_t mcHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  MC_RETURN_IF_STICKY();
  const Allocation* const allocation = findAllocation(host);
  if (device == nullptr || flags != 0) return fail(mcErrorInvalidValue);
  if (allocation == nullptr || allocation->kind != mcMemoryHost) return fail(mcErrorInvalidValue);
  *device = host;  // unified addressing
  return mcSuccess;
}

mcError_t mcHostGetFlags(unsigned int* flags, void* host) {
  const Allocation* const allocation = findAllocation(host);
  if (flags == nullptr || allocation == nullptr || allocation->kind != mcMemoryHost) return fail(mcErrorInvalidValue);
  *flags = allocation->flags;
  return mcSuccess;
}

mcError_t mcMemGetInfo(size_t* free, size_t* total) {
  MC_RETURN_IF_STICKY();
  if (free == nullptr || total == nullptr) return fail(mcErrorInvalidValue);
  const Device* const device = visibleDevice(threadState.device);
  if (device == nullptr) return fail(system().visible.empty() ? mcErrorNoDevice : mcErrorInvalidDevice);
  useDevice(threadState.device);
  mcDeviceMemoryInfo(device->properties.physicalIndex, free, total);
  *free = hostAvailable(*free);
  return mcSuccess;
}

uint64_t mcLatestAllocation(void) { return latestAllocation(); }

mcError_t mcPointerGetAttributes(mcPointerAttributes* attributes, const void* pointer) {
  MC_RETURN_IF_STICKY();
  if (attributes == nullptr) return fail(mcErrorInvalidValue);
  const Allocation* const found = findAllocation(pointer);
  if (found == nullptr) {
    *attributes = {mcMemoryUnregistered, -2, nullptr, 0, 0, 0};
  } else {
    *attributes = {found->kind, found->device, reinterpret_cast<void*>(found->base),
                   found->size, found->id,     found->flags};
  }
  return mcSuccess;
}
