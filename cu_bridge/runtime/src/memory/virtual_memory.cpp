// Address ranges and physical memory as two things: a memfd is the physical memory, mapped into reserved addresses.
//
// Only the driver interface has these functions, and cudaGetLastError knows nothing of that interface's errors: they
// are returned and not recorded. PyTorch's allocator asks for the last error after a refused cuMemCreate.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "devices/device.h"
#include "handle_table.h"
#include "host/address_space.h"
#include "host/files.h"
#include "host/ledger.h"
#include "host/residency.h"
#include "memory/allocations.h"
#include "memory/device_memory.h"
#include "state/locked.h"
#include "state/state.h"

struct mcPhysicalMemory {
  int file;
  int device;
  size_t bytes;
  uint64_t account;    // 0: imported, charged to the exporter
  int references = 1;  // handles and mappings
  int handles = 1;     // without one the memory lives as long as it is mapped, and nobody may name it
  uint32_t listed = mc::kUnlisted;
  ~mcPhysicalMemory() {
    mc::unlist(listed);
    close(file);
    if (account != 0) mc::ledger().release(account, bytes);
  }
};

namespace {

struct VirtualMemory {
  std::map<uintptr_t, size_t> reserved;
  std::map<uintptr_t, mcPhysicalMemory*> mapped;
};

mc::HandleTable<mcPhysicalMemory> physicalMemory;

void dropReference(mcPhysicalMemory* memory) {
  if (--memory->references == 0) physicalMemory.destroy(memory);
}

constexpr char kFileName[] = "mxmaca";

// Whether a descriptor is that of physical memory: any other file would be written to.
bool isPhysicalMemory(int file) {
  char target[64] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), target, sizeof target - 1);
  const std::string wanted = std::string("/memfd:") + kFileName;
  return length > 0 && std::string(target).compare(0, wanted.size(), wanted) == 0;
}

// Whether it is a handle. The mutex is held.
bool isHandle(const mcPhysicalMemory* memory) { return physicalMemory.contains(memory) && memory->handles > 0; }

// Whether the range lies in one reservation. The mutex is held.
bool isReserved(const VirtualMemory& all, uintptr_t base, size_t bytes) {
  auto after = all.reserved.upper_bound(base);
  if (after == all.reserved.begin()) return false;
  const auto& [start, size] = *std::prev(after);
  return bytes <= size && base - start <= size - bytes;
}

bool aligned(const void* pointer, size_t bytes) {
  return pointer != nullptr && bytes != 0 && (reinterpret_cast<uintptr_t>(pointer) | bytes) % mc::kHugePage == 0;
}

}  // namespace

using namespace mc;

size_t mcVirtualGranularity(void) { return kHugePage; }

mcError_t mcAddressReserve(void** pointer, size_t bytes, size_t alignment, void* wish) {
  MC_RETURN_IF_STICKY();
  const bool powerOfTwo = (alignment & (alignment - 1)) == 0;
  if (pointer == nullptr || bytes == 0 || bytes % kHugePage != 0 || !powerOfTwo) return mcErrorInvalidValue;
  if (bytes > SIZE_MAX / 4 || alignment > SIZE_MAX / 4) return mcErrorMemoryAllocation;
  const size_t unit = alignment > kHugePage ? alignment : kHugePage;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const whole = wish == nullptr ? mapApart(bytes + unit, kHugePage, PROT_NONE, kFlags, -1)
                                      : mmap(wish, bytes + unit, PROT_NONE, kFlags, -1, 0);
  if (whole == nullptr || whole == MAP_FAILED) return mcErrorMemoryAllocation;
  const auto start = reinterpret_cast<uintptr_t>(whole);
  const uintptr_t base = (start + unit - 1) / unit * unit;
  if (base > start) munmap(whole, base - start);
  munmap(reinterpret_cast<void*>(base + bytes), start + unit - base);
  const Writing<VirtualMemory> all;
  all->reserved[base] = bytes;
  *pointer = reinterpret_cast<void*>(base);
  return mcSuccess;
}

