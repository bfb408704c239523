#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "capture.h"
#include "device.h"
#include "host_memory.h"
#include "kernel_registry.h"
#include "ledger.h"
#include "residency.h"
#include "sanitizer.h"
#include "state.h"

namespace mc {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::map<uintptr_t, Allocation> byBase;
  std::atomic<uint64_t> generation{1};  // changes with every insertion and removal
};

Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

// The answer of the last lookup holds for the whole range [low, high): an allocation, or the gap between two.
struct CachedLookup {
  uint64_t generation;
  uintptr_t low, high;
  bool found;
  Allocation allocation;
};
thread_local CachedLookup cachedLookups[2];

size_t pageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t roundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

uint64_t nextAllocationId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

bool findAllocation(const void* address, Allocation* found, int way) {
  Registry& all = registry();
  CachedLookup& cached = cachedLookups[way];
  const auto target = reinterpret_cast<uintptr_t>(address);
  if (cached.generation != all.generation.load(std::memory_order_acquire) || target < cached.low ||
      target >= cached.high) {
    const std::shared_lock<std::shared_mutex> lock(all.mutex);
    cached.generation = all.generation.load(std::memory_order_relaxed);
    auto after = all.byBase.upper_bound(target);
    cached.low = 0;
    cached.high = after == all.byBase.end() ? UINTPTR_MAX : after->first;
    cached.found = false;
    if (after != all.byBase.begin()) {
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
  if (cached.found) *found = cached.allocation;
  return cached.found;
}

void insertAllocation(Allocation allocation) {
  Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  allocation.range = allocation.charged != 0 ? listRange(allocation.base, allocation.mapped) : kUnlisted;
  allocation.memfd = kUnlisted;
  all.byBase[allocation.base] = allocation;
  all.generation.fetch_add(1, std::memory_order_release);
}

bool eraseAllocation(const void* base, mcMemoryKind kind, Origin origin, Allocation* erased) {
  Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.byBase.find(reinterpret_cast<uintptr_t>(base));
  if (found == all.byBase.end() || found->second.origin != origin) return false;
  const bool device = kind == mcMemoryDevice && found->second.kind == mcMemoryManaged;
  if (found->second.kind != kind && !device) return false;
  *erased = found->second;
  unlist(erased->range);
  unlist(erased->memfd);
  all.byBase.erase(found);
  all.generation.fetch_add(1, std::memory_order_release);
  return true;
}

bool updateAllocation(const void* base, int file, size_t moved) {
  Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.byBase.find(reinterpret_cast<uintptr_t>(base));
  if (found == all.byBase.end()) return false;
  Allocation& allocation = found->second;
  unlist(allocation.range);
  unlist(allocation.memfd);
  const size_t rest = allocation.mapped - moved;
  allocation.range = rest > 0 ? listRange(allocation.base + moved, rest) : kUnlisted;
  allocation.memfd = listMemfd(file, moved);
  allocation.file = file;
  allocation.moved = moved;
  all.generation.fetch_add(1, std::memory_order_release);
  return true;
}

void* mapMemory(size_t bytes, size_t* mapped, int file) {
  const size_t length = roundUp(bytes, pageSize());
  const size_t slack = length >= kHugePage ? kHugePage : 0;
  const int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  // MAP_NORESERVE: whether the host can back the memory is decided by hostCanBack, not by the overcommit heuristic.
  void* const whole =
      mmap(nullptr, length + slack, slack != 0 ? PROT_NONE : PROT_READ | PROT_WRITE,
           slack != 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : flags | MAP_NORESERVE, slack != 0 ? -1 : file, 0);
  if (whole == MAP_FAILED) return nullptr;
  *mapped = length;
  if (slack == 0) return whole;
  const auto start = reinterpret_cast<uintptr_t>(whole);
  const uintptr_t aligned = roundUp(start, kHugePage);
  if (aligned > start) munmap(whole, aligned - start);
  const uintptr_t end = start + length + slack;
  if (end > aligned + length) munmap(reinterpret_cast<void*>(aligned + length), end - aligned - length);
  auto* const memory = reinterpret_cast<void*>(aligned);
  if (mmap(memory, length, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED) {
    munmap(memory, length);
    return nullptr;
  }
  madvise(memory, length, MADV_HUGEPAGE);
  return memory;
}

namespace {

// hostCanBack reads files of /proc: ask it for every large allocation, for small ones each time they add up. `bytes` are
// charged already.
bool hostGrants(size_t bytes) {
  constexpr size_t kUnchecked = size_t{8} << 20;
  static std::atomic<size_t> sinceCheck{kUnchecked};
  if (bytes < kHugePage && sinceCheck.fetch_add(bytes, std::memory_order_relaxed) + bytes < kUnchecked) return true;
  if (!hostCanBack(0)) return false;
  sinceCheck.store(0, std::memory_order_relaxed);
  return true;
}

// Charges, maps and registers. `account` 0: not on the ledger of a device.
mcError_t allocate(uint64_t account, size_t capacity, Allocation allocation, void** pointer) {
  // A size near the top would wrap when rounded; nothing has that much.
  if (allocation.size > SIZE_MAX / 4) return fail(mcErrorMemoryAllocation);
  const size_t charged = roundUp(allocation.size, pageSize());
  if (!ledger().charge(account, charged, capacity)) return fail(mcErrorMemoryAllocation);
  size_t mapped = 0;
  const size_t guard = addressesAreChecked() ? pageSize() : 0;
  void* const memory = hostGrants(charged) ? mapMemory(allocation.size + guard, &mapped, -1) : nullptr;
  if (memory == nullptr) {
    ledger().release(account, charged);
    return fail(mcErrorMemoryAllocation);
  }
  // A forked child may not use the device. If it inherited the pages, every later write here would first copy one, and
  // the copies would be on nobody's account.
  if (allocation.kind != mcMemoryHost) madvise(memory, mapped, MADV_DONTFORK);
  if (guard != 0) poison(static_cast<char*>(memory) + allocation.size, mapped - allocation.size);
  markInitialized();
  allocation.base = reinterpret_cast<uintptr_t>(memory);
  allocation.mapped = mapped;
  allocation.charged = charged;
  allocation.account = account;
  allocation.id = nextAllocationId();
  insertAllocation(allocation);
  *pointer = memory;
  return mcSuccess;
}

mcError_t release(void* pointer, mcMemoryKind kind) {
  if (pointer == nullptr || isForkedChild()) return checkSticky();
  Allocation allocation;
  if (!eraseAllocation(pointer, kind, Origin::Owned, &allocation)) return fail(mcErrorInvalidValue);
  unpoison(pointer, allocation.mapped);
  munmap(pointer, allocation.mapped);
  if (allocation.file >= 0) close(allocation.file);
  ledger().release(allocation.account, allocation.charged);
  return checkSticky();
}

}  // namespace

mcError_t releaseDeviceMemory(void* pointer) { return release(pointer, mcMemoryDevice); }

bool chargeDevice(int device, size_t bytes, uint64_t* account) {
  const Device* const target = visibleDevice(device);
  if (target == nullptr || !ledger().charge(target->accountKey, bytes, target->properties.memory)) return false;
  *account = target->accountKey;
  if (hostGrants(bytes)) return true;
  ledger().release(*account, bytes);
  return false;
}

mcError_t allocateOn(int device, mcMemoryKind kind, unsigned int flags, size_t bytes, void** pointer) {
  const Device* const target = visibleDevice(device);
  if (target == nullptr) return fail(system().visible.empty() ? mcErrorNoDevice : mcErrorInvalidDevice);
  Allocation allocation{};
  allocation.size = bytes;
  allocation.device = device;
  allocation.flags = flags;
  allocation.file = -1;
  allocation.kind = kind;
  allocation.origin = Origin::Owned;
  return allocate(target->accountKey, target->properties.memory, allocation, pointer);
}

}  // namespace mc

using namespace mc;

mcError_t mcMalloc(void** pointer, size_t bytes) {
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
  if (isForkedChild()) return checkSticky();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  if (pointer != nullptr && returnToPool(pointer)) return checkSticky();
  return releaseDeviceMemory(pointer);
}

mcError_t mcHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  constexpr unsigned int kKnownFlags = 7;  // portable, mapped, write-combined
  if (pointer == nullptr || (flags & ~kKnownFlags) != 0) return fail(mcErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return mcSuccess;
  Allocation allocation{};
  allocation.size = bytes;
  allocation.device = threadState.device;
  allocation.flags = flags | 2;  // every host allocation is mapped, as with unified addressing
  allocation.file = -1;
  allocation.kind = mcMemoryHost;
  allocation.origin = Origin::Owned;
  return allocate(kPinnedAccount, SIZE_MAX, allocation, pointer);
}

mcError_t mcFreeHost(void* pointer) { return release(pointer, mcMemoryHost); }

mcError_t mcHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  MC_RETURN_IF_STICKY();
  const auto base = reinterpret_cast<uintptr_t>(pointer);
  if (pointer == nullptr || bytes == 0 || base + bytes < base) return fail(mcErrorInvalidValue);
  Allocation allocation{};
  allocation.base = base;
  allocation.size = allocation.mapped = bytes;
  allocation.device = threadState.device;
  allocation.flags = flags | 2;
  allocation.file = -1;
  allocation.kind = mcMemoryHost;
  allocation.origin = Origin::Registered;
  allocation.range = allocation.memfd = kUnlisted;
  allocation.id = nextAllocationId();
  Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto after = all.byBase.lower_bound(base);
  const bool overlapsNext = after != all.byBase.end() && after->first < base + bytes;
  const bool overlapsPrevious =
      after != all.byBase.begin() && std::prev(after)->second.base + std::prev(after)->second.size > base;
  if (overlapsNext || overlapsPrevious) return fail(mcErrorHostMemoryAlreadyRegistered);
  all.byBase[base] = allocation;
  all.generation.fetch_add(1, std::memory_order_release);
  return mcSuccess;
}

mcError_t mcHostUnregister(void* pointer) {
  Allocation allocation;
  if (pointer == nullptr) return fail(mcErrorInvalidValue);
  if (!eraseAllocation(pointer, mcMemoryHost, Origin::Registered, &allocation)) {
    return fail(mcErrorHostMemoryNotRegistered);
  }
  return checkSticky();
}

mcError_t mcHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  MC_RETURN_IF_STICKY();
  Allocation allocation;
  if (device == nullptr || flags != 0) return fail(mcErrorInvalidValue);
  if (!findAllocation(host, &allocation) || allocation.kind != mcMemoryHost) return fail(mcErrorInvalidValue);
  *device = host;  // unified addressing
  return mcSuccess;
}

