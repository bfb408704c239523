// What the runtime asks of an open file.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace mc {

struct FileFacts {
  bool exists = false, regular = false;
  size_t bytes = 0;
  uint64_t inode = 0;
  uint32_t owner = 0;
};

// statx and not fstat: glibc 2.33 gave that a new symbol, which older systems lack.
inline FileFacts fileFacts(int file) {
  struct statx status{};
  FileFacts facts;
  if (file < 0 || statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) != 0) return facts;
  facts.exists = true;
  facts.regular = (status.stx_mode & S_IFMT) == S_IFREG;
  facts.bytes = status.stx_size;
  facts.inode = status.stx_ino;
  facts.owner = status.stx_uid;
  return facts;
}

}  // namespace mc
