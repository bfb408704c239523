#include "residency.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "files.h"

namespace mc {
namespace {

struct Range {
  uint64_t base;
  uint64_t bytes;  // 0: the entry is free
};

// Only pages with entries take memory.
constexpr size_t kMostRanges = size_t{1} << 20;
constexpr size_t kListBytes = kMostRanges * sizeof(Range);

struct List {
  std::mutex mutex;
  int64_t pid = 0;
  RangesFile file{-1, 0};
  Range* entries = nullptr;
  uint32_t end = 0;  // entries used so far
  std::vector<uint32_t> unused;
};

List& list() {
  static auto* const instance = new List;
  return *instance;
}

// The list is one process's: a forked child leaves its parent's alone. The mutex is held.
void openList(List& all) {
  if (all.pid == getpid()) return;
  all.pid = getpid();
  if (all.entries != nullptr) munmap(all.entries, kListBytes);
  // The program may have closed the descriptor, and opened another file under its number.
  const auto inherited = static_cast<int>(all.file.file);
  if (inherited >= 0 && fileFacts(inherited).inode == all.file.inode) close(inherited);
  all.file = {-1, 0};
  all.entries = nullptr;
  all.end = 0;
  all.unused.clear();
  const int file = memfd_create("mxmaca-ranges", MFD_CLOEXEC);
  if (file < 0) return;
  void* const memory = ftruncate(file, static_cast<off_t>(kListBytes)) == 0
                           ? mmap(nullptr, kListBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                           : MAP_FAILED;
  if (memory == MAP_FAILED) {
    close(file);
    return;
  }
  all.entries = static_cast<Range*>(memory);
  all.file = {file, fileFacts(file).inode};
}

// The ranges of a process in the order of their addresses; empty if they cannot be read.
std::vector<Range> readRanges(int64_t pid, const RangesFile& ranges) {
  std::vector<Range> found;
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(ranges.file);
  const int file = ranges.file >= 0 ? open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  if (fileFacts(file).inode == ranges.inode && file >= 0) {
    std::vector<Range> block(4096);
    ssize_t length;
    while ((length = read(file, block.data(), block.size() * sizeof(Range))) > 0) {
      const auto end = block.begin() + length / static_cast<ssize_t>(sizeof(Range));
      // Entries are used from the front, and the first one after them has never had an address.
      const auto unused = std::find_if(block.begin(), end, [](const Range& range) { return range.base == 0; });
      std::copy_if(block.begin(), unused, std::back_inserter(found),
                   [](const Range& range) { return range.bytes > 0; });
      if (unused != end) break;
    }
  }
  if (file >= 0) close(file);
  std::sort(found.begin(), found.end(), [](const Range& a, const Range& b) { return a.base < b.base; });
  return found;
}

// Bytes that [start, end) shares with the ranges.
uint64_t overlap(const std::vector<Range>& ranges, uint64_t start, uint64_t end) {
  uint64_t shared = 0;
  auto range = std::partition_point(ranges.begin(), ranges.end(),
                                    [start](const Range& each) { return each.base + each.bytes <= start; });
  for (; range != ranges.end() && range->base < end; ++range) {
    shared += std::min(end, range->base + range->bytes) - std::max(start, range->base);
  }
  return shared;
}

}  // namespace

RangesFile ownRanges() {
  List& all = list();
  const std::lock_guard<std::mutex> lock(all.mutex);
  openList(all);
  return all.file;
}

uint32_t listRange(uintptr_t base, size_t bytes) {
  List& all = list();
  const std::lock_guard<std::mutex> lock(all.mutex);
  openList(all);
  if (all.entries == nullptr || (all.unused.empty() && all.end == kMostRanges)) return kUnlisted;
  uint32_t entry = all.end;
  if (all.unused.empty()) {
    ++all.end;
  } else {
    entry = all.unused.back();
    all.unused.pop_back();
  }
  all.entries[entry] = {base, bytes};
  return entry;
}

void unlistRange(uint32_t entry) {
  if (entry == kUnlisted) return;
  List& all = list();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.pid != getpid() || all.entries == nullptr) return;
  all.entries[entry].bytes = 0;
  all.unused.push_back(entry);
}

size_t residentBytes(int64_t pid, const RangesFile& ranges) {
  const std::vector<Range> listed = readRanges(pid, ranges);
  if (listed.empty()) return 0;
  const std::string maps = readFile("/proc/" + std::to_string(pid) + "/smaps");
  uint64_t resident = 0;
  uint64_t shared = 0;  // of the mapping that is being read
  for (size_t position = 0; position < maps.size();) {
    size_t end = maps.find('\n', position);
    if (end == std::string::npos) end = maps.size();
    const char* const line = maps.c_str() + position;
    position = end + 1;
    // A mapping begins with its addresses, in small hexadecimal digits; the names of its counters with a capital.
    if (*line < 'A' || *line > 'Z') {
      char* rest = nullptr;
      const uint64_t first = std::strtoull(line, &rest, 16);
      const uint64_t last = *rest == '-' ? std::strtoull(rest + 1, nullptr, 16) : 0;
      shared = overlap(listed, first, last);
    } else if (shared != 0 && maps.compare(static_cast<size_t>(line - maps.c_str()), 4, "Rss:") == 0) {
      resident += std::min<uint64_t>(shared, std::strtoull(line + 4, nullptr, 10) << 10);
    }
  }
  return resident;
}

}  // namespace mc