mcError_t mcHostGetFlags(unsigned int* flags, void* host) {
  Allocation allocation;
  if (flags == nullptr || !findAllocation(host, &allocation) || allocation.kind != mcMemoryHost) {
    return fail(mcErrorInvalidValue);
  }
  *flags = allocation.flags;
  return mcSuccess;
}

mcError_t mcMemGetInfo(size_t* free, size_t* total) {
  MC_RETURN_IF_STICKY();
  if (free == nullptr || total == nullptr) return fail(mcErrorInvalidValue);
  const Device* const device = visibleDevice(threadState.device);
  if (device == nullptr) return fail(system().visible.empty() ? mcErrorNoDevice : mcErrorInvalidDevice);
  mcDeviceMemoryInfo(device->properties.physicalIndex, free, total);
  *free = hostAvailable(*free);
  return mcSuccess;
}

mcError_t mcPointerGetAttributes(mcPointerAttributes* attributes, const void* pointer) {
  MC_RETURN_IF_STICKY();
  if (attributes == nullptr) return fail(mcErrorInvalidValue);
  Allocation allocation;
  if (!findAllocation(pointer, &allocation)) {
    *attributes = {mcMemoryUnregistered, -2, nullptr, 0, 0, 0};
    return mcSuccess;
  }
  *attributes = {allocation.kind, allocation.device, reinterpret_cast<void*>(allocation.base),
                 allocation.size, allocation.id,     allocation.flags};
  return mcSuccess;
}

