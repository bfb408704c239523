// Device memory of another process. An allocation becomes shareable when its first handle is asked for.
//
// A handle names a memfd of the exporter, which the importer opens through /proc. So nothing is left behind when a
// process is killed, and only processes of the same user can open it.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "check/check.h"
#include "host/files.h"
#include "host/host_memory.h"
#include "memory/allocations.h"
#include "memory/device_memory.h"
#include "state/locked.h"
#include "state/state.h"

namespace {

constexpr char kMagic[8] = "mcmemry";

struct Handle {
  char magic[8];
  int64_t pid;
  uint64_t inode;  // of the memfd, so that a number used again is not mistaken for it
  uint64_t size;
  uint64_t mapped;
  uint64_t id;
  int32_t file;
  int32_t device;
};
static_assert(sizeof(Handle) <= sizeof(mcIpcHandle));

struct Imports {
  std::map<void*, int> references;
  std::map<std::pair<int64_t, uint64_t>, void*> byHandle;  // exporter's pid and allocation id
};

// Whether `bytes` at `memory` are all zero. Memory that was never written reads as zeros and stays unbacked.
bool isZero(const char* memory, size_t bytes) {
  return memory[0] == 0 && std::memcmp(memory, memory + 1, bytes - 1) == 0;
}

// Writes what is not zero in a part of an allocation: a file reads as zeros where it was not written.
bool store(int file, const char* memory, size_t offset, size_t bytes) {
  constexpr size_t kUnit = 4096;
  for (size_t at = offset; at < offset + bytes; at += kUnit) {
    if (isZero(memory + at, kUnit)) continue;
    for (size_t done = 0; done < kUnit;) {
      const ssize_t more = pwrite(file, memory + at + done, kUnit - done, static_cast<off_t>(at + done));
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) return false;
      done += static_cast<size_t>(more);
    }
  }
  return true;
}

// Moves an allocation into a memfd, mapped in its place: the address stays. As with every use of device memory, the
// caller orders this after the work of other threads on it. A part at a time, as memory that is being moved is there
// twice. When the host cannot back that, what has been moved stays where it is, and the next call goes on from there.
int makeShareable(const mc::Allocation& allocation) {
  constexpr size_t kPart = size_t{32} << 20;
  auto* const memory = reinterpret_cast<char*>(allocation.base);
  int file = allocation.file;
  if (file < 0) {
    file = memfd_create("mxmaca-ipc", MFD_CLOEXEC);
    if (file < 0) return -1;
    if (ftruncate(file, static_cast<off_t>(allocation.mapped)) != 0 || !mc::updateAllocation(memory, file, 0)) {
      close(file);
      return -1;
    }
  }
  for (size_t moved = allocation.moved; moved < allocation.mapped;) {
    const size_t part = std::min(kPart, allocation.mapped - moved);
    if (!mc::hostCanBack(part) || !store(file, memory, moved, part)) return -1;
    if (mmap(memory + moved, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
             static_cast<off_t>(moved)) == MAP_FAILED) {
      return -1;
    }
    moved += part;
    if (!mc::updateAllocation(memory, file, moved)) return -1;
  }
  return file;
}

}  // namespace

using namespace mc;

mcError_t mcIpcGetMemHandle(mcIpcHandle* handle, void* pointer) {
  MC_RETURN_IF_STICKY();
  if (handle == nullptr || pointer == nullptr) return fail(mcErrorInvalidValue);
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const Allocation* const found = findAllocation(pointer);
  if (found == nullptr || found->kind != mcMemoryDevice) return fail(mcErrorInvalidValue);
  if (found->origin != Origin::Owned) return fail(mcErrorNotSupported);
  const Allocation allocation = *found;
  if (checkMode) {
    // Only whole pages can be shared, and the ends of them belong to nobody.
    return failWith(mcErrorNotSupported, "no memory is shared with other processes under MACA_CHECK=memory");
  }
  const int file = makeShareable(allocation);
  const FileFacts facts = fileFacts(file);
  if (!facts.exists) return fail(mcErrorMemoryAllocation);
  Handle filled{};
  std::memcpy(filled.magic, kMagic, sizeof kMagic);
  filled.pid = getpid();
  filled.inode = facts.inode;
  filled.size = allocation.size;
  filled.mapped = allocation.mapped;
  filled.id = allocation.id;
  filled.file = file;
  filled.device = allocation.device;
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle->reserved, &filled, sizeof filled);
  return mcSuccess;
}

mcError_t mcIpcOpenMemHandle(void** pointer, const mcIpcHandle* handle) {
  MC_RETURN_IF_STICKY();
  if (pointer == nullptr || handle == nullptr) return fail(mcErrorInvalidValue);
  Handle wanted;
  std::memcpy(&wanted, handle->reserved, sizeof wanted);
  if (std::memcmp(wanted.magic, kMagic, sizeof kMagic) != 0) return fail(mcErrorInvalidValue);
  if (wanted.pid == getpid()) return fail(mcErrorDeviceUninitialized);  // as on real hardware
  const Writing<Imports> all;
  const auto known = all->byHandle.find({wanted.pid, wanted.id});
  if (known != all->byHandle.end()) {
    ++all->references[known->second];
    *pointer = known->second;
    return mcSuccess;
  }
  const std::string path = "/proc/" + std::to_string(wanted.pid) + "/fd/" + std::to_string(wanted.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const FileFacts facts = fileFacts(file);
  const bool same = facts.exists && facts.inode == wanted.inode;
  size_t mapped = 0;
  void* const memory = same ? mapMemory(wanted.mapped, &mapped, file) : nullptr;
  if (file >= 0) close(file);
  if (memory == nullptr) return fail(mcErrorInvalidValue);
  markInitialized();
  insertAllocation(memory, wanted.size, mapped, threadState.device, mcMemoryDevice, Origin::Imported);
  all->references[memory] = 1;
  all->byHandle[{wanted.pid, wanted.id}] = memory;
  *pointer = memory;
  return mcSuccess;
}

mcError_t mcIpcCloseMemHandle(void* pointer) {
  if (!isForkedChild()) finishUses(pointer);
  const Writing<Imports> all;
  const auto found = all->references.find(pointer);
  if (found == all->references.end()) return fail(mcErrorInvalidValue);
  if (--found->second > 0) return checkSticky();
  all->references.erase(found);
  for (auto it = all->byHandle.begin(); it != all->byHandle.end(); ++it) {
    if (it->second != pointer) continue;
    all->byHandle.erase(it);
    break;
  }
  Allocation erased;
  if (eraseAllocation(pointer, mcMemoryDevice, Origin::Imported, &erased)) munmap(pointer, erased.mapped);
  return checkSticky();
}
