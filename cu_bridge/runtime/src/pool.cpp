// Stream-ordered allocation. Work is complete when launched, so a freed block can be given out again at once.

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device.h"
#include "memory.h"
#include "state.h"
#include "stream.h"

struct mcMemoryPool {
  int device = 0;
  std::mutex mutex;
  std::multimap<size_t, void*> free;
  uint64_t releaseThreshold = 0;
  uint64_t reserved = 0, reservedHigh = 0, used = 0, usedHigh = 0;
  int reuse[3] = {1, 1, 1};
};

namespace mc {
namespace {

struct Pools {
  std::mutex mutex;
  mcMemoryPool* standard[kMaxDevices] = {};
  mcMemoryPool* current[kMaxDevices] = {};
  struct Block {
    mcMemoryPool* pool;
    size_t bytes;
  };
  std::unordered_map<void*, Block> blocks;  // given out
};

Pools& pools() {
  static auto* const instance = new Pools;
  return *instance;
}

mcMemoryPool* standardPool(int device) {
  Pools& all = pools();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.standard[device] == nullptr) {
    all.standard[device] = new mcMemoryPool;
    all.standard[device]->device = device;
  }
  return all.standard[device];
}

// Gives free blocks back, largest first, until the pool holds at most `keep` bytes. The pool's mutex is held.
void trim(mcMemoryPool& pool, uint64_t keep) {
  while (pool.reserved > keep && !pool.free.empty()) {
    const auto largest = std::prev(pool.free.end());
    pool.reserved -= largest->first;
    releaseDeviceMemory(largest->second);
    pool.free.erase(largest);
  }
}

constexpr size_t kBlockUnit = 512;

}  // namespace

bool returnToPool(void* pointer) {
  Pools& all = pools();
  Pools::Block block{};
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.blocks.find(pointer);
    if (found == all.blocks.end()) return false;
    block = found->second;
    all.blocks.erase(found);
  }
  const std::lock_guard<std::mutex> lock(block.pool->mutex);
  block.pool->used -= block.bytes;
  block.pool->free.emplace(block.bytes, pointer);
  if (block.pool->reserved > block.pool->releaseThreshold) trim(*block.pool, block.pool->releaseThreshold);
  return true;
}

}  // namespace mc

using namespace mc;

mcError_t mcDeviceGetDefaultMemPool(mcMemoryPool_t* pool, int device) {
  if (pool == nullptr) return fail(mcErrorInvalidValue);
  if (visibleDevice(device) == nullptr) return fail(mcErrorInvalidDevice);
  *pool = standardPool(device);
  return mcSuccess;
}

mcError_t mcDeviceGetMemPool(mcMemoryPool_t* pool, int device) {
  const mcError_t problem = mcDeviceGetDefaultMemPool(pool, device);
  if (problem != mcSuccess) return problem;
  Pools& all = pools();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.current[device] != nullptr) *pool = all.current[device];
  return mcSuccess;
}

mcError_t mcDeviceSetMemPool(int device, mcMemoryPool_t pool) {
  if (visibleDevice(device) == nullptr) return fail(mcErrorInvalidDevice);
  if (pool == nullptr || pool->device != device) return fail(mcErrorInvalidValue);
  Pools& all = pools();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.current[device] = pool;
  return mcSuccess;
}

mcError_t mcMemPoolCreate(mcMemoryPool_t* pool, int device) {
  MC_RETURN_IF_STICKY();
  if (pool == nullptr || visibleDevice(device) == nullptr) return fail(mcErrorInvalidValue);
  *pool = new mcMemoryPool;
  (*pool)->device = device;
  return mcSuccess;
}

mcError_t mcMemPoolDestroy(mcMemoryPool_t pool) {
  if (pool == nullptr) return fail(mcErrorInvalidValue);
  {
    Pools& all = pools();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (pool == all.standard[pool->device]) return fail(mcErrorInvalidValue);
    if (all.current[pool->device] == pool) all.current[pool->device] = nullptr;
  }
  const std::lock_guard<std::mutex> poolLock(pool->mutex);
  trim(*pool, 0);
  // Blocks that are still out keep the object; their frees find it.
  return checkSticky();
}