namespace {

// Bytes from the first to the last of `height` rows; false if that is no size.
bool spanOfRows(size_t pitch, size_t width, size_t height, size_t* bytes) {
  return !__builtin_mul_overflow(height - 1, pitch, bytes) && !__builtin_add_overflow(*bytes, width, bytes);
}

enum class Side { Unknown, Host, Device, Either };

// Where [pointer, pointer + bytes) lies. Adjacent mappings count as one range. false: it runs out of its allocation.
bool classify(const void* pointer, size_t bytes, int way, Side* side) {
  Allocation allocation;
  if (!findAllocation(pointer, &allocation, way)) {
    *side = Side::Unknown;
    return true;
  }
  *side = allocation.kind == mcMemoryDevice ? Side::Device
          : allocation.kind == mcMemoryHost ? Side::Host
                                            : Side::Either;
  if (bytes > UINTPTR_MAX - reinterpret_cast<uintptr_t>(pointer)) return false;
  if (allocation.kind == mcMemoryHost) return true;  // the rest may be plain host memory
  const uintptr_t end = reinterpret_cast<uintptr_t>(pointer) + bytes;
  for (uintptr_t next = allocation.base + allocation.size; next < end; next = allocation.base + allocation.size) {
    if (!findAllocation(reinterpret_cast<const void*>(next), &allocation, way)) return false;
  }
  return true;
}

mcError_t checkCopy(const void* to, size_t toBytes, const void* from, size_t fromBytes, mcMemcpyKind kind) {
  Side target;
  Side source;
  if (to == nullptr || from == nullptr) return mcErrorInvalidValue;
  if (!classify(to, toBytes, 0, &target) || !classify(from, fromBytes, 1, &source)) return mcErrorInvalidValue;
  if (kind == mcMemcpyDefault) return mcSuccess;
  const bool wantsDevice[2] = {kind == mcMemcpyHostToDevice || kind == mcMemcpyDeviceToDevice,
                               kind == mcMemcpyDeviceToHost || kind == mcMemcpyDeviceToDevice};
  const Side sides[2] = {target, source};
  const void* const places[2] = {to, from};
  const size_t sizes[2] = {toBytes, fromBytes};
  for (int i = 0; i < 2; ++i) {
    // Pinned memory is an address of both sides. Plain memory is none of the device's, and the reverse; a variable of
    // device code is no allocation.
    const bool variable = wantsDevice[i] && sides[i] == Side::Unknown && insideVariable(places[i], sizes[i]);
    if (!variable && (wantsDevice[i] ? sides[i] == Side::Unknown : sides[i] == Side::Device))
      return mcErrorInvalidValue;
  }
  return mcSuccess;
}

mcError_t checkRange(const void* pointer, size_t bytes) {
  Side side;
  if (!classify(pointer, bytes, 0, &side)) return mcErrorInvalidValue;
  return side != Side::Unknown || insideVariable(pointer, bytes) ? mcSuccess : mcErrorInvalidValue;
}

}  // namespace

