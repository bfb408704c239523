#include "memory/allocations.h"

#include <atomic>
#include <iterator>
#include <map>

#include "host/residency.h"
#include "state/locked.h"

namespace mc {
namespace {

struct Registry {
  std::map<uintptr_t, Allocation> byBase;
  uint64_t lastId = 0;
  std::atomic<uint64_t> generation{1};  // changes with every insertion and removal
};

// The answer of the last lookup holds for the whole range [low, high): an allocation, or the gap between two.
struct CachedLookup {
  uint64_t generation;
  uintptr_t low, high;
  bool found;
  Allocation allocation;
};
thread_local CachedLookup cachedLookups[2];

}  // namespace

const Allocation* findAllocation(const void* address, int way) {
  CachedLookup& cached = cachedLookups[way];
  const auto target = reinterpret_cast<uintptr_t>(address);
  if (cached.generation != Guarded<Registry>::instance().data.generation.load(std::memory_order_acquire) ||
      target < cached.low || target >= cached.high) {
    const Reading<Registry> all;
    cached.generation = all->generation.load(std::memory_order_relaxed);
    auto after = all->byBase.upper_bound(target);
    cached.low = 0;
    cached.high = after == all->byBase.end() ? UINTPTR_MAX : after->first;
    cached.found = false;
    if (after != all->byBase.begin()) {
      const Allocation& before = std::prev(after)->second;
      const uintptr_t end = before.base + before.size;
      cached.found = target < end;
      cached.low = cached.found ? before.base : end;
      if (cached.found) {
        cached.high = end;
        cached.allocation = before;
      }
    }
  }
  return cached.found ? &cached.allocation : nullptr;
}

bool insertAllocation(const void* base, size_t size, size_t mapped, int device, mcMemoryKind kind, Origin origin,
                      unsigned int flags, uint64_t account, size_t charged) {
  const auto start = reinterpret_cast<uintptr_t>(base);
  const Writing<Registry> all;
  // Memory that the system has just given to the runtime may lie where the program once registered its own.
  if (origin == Origin::Registered) {
    const auto after = all->byBase.lower_bound(start);
    const bool overlapsNext = after != all->byBase.end() && after->first < start + size;
    const bool overlapsPrevious =
        after != all->byBase.begin() && std::prev(after)->second.base + std::prev(after)->second.size > start;
    if (overlapsNext || overlapsPrevious) return false;
  }
  const uint32_t range = charged != 0 ? listRange(start, mapped) : kUnlisted;
  all->byBase[start] = {start, size, mapped, charged, ++all->lastId, account, device,
                        flags, -1,   0,      range,   kUnlisted,     kind,    origin};
  all->generation.fetch_add(1, std::memory_order_release);
  return true;
}

uint64_t latestAllocation() {
  const Reading<Registry> all;
  return all->lastId;
}

bool eraseAllocation(const void* base, mcMemoryKind kind, Origin origin, Allocation* erased) {
  const Writing<Registry> all;
  const auto found = all->byBase.find(reinterpret_cast<uintptr_t>(base));
  if (found == all->byBase.end() || found->second.origin != origin) return false;
  const bool device = kind == mcMemoryDevice && found->second.kind == mcMemoryManaged;
  if (found->second.kind != kind && !device) return false;
  *erased = found->second;
  unlist(erased->range);
  unlist(erased->memfd);
  all->byBase.erase(found);
  all->generation.fetch_add(1, std::memory_order_release);
  return true;
}

bool updateAllocation(const void* base, int file, size_t moved) {
  const Writing<Registry> all;
  const auto found = all->byBase.find(reinterpret_cast<uintptr_t>(base));
  if (found == all->byBase.end()) return false;
  Allocation& allocation = found->second;
  unlist(allocation.range);
  unlist(allocation.memfd);
  const size_t rest = allocation.mapped - moved;
  allocation.range = rest > 0 ? listRange(allocation.base + moved, rest) : kUnlisted;
  allocation.memfd = listMemfd(file, moved);
  allocation.file = file;
  allocation.moved = moved;
  all->generation.fetch_add(1, std::memory_order_release);
  return true;
}

}  // namespace mc
