// What the runtime asks of files.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace mc {

struct FileFacts {
  bool exists = false, regular = false;
  size_t bytes = 0;
  size_t stored = 0;  // bytes that take up room
  uint64_t inode = 0;
  uint32_t owner = 0;
  uint32_t permissions = 0;
  uint32_t links = 0;  // 0: deleted
};

// statx and not stat: glibc 2.33 gave that a new symbol, which older systems lack.
inline FileFacts factsAt(int folder, const char* path, int flags) {
  struct statx status{};
  FileFacts facts;
  if (statx(folder, path, flags, STATX_BASIC_STATS, &status) != 0) return facts;
  facts.exists = true;
  facts.regular = (status.stx_mode & S_IFMT) == S_IFREG;
  facts.bytes = status.stx_size;
  facts.stored = status.stx_blocks * 512;
  facts.inode = status.stx_ino;
  facts.owner = status.stx_uid;
  facts.permissions = status.stx_mode & 07777;
  facts.links = status.stx_nlink;
  return facts;
}

// Facts about an open file.
inline FileFacts fileFacts(int file) { return file < 0 ? FileFacts{} : factsAt(file, "", AT_EMPTY_PATH); }

// Facts about what a path leads to.
inline FileFacts fileFacts(const std::string& path) { return factsAt(AT_FDCWD, path.c_str(), 0); }

// Reads a file whole, also one of /proc. false: it cannot be opened, and errno says why.
bool readFile(const std::string& path, std::string* text);

// The same, or "".
std::string readFile(const std::string& path);

}  // namespace mc