namespace {

mcError_t copyChecked(void* to, const void* from, size_t bytes, mcMemcpyKind kind) {
  if (kind < mcMemcpyHostToHost || kind > mcMemcpyDefault) return fail(mcErrorInvalidMemcpyDirection);
  if (bytes == 0) return mcSuccess;
  const mcError_t problem = checkCopy(to, bytes, from, bytes, kind);
  if (problem != mcSuccess) return fail(problem);
  std::memmove(to, from, bytes);
  return mcSuccess;
}

mcError_t setChecked(void* pointer, int value, size_t bytes) {
  if (bytes == 0) return mcSuccess;
  const mcError_t problem = checkRange(pointer, bytes);
  if (problem != mcSuccess) return fail(problem);
  std::memset(pointer, value, bytes);
  return mcSuccess;
}

}  // namespace

mcError_t mcMemcpy(void* to, const void* from, size_t bytes, mcMemcpyKind kind) {
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  return copyChecked(to, from, bytes, kind);
}

mcError_t mcMemcpyAsync(void* to, const void* from, size_t bytes, mcMemcpyKind kind, mcStream_t stream) {
  return submit(stream, "memcpy", bytes, [=] { return copyChecked(to, from, bytes, kind); });
}

mcError_t mcMemcpy2DAsync(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height,
                          mcMemcpyKind kind, mcStream_t stream) {
  return submit(stream, "memcpy", width * height, [=] {
    if (kind < mcMemcpyHostToHost || kind > mcMemcpyDefault) return fail(mcErrorInvalidMemcpyDirection);
    if (width == 0 || height == 0) return mcSuccess;
    if (width > toPitch || width > fromPitch) return fail(mcErrorInvalidPitchValue);
    size_t toBytes = 0, fromBytes = 0;
    if (!spanOfRows(toPitch, width, height, &toBytes) || !spanOfRows(fromPitch, width, height, &fromBytes)) {
      return fail(mcErrorInvalidValue);
    }
    const mcError_t problem = checkCopy(to, toBytes, from, fromBytes, kind);
    if (problem != mcSuccess) return fail(problem);
    for (size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<char*>(to) + row * toPitch, static_cast<const char*>(from) + row * fromPitch, width);
    }
    return mcSuccess;
  });
}