mcError_t mcMemPoolGetAttribute(mcMemoryPool_t pool, mcPoolAttribute attribute, void* value) {
  if (pool == nullptr || value == nullptr) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(pool->mutex);
  auto* const number = static_cast<uint64_t*>(value);
  switch (attribute) {
    case mcPoolReuseFollowEventDependencies:
    case mcPoolReuseAllowOpportunistic:
    case mcPoolReuseAllowInternalDependencies:
      *static_cast<int*>(value) = pool->reuse[attribute - mcPoolReuseFollowEventDependencies];
      return mcSuccess;
    case mcPoolReleaseThreshold: *number = pool->releaseThreshold; return mcSuccess;
    case mcPoolReservedCurrent: *number = pool->reserved; return mcSuccess;
    case mcPoolReservedHigh: *number = pool->reservedHigh; return mcSuccess;
    case mcPoolUsedCurrent: *number = pool->used; return mcSuccess;
    case mcPoolUsedHigh: *number = pool->usedHigh; return mcSuccess;
  }
  return fail(mcErrorInvalidValue);
}

mcError_t mcMemPoolSetAttribute(mcMemoryPool_t pool, mcPoolAttribute attribute, void* value) {
  if (pool == nullptr || value == nullptr) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(pool->mutex);
  switch (attribute) {
    case mcPoolReuseFollowEventDependencies:
    case mcPoolReuseAllowOpportunistic:
    case mcPoolReuseAllowInternalDependencies:
      pool->reuse[attribute - mcPoolReuseFollowEventDependencies] = *static_cast<int*>(value);
      return mcSuccess;
    case mcPoolReleaseThreshold: pool->releaseThreshold = *static_cast<uint64_t*>(value); return mcSuccess;
    case mcPoolReservedHigh:
    case mcPoolUsedHigh:
      if (*static_cast<uint64_t*>(value) != 0) return fail(mcErrorInvalidValue);
      if (attribute == mcPoolReservedHigh) pool->reservedHigh = pool->reserved;
      if (attribute == mcPoolUsedHigh) pool->usedHigh = pool->used;
      return mcSuccess;
    default: return fail(mcErrorInvalidValue);
  }
}

mcError_t mcMemPoolTrimTo(mcMemoryPool_t pool, size_t bytesToKeep) {
  if (pool == nullptr) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(pool->mutex);
  trim(*pool, bytesToKeep);
  return checkSticky();
}

mcError_t mcMallocAsync(void** pointer, size_t bytes, mcStream_t stream) {
  const mcError_t problem = mcStreamCheck(stream);
  if (problem != mcSuccess) return problem;
  mcMemoryPool_t pool = nullptr;
  const mcError_t noPool = mcDeviceGetMemPool(&pool, streamDevice(stream));
  return noPool != mcSuccess ? noPool : mcMallocFromPoolAsync(pointer, bytes, pool, stream);
}

mcError_t mcMallocFromPoolAsync(void** pointer, size_t bytes, mcMemoryPool_t pool, mcStream_t stream) {
  const mcError_t problem = mcStreamCheck(stream);
  if (problem != mcSuccess) return problem;
  if (pointer == nullptr || pool == nullptr) return fail(mcErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return mcSuccess;
  if (bytes > SIZE_MAX / 4) return fail(mcErrorMemoryAllocation);
  size_t size = (bytes + kBlockUnit - 1) / kBlockUnit * kBlockUnit;
  const std::lock_guard<std::mutex> lock(pool->mutex);
  const auto fit = pool->free.lower_bound(size);
  // A block is not split, so one that is much too large stays for a request that needs it.
  if (fit != pool->free.end() && fit->first <= size + size / 4 + kBlockUnit) {
    size = fit->first;
    *pointer = fit->second;
    pool->free.erase(fit);
  } else {
    mcError_t error = allocateOn(pool->device, mcMemoryDevice, 0, size, pointer);
    if (error == mcErrorMemoryAllocation && !pool->free.empty()) {
      trim(*pool, 0);
      error = allocateOn(pool->device, mcMemoryDevice, 0, size, pointer);
      if (error == mcSuccess) threadState.lastError = mcSuccess;
    }
    if (error != mcSuccess) return error;
    pool->reserved += size;
    pool->reservedHigh = std::max(pool->reservedHigh, pool->reserved);
  }
  pool->used += size;
  pool->usedHigh = std::max(pool->usedHigh, pool->used);
  Pools& all = pools();
  const std::lock_guard<std::mutex> allLock(all.mutex);
  all.blocks[*pointer] = {pool, size};
  return mcSuccess;
}

mcError_t mcFreeAsync(void* pointer, mcStream_t stream) {
  const mcError_t problem = mcStreamCheck(stream);
  if (pointer == nullptr) return problem;
  const mcError_t error = mcFree(pointer);
  return problem != mcSuccess ? problem : error;
}