mcError_t mcAddressFree(void* pointer, size_t bytes) {
  const Writing<VirtualMemory> all;
  const auto base = reinterpret_cast<uintptr_t>(pointer);
  const auto found = all->reserved.find(base);
  if (found == all->reserved.end() || found->second != bytes) return mcErrorInvalidValue;
  const auto mapped = all->mapped.lower_bound(base);
  if (mapped != all->mapped.end() && mapped->first < base + bytes) return mcErrorInvalidValue;
  munmap(pointer, bytes);
  all->reserved.erase(found);
  return checkSticky();
}

mcError_t mcPhysicalCreate(mcPhysicalMemory_t* memory, size_t bytes, int device) {
  MC_RETURN_IF_STICKY();
  if (memory == nullptr || bytes == 0 || bytes % kHugePage != 0) return mcErrorInvalidValue;
  if (visibleDevice(device) == nullptr) return mcErrorInvalidDevice;
  uint64_t account = 0;
  if (bytes > SIZE_MAX / 4 || !chargeDevice(device, bytes, &account)) return mcErrorMemoryAllocation;
  mcPhysicalMemory* const created = physicalMemory.create(memfd_create(kFileName, MFD_CLOEXEC), device, bytes, account);
  if (created->file < 0 || ftruncate(created->file, static_cast<off_t>(bytes)) != 0) {
    physicalMemory.destroy(created);
    return mcErrorOperatingSystem;
  }
  markInitialized();
  created->listed = listMemfd(created->file, bytes);
  *memory = created;
  return mcSuccess;
}

mcError_t mcPhysicalRetain(mcPhysicalMemory_t* memory, void* mapped) {
  if (memory == nullptr) return mcErrorInvalidValue;
  const Writing<VirtualMemory> all;
  const auto after = all->mapped.upper_bound(reinterpret_cast<uintptr_t>(mapped));
  if (after == all->mapped.begin()) return mcErrorInvalidValue;
  const auto& [base, found] = *std::prev(after);
  if (base + found->bytes <= reinterpret_cast<uintptr_t>(mapped)) return mcErrorInvalidValue;
  ++found->references;
  ++found->handles;
  *memory = found;
  return mcSuccess;
}

mcError_t mcPhysicalRelease(mcPhysicalMemory_t memory) {
  const Writing<VirtualMemory> all;
  if (!isHandle(memory)) return mcErrorInvalidValue;
  --memory->handles;
  dropReference(memory);
  return checkSticky();
}

mcError_t mcPhysicalInfo(mcPhysicalMemory_t memory, int* device, size_t* bytes) {
  const Writing<VirtualMemory> all;
  if (!isHandle(memory)) return mcErrorInvalidValue;
  *device = memory->device;
  *bytes = memory->bytes;
  return mcSuccess;
}

mcError_t mcPhysicalExport(mcPhysicalMemory_t memory, int* fileDescriptor) {
  MC_RETURN_IF_STICKY();
  const Writing<VirtualMemory> all;
  if (!isHandle(memory) || fileDescriptor == nullptr) return mcErrorInvalidValue;
  *fileDescriptor = fcntl(memory->file, F_DUPFD_CLOEXEC, 0);
  return *fileDescriptor < 0 ? mcErrorOperatingSystem : mcSuccess;
}

