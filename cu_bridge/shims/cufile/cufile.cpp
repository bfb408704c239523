// cuFile: device memory is host memory, so reads and writes are plain ones.

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

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

constexpr int kInvalidType = 5016;
constexpr int kInvalidValue = 5022;
constexpr int kOpaqueDescriptor = 1;

struct FileHandle {
  int file;
};

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
  if (description->type != kOpaqueDescriptor) return {kInvalidType, 0};
  *handle = new FileHandle{description->file};
  return {0, 0};
}
void cuFileHandleDeregister(void* handle) { delete static_cast<FileHandle*>(handle); }

// Every address can be read into without being pinned first.
Error cuFileBufRegister(const void* pointer, size_t, int) { return {pointer == nullptr ? kInvalidValue : 0, 0}; }
Error cuFileBufDeregister(const void* pointer) { return {pointer == nullptr ? kInvalidValue : 0, 0}; }

ssize_t cuFileRead(void* handle, void* base, size_t bytes, off_t fileOffset, off_t bufferOffset) {
  const int file = static_cast<FileHandle*>(handle)->file;
  auto* const target = static_cast<char*>(base) + bufferOffset;
  return transferAll(bytes, [=](size_t done, size_t left) {
    return pread(file, target + done, left, fileOffset + static_cast<off_t>(done));
  });
}

ssize_t cuFileWrite(void* handle, const void* base, size_t bytes, off_t fileOffset, off_t bufferOffset) {
  const int file = static_cast<FileHandle*>(handle)->file;
  const auto* const source = static_cast<const char*>(base) + bufferOffset;
  return transferAll(bytes, [=](size_t done, size_t left) {
    return pwrite(file, source + done, left, fileOffset + static_cast<off_t>(done));
  });
}

}  // extern "C"
#pragma GCC visibility pop
