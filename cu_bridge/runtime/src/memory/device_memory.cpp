#include "memory/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "check/check.h"
#include "devices/device.h"
#include "host/address_space.h"
#include "host/host_memory.h"
#include "host/ledger.h"
#include "host/sanitizer.h"
#include "late/late.h"
#include "memory/advice.h"
#include "memory/allocations.h"
#include "queue/queue.h"
#include "state/state.h"

namespace mc {
namespace {

size_t pageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t roundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// hostCanBack reads files of /proc: ask it for every large allocation, for small ones each time they add up. `bytes`
// are charged already.
bool hostGrants(size_t bytes) {
  constexpr size_t kUnchecked = size_t{8} << 20;
  static std::atomic<size_t> sinceCheck{kUnchecked};
  if (bytes < kHugePage && sinceCheck.fetch_add(bytes, std::memory_order_relaxed) + bytes < kUnchecked) return true;
  if (!hostCanBack(0)) return false;
  sinceCheck.store(0, std::memory_order_relaxed);
  return true;
}

// Charges, maps and registers.
mcError_t allocate(uint64_t account, size_t capacity, mcMemoryKind kind, int device, unsigned int flags, size_t bytes,
                   void** pointer) {
  // A size near the top would wrap when rounded; nothing has that much.
  if (bytes > SIZE_MAX / 4) return fail(mcErrorMemoryAllocation);
  const size_t charged = roundUp(bytes, pageSize());
  if (!ledger().charge(account, charged, capacity)) return fail(mcErrorMemoryAllocation);
  size_t mapped = 0;
  const size_t guard = addressesAreChecked() ? pageSize() : 0;
  void* memory = nullptr;
  if (hostGrants(charged)) {
    mapped = charged;
    memory = checkMode ? check::allocate(bytes, kind == mcMemoryDevice) : mapMemory(bytes + guard, &mapped, -1);
  }
  if (memory == nullptr) {
    ledger().release(account, charged);
    return fail(mcErrorMemoryAllocation);
  }
  // A forked child may not use the device. If it inherited the pages, every later write here would first copy one, and
  // the copies would be on nobody's account.
  if (kind != mcMemoryHost && !checkMode) madvise(memory, mapped, MADV_DONTFORK);
  if (guard != 0 && !checkMode) poison(static_cast<char*>(memory) + bytes, mapped - bytes);
  markInitialized();
  useDevice(device);
  insertAllocation(memory, bytes, mapped, device, kind, Origin::Owned, flags, account, charged);
  *pointer = memory;
  return mcSuccess;
}

}  // namespace

void* mapMemory(size_t bytes, size_t* mapped, int file) {
  const size_t length = roundUp(bytes, pageSize());
  const bool large = length >= kHugePage;
  // MAP_NORESERVE: whether the host can back the memory is decided by hostCanBack, not by the overcommit heuristic.
  const int flags = MAP_NORESERVE | (file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
  void* const memory = mapApart(length, large ? kHugePage : pageSize(), PROT_READ | PROT_WRITE, flags, file);
  if (memory == nullptr) return nullptr;
  *mapped = length;
  if (large) madvise(memory, length, MADV_HUGEPAGE);
  return memory;
}

void finishUses(const void* pointer) {
  if (!anythingPending()) return;
  const Allocation* const allocation = findAllocation(pointer);
  if (allocation == nullptr) return;
  const int device = allocation->device;
  waitDevice(device);
  if (lateMode && !inTask()) late::hostWaitedForDevice(device);
}

mcError_t releaseMemory(void* pointer, mcMemoryKind kind) {
  if (pointer == nullptr || isForkedChild()) return checkSticky();
  Allocation allocation;
  if (!eraseAllocation(pointer, kind, Origin::Owned, &allocation)) {
    if (checkMode) check::reportFree(pointer);
    return fail(mcErrorInvalidValue);
  }
  if (allocation.kind == mcMemoryManaged) forgetAdvice(allocation.id);
  unpoison(pointer, allocation.mapped);
  if (!checkMode || !check::release(pointer)) munmap(pointer, allocation.mapped);
  if (allocation.file >= 0) close(allocation.file);
  ledger().release(allocation.account, allocation.charged);
  // A report makes the device's error last, and PyTorch ends the process when tensors cannot be freed behind it.
  return checkMode ? mcSuccess : checkSticky();
}

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
  return allocate(target->accountKey, target->properties.memory, kind, device, flags, bytes, pointer);
}

mcError_t allocatePinned(unsigned int flags, size_t bytes, void** pointer) {
  return allocate(kPinnedAccount, SIZE_MAX, mcMemoryHost, threadState.device, flags, bytes, pointer);
}

}  // namespace mc