mcError_t mcMemset(void* pointer, int value, size_t bytes) {
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  return setChecked(pointer, value, bytes);
}

mcError_t mcMemsetAsync(void* pointer, int value, size_t bytes, mcStream_t stream) {
  return submit(stream, "memset", bytes, [=] { return setChecked(pointer, value, bytes); });
}

mcError_t mcMemset2DAsync(void* pointer, size_t pitch, unsigned int value, unsigned int elementBytes, size_t width,
                          size_t height, mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (elementBytes != 1 && elementBytes != 2 && elementBytes != 4) return fail(mcErrorInvalidValue);
  if (reinterpret_cast<uintptr_t>(pointer) % elementBytes != 0) return fail(mcErrorInvalidValue);
  if (width == 0 || height == 0) return mcSuccess;
  size_t rowBytes = 0, bytes = 0;
  if (__builtin_mul_overflow(width, elementBytes, &rowBytes)) return fail(mcErrorInvalidValue);
  if (height > 1 && rowBytes > pitch) return fail(mcErrorInvalidPitchValue);
  if (!spanOfRows(pitch, rowBytes, height, &bytes)) return fail(mcErrorInvalidValue);
  return submit(stream, "memset", rowBytes * height, [=] {
    const mcError_t problem = checkRange(pointer, bytes);
    if (problem != mcSuccess) return fail(problem);
    for (size_t row = 0; row < height; ++row) {
      char* const start = static_cast<char*>(pointer) + row * pitch;
      if (elementBytes == 1) {
        std::memset(start, static_cast<int>(value), width);
      } else if (elementBytes == 2) {
        std::fill_n(reinterpret_cast<uint16_t*>(start), width, static_cast<uint16_t>(value));
      } else {
        std::fill_n(reinterpret_cast<uint32_t*>(start), width, value);
      }
    }
    return mcSuccess;
  });
}