mcError_t mcPhysicalImport(mcPhysicalMemory_t* memory, int fileDescriptor) {
  MC_RETURN_IF_STICKY();
  const FileFacts facts = fileFacts(fileDescriptor);
  if (memory == nullptr || facts.bytes == 0 || !isPhysicalMemory(fileDescriptor)) return mcErrorInvalidValue;
  const int file = fcntl(fileDescriptor, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return mcErrorOperatingSystem;
  *memory = physicalMemory.create(file, threadState.device, facts.bytes, uint64_t{0});
  return mcSuccess;
}

mcError_t mcMap(void* pointer, size_t bytes, size_t offset, mcPhysicalMemory_t memory) {
  MC_RETURN_IF_STICKY();
  const Writing<VirtualMemory> all;
  if (!isHandle(memory) || !aligned(pointer, bytes) || offset != 0 || bytes != memory->bytes) {
    return mcErrorInvalidValue;
  }
  const auto base = reinterpret_cast<uintptr_t>(pointer);
  if (!isReserved(*all, base, bytes)) return mcErrorInvalidValue;
  const auto next = all->mapped.lower_bound(base);
  const bool overlapsNext = next != all->mapped.end() && next->first < base + bytes;
  const bool overlapsPrevious =
      next != all->mapped.begin() && std::prev(next)->first + std::prev(next)->second->bytes > base;
  if (overlapsNext || overlapsPrevious) return mcErrorInvalidValue;
  if (mmap(pointer, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memory->file, 0) == MAP_FAILED) {
    return mcErrorMapBufferObjectFailed;
  }
  madvise(pointer, bytes, MADV_HUGEPAGE);
  madvise(pointer, bytes, MADV_DONTFORK);
  ++memory->references;
  all->mapped[base] = memory;
  insertAllocation(pointer, bytes, bytes, memory->device, mcMemoryDevice, Origin::Mapped);
  return mcSuccess;
}

mcError_t mcUnmap(void* pointer, size_t bytes) {
  if (!isForkedChild()) finishUses(pointer);
  const Writing<VirtualMemory> all;
  const auto start = reinterpret_cast<uintptr_t>(pointer);
  if (!aligned(pointer, bytes)) return mcErrorInvalidValue;
  // Only whole mappings: look first, so that a wrong range changes nothing.
  size_t covered = 0;
  for (auto it = all->mapped.lower_bound(start); it != all->mapped.end() && it->first < start + bytes; ++it) {
    covered += it->second->bytes;
  }
  if (covered != bytes) return mcErrorInvalidValue;
  for (auto it = all->mapped.lower_bound(start); it != all->mapped.end() && it->first < start + bytes;) {
    Allocation erased;
    auto* const base = reinterpret_cast<void*>(it->first);
    eraseAllocation(base, mcMemoryDevice, Origin::Mapped, &erased);
    mmap(base, it->second->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    dropReference(it->second);
    it = all->mapped.erase(it);
  }
  return checkSticky();
}

mcError_t mcSetAccess(void* pointer, size_t bytes, int readable, int writable) {
  MC_RETURN_IF_STICKY();
  const Writing<VirtualMemory> all;
  if (!aligned(pointer, bytes) || !isReserved(*all, reinterpret_cast<uintptr_t>(pointer), bytes)) {
    return mcErrorInvalidValue;
  }
  const int protection = (readable != 0 ? PROT_READ : PROT_NONE) | (writable != 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  return mprotect(pointer, bytes, protection) == 0 ? mcSuccess : mcErrorInvalidValue;
}

mcError_t mcGetAccess(const void* pointer, int* readable, int* writable) {
  MC_RETURN_IF_STICKY();
  const Writing<VirtualMemory> all;
  const auto place = reinterpret_cast<uintptr_t>(pointer);
  const auto after = all->mapped.upper_bound(place);
  if (after == all->mapped.begin()) return mcErrorInvalidValue;
  const auto found = std::prev(after);
  if (place - found->first >= found->second->bytes) return mcErrorInvalidValue;
  // The kernel knows what holds; only programs that ask have to pay for it.
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (maps == nullptr) return mcErrorOperatingSystem;
  char line[512];
  while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
    unsigned long start = 0, end = 0;
    char read = '-', write = '-';
    if (std::sscanf(line, "%lx-%lx %c%c", &start, &end, &read, &write) != 4) continue;
    if (place < start || place >= end) continue;
    *readable = read == 'r';
    *writable = write == 'w';
    return mcSuccess;
  }
  return mcErrorInvalidValue;
}
