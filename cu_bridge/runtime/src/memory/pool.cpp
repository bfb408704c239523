#include "memory/pool.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "capture/capture.h"
#include "devices/device.h"
#include "handle_table.h"
#include "mc_device_limits.h"
#include "memory/device_memory.h"
#include "memory/graph_memory.h"
#include "profile/profile.h"
#include "state/locked.h"
#include "state/state.h"
#include "state/stream_table.h"

namespace mc {

struct Pool {
  int device = 0;
  std::mutex mutex;
  std::multimap<size_t, void*> free;
  uint64_t releaseThreshold = 0;
  uint64_t reserved = 0, reservedHigh = 0, used = 0, usedHigh = 0;
  int reuse[3] = {1, 1, 1};
};

}  // namespace mc

// The handle of a pool. Blocks that are still out when it is destroyed keep the pool itself.
struct mcMemoryPool {
  std::shared_ptr<mc::Pool> pool;
};

namespace mc {
namespace {

HandleTable<mcMemoryPool> poolHandles;

mcMemoryPool* createPool(int device) {
  auto pool = std::make_shared<Pool>();
  pool->device = device;
  return poolHandles.create(std::move(pool));
}

// nullptr if it is no pool.
std::shared_ptr<Pool> poolOf(mcMemoryPool* handle) { return poolHandles.contains(handle) ? handle->pool : nullptr; }

struct Pools {
  mcMemoryPool* standard[limits::kDevices] = {};
  mcMemoryPool* current[limits::kDevices] = {};
  struct Block {
    std::shared_ptr<Pool> pool;
    size_t bytes;
  };
  std::unordered_map<void*, Block> blocks;  // given out
  std::unordered_set<const void*> all;      // and those that are free
};

mcMemoryPool* standardPool(int device) {
  const Writing<Pools> all;
  if (all->standard[device] == nullptr) all->standard[device] = createPool(device);
  return all->standard[device];
}

// Gives free blocks back, largest first, until the pool holds at most `keep` bytes. The pool's mutex is held.
void trim(Pool& pool, uint64_t keep) {
  while (pool.reserved > keep && !pool.free.empty()) {
    const auto largest = std::prev(pool.free.end());
    pool.reserved -= largest->first;
    Writing<Pools>()->all.erase(largest->second);
    releaseMemory(largest->second, mcMemoryDevice);
    pool.free.erase(largest);
  }
}

constexpr size_t kBlockUnit = 512;

// Gives out at least `wanted` bytes of the pool. MemoryAllocation: there are none.
mcError_t takeBlock(const std::shared_ptr<Pool>& owner, size_t wanted, void** pointer) {
  Pool& pool = *owner;
  size_t size = wanted;
  const std::lock_guard<std::mutex> lock(pool.mutex);
  const auto fit = pool.free.lower_bound(size);
  // A block is not split, so one that is much too large stays for a request that needs it.
  if (fit != pool.free.end() && fit->first <= size + size / 4 + kBlockUnit) {
    size = fit->first;
    *pointer = fit->second;
    pool.free.erase(fit);
  } else {
    mcError_t error = allocateOn(pool.device, mcMemoryDevice, 0, size, pointer);
    if (error == mcErrorMemoryAllocation && !pool.free.empty()) {
      trim(pool, 0);
      error = allocateOn(pool.device, mcMemoryDevice, 0, size, pointer);
      if (error == mcSuccess) threadState.lastError = mcSuccess;
    }
    if (error != mcSuccess) return error;
    pool.reserved += size;
    pool.reservedHigh = std::max(pool.reservedHigh, pool.reserved);
  }
  pool.used += size;
  pool.usedHigh = std::max(pool.usedHigh, pool.used);
  const Writing<Pools> all;
  all->all.insert(*pointer);
  all->blocks[*pointer] = {owner, size};
  return mcSuccess;
}

}  // namespace

FreedBlock takeFromProgram(void* pointer) {
  Pools::Block block{};
  {
    const Writing<Pools> all;
    const auto found = all->blocks.find(pointer);
    if (found == all->blocks.end()) return {all->all.count(pointer) != 0, nullptr};
    block = found->second;
    all->blocks.erase(found);
  }
  const auto giveBack = [block, pointer] {
    Pool& pool = *block.pool;
    const std::lock_guard<std::mutex> lock(pool.mutex);
    pool.used -= block.bytes;
    pool.free.emplace(block.bytes, pointer);
    if (pool.reserved > pool.releaseThreshold) trim(pool, pool.releaseThreshold);
  };
  return {true, giveBack};
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
  const Writing<Pools> all;
  if (all->current[device] != nullptr) *pool = all->current[device];
  return mcSuccess;
}

mcError_t mcDeviceSetMemPool(int device, mcMemoryPool_t pool) {
  if (visibleDevice(device) == nullptr) return fail(mcErrorInvalidDevice);
  const std::shared_ptr<Pool> wanted = poolOf(pool);
  if (wanted == nullptr || wanted->device != device) return fail(mcErrorInvalidValue);
  const Writing<Pools> all;
  all->current[device] = pool;
  return mcSuccess;
}

mcError_t mcMemPoolCreate(mcMemoryPool_t* pool, int device) {
  MC_RETURN_IF_STICKY();
  if (pool == nullptr || visibleDevice(device) == nullptr) return fail(mcErrorInvalidValue);
  *pool = createPool(device);
  return mcSuccess;
}

mcError_t mcMemPoolDestroy(mcMemoryPool_t handle) {
  const std::shared_ptr<Pool> pool = poolOf(handle);
  if (pool == nullptr) return fail(mcErrorInvalidValue);
  {
    const Writing<Pools> all;
    if (handle == all->standard[pool->device]) return fail(mcErrorInvalidValue);
    if (all->current[pool->device] == handle) all->current[pool->device] = nullptr;
  }
  if (!poolHandles.destroy(handle)) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> poolLock(pool->mutex);
  pool->releaseThreshold = 0;  // what comes back from now on goes at once
  trim(*pool, 0);
  return checkSticky();
}

mcError_t mcMemPoolGetAttribute(mcMemoryPool_t handle, mcPoolAttribute attribute, void* value) {
  const std::shared_ptr<Pool> pool = poolOf(handle);
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

mcError_t mcMemPoolSetAttribute(mcMemoryPool_t handle, mcPoolAttribute attribute, void* value) {
  const std::shared_ptr<Pool> pool = poolOf(handle);
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

mcError_t mcMemPoolGetDevice(mcMemoryPool_t handle, int* device) {
  const std::shared_ptr<Pool> pool = poolOf(handle);
  if (pool == nullptr || device == nullptr) return fail(mcErrorInvalidValue);
  *device = pool->device;
  return checkSticky();
}

mcError_t mcMemPoolTrimTo(mcMemoryPool_t handle, size_t bytesToKeep) {
  const std::shared_ptr<Pool> pool = poolOf(handle);
  if (pool == nullptr) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(pool->mutex);
  trim(*pool, bytesToKeep);
  return checkSticky();
}

mcError_t mcMallocAsync(void** pointer, size_t bytes, mcStream_t stream) {
  const ProfiledCall call(mcCallMallocAsync, pointer, bytes, stream);
  if (isStream(stream) && isCaptured(stream)) return allocateInCapture(pointer, streamDevice(stream), bytes, stream);
  const mcError_t problem = checkUncaptured(stream);
  if (problem != mcSuccess) return problem;
  mcMemoryPool_t pool = nullptr;
  const mcError_t noPool = mcDeviceGetMemPool(&pool, streamDevice(stream));
  return noPool != mcSuccess ? noPool : mcMallocFromPoolAsync(pointer, bytes, pool, stream);
}

mcError_t mcMallocFromPoolAsync(void** pointer, size_t bytes, mcMemoryPool_t handle, mcStream_t stream) {
  if (isStream(stream) && isCaptured(stream)) {
    const std::shared_ptr<Pool> owner = poolOf(handle);
    if (owner == nullptr) return fail(mcErrorInvalidValue);
    return allocateInCapture(pointer, owner->device, bytes, stream);
  }
  const mcError_t problem = checkUncaptured(stream);
  if (problem != mcSuccess) return problem;
  const std::shared_ptr<Pool> pool = poolOf(handle);
  if (pointer == nullptr || pool == nullptr) return fail(mcErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return mcSuccess;
  if (bytes > SIZE_MAX / 4) return fail(mcErrorMemoryAllocation);
  const size_t size = (bytes + kBlockUnit - 1) / kBlockUnit * kBlockUnit;
  const mcError_t error = takeBlock(pool, size, pointer);
  if (error != mcErrorMemoryAllocation || !isPending(stream)) return error;
  // Blocks whose free has not been reached.
  waitTurn(stream);
  const mcError_t again = takeBlock(pool, size, pointer);
  if (again == mcSuccess) threadState.lastError = mcSuccess;
  return again;
}
