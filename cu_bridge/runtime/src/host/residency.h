// How much of its device and pinned memory a process has written to.
//
// Note: counting what is resident The kernel counts the resident pages of a process for each mapping, and ordinary
// memory of the program must not be taken for the device's. So each process says which ranges of addresses and which
// memfds are on its account, in a memfd that others of the same user open through /proc. /proc/PID/smaps has the pages
// of the ranges; pages that were only read are not counted there: the kernel lends them one page of zeros, and takes
// real memory with the first write. A memfd knows its pages itself. A process that cannot be looked into counts as
// having written nothing, which is safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mc {

struct RangesFile {
  int64_t file;  // a descriptor of the process that it is about, or -1
  uint64_t inode;
};

// The list of this process; made at the first call.
RangesFile ownRanges();

// Put private memory, or a memfd of `bytes`, on the list of this process. They return the entry to take off again;
// what finds no room (kUnlisted) counts as not written.
uint32_t listRange(uintptr_t base, size_t bytes);
uint32_t listMemfd(int file, size_t bytes);
void unlist(uint32_t entry);
constexpr uint32_t kUnlisted = UINT32_MAX;

// Bytes on the list of process `pid` that have memory of their own.
size_t residentBytes(int64_t pid, const RangesFile& ranges);

}  // namespace mc
