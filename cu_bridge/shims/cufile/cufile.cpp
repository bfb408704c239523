// cuFile: device memory is host memory, so reads and writes are plain ones.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "handle_table.h"

#pragma GCC visibility push(default)
#include "mc_runtime.h"

namespace {

struct Error {
  int operation;  // of cuFile's own, from 5000 on
  int driver;
};

struct Description {
  int type;  // 1: file descriptor
  union {
    int file;
    void* handle;
  };
  const void* operations;
};

constexpr int kPointerRangeError = 5014;
constexpr int kInvalidFileType = 5018;
constexpr int kInvalidValue = 5022;
constexpr int kMemoryAlreadyRegistered = 5023;
constexpr int kHandleNotRegistered = 5027;
constexpr int kOpaqueDescriptor = 1;

struct FileHandle {
  int file;
};

mc::HandleTable<FileHandle> files;

// Registered buffers: nothing is pinned, and what was never registered cannot be given back.
struct Buffers {
  std::mutex mutex;
  std::map<const void*, size_t> registered;
};

Buffers& buffers() {
  static auto* const instance = new Buffers;
  return *instance;
}

// Memory of the device is checked for its range; other memory is the caller's, as for read and write.
int checkRange(const void* base, off_t offset, size_t bytes) {
  mcPointerAttributes attributes;
  if (base == nullptr || offset < 0 || bytes > SSIZE_MAX) return kInvalidValue;
  if (mcPointerGetAttributes(&attributes, base) != mcSuccess) return kInvalidValue;
  if (attributes.kind == mcMemoryUnregistered) return 0;
  const size_t start = reinterpret_cast<uintptr_t>(base) - reinterpret_cast<uintptr_t>(attributes.base);
  const size_t room = attributes.size - start;
  const bool within = static_cast<size_t>(offset) <= room && bytes <= room - static_cast<size_t>(offset);
  return within ? 0 : kPointerRangeError;
}

// What is wrong with a read or write, or 0.
int checkTransfer(const FileHandle* file, const void* base, size_t bytes, off_t fileOffset, off_t bufferOffset) {
  if (!files.contains(file)) return kHandleNotRegistered;
  return fileOffset < 0 ? kInvalidValue : checkRange(base, bufferOffset, bytes);
}

template <class Transfer>
ssize_t transferAll(size_t bytes, Transfer&& transfer) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t step = transfer(done, bytes - done);
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    if (step == 0) break;
    done += static_cast<size_t>(step);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

extern "C" {

Error cuFileDriverOpen(void) { return {0, 0}; }
Error cuFileDriverClose(void) { return {0, 0}; }

Error cuFileHandleRegister(void** handle, const Description* description) {
  if (handle == nullptr || description == nullptr) return {kInvalidValue, 0};
  if (description->type != kOpaqueDescriptor) return {kInvalidFileType, 0};
  if (fcntl(description->file, F_GETFD) < 0) return {kInvalidFileType, 0};
  *handle = files.create(description->file);
  return {0, 0};
}
void cuFileHandleDeregister(void* handle) { files.destroy(static_cast<FileHandle*>(handle)); }

// Every address can be read into without being pinned first.
Error cuFileBufRegister(const void* pointer, size_t bytes, int flags) {
  constexpr int kKnownFlags = 1;
  const int wrong = bytes == 0 || (flags & ~kKnownFlags) != 0 ? kInvalidValue : checkRange(pointer, 0, bytes);
  if (wrong != 0) return {wrong, 0};
  Buffers& all = buffers();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return {all.registered.emplace(pointer, bytes).second ? 0 : kMemoryAlreadyRegistered, 0};
}
Error cuFileBufDeregister(const void* pointer) {
  if (pointer == nullptr) return {kInvalidValue, 0};
  Buffers& all = buffers();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return {all.registered.erase(pointer) == 1 ? 0 : kInvalidValue, 0};
}

// Reads and writes return bytes, -1 with errno for an error of the system, and else an error of cuFile's own, negative.

ssize_t cuFileRead(void* handle, void* base, size_t bytes, off_t fileOffset, off_t bufferOffset) {
  const auto* const known = static_cast<FileHandle*>(handle);
  const int wrong = checkTransfer(known, base, bytes, fileOffset, bufferOffset);
  if (wrong != 0) return -wrong;
  const int file = known->file;
  auto* const target = static_cast<char*>(base) + bufferOffset;
  return transferAll(bytes, [=](size_t done, size_t left) {
    return pread(file, target + done, left, fileOffset + static_cast<off_t>(done));
  });
}

ssize_t cuFileWrite(void* handle, const void* base, size_t bytes, off_t fileOffset, off_t bufferOffset) {
  const auto* const known = static_cast<FileHandle*>(handle);
  const int wrong = checkTransfer(known, base, bytes, fileOffset, bufferOffset);
  if (wrong != 0) return -wrong;
  const int file = known->file;
  const auto* const source = static_cast<const char*>(base) + bufferOffset;
  return transferAll(bytes, [=](size_t done, size_t left) {
    return pwrite(file, source + done, left, fileOffset + static_cast<off_t>(done));
  });
}

}  // extern "C"
#pragma GCC visibility pop
