#include "host/residency.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "host/files.h"

namespace mc {
namespace {

struct Range {
  uint64_t base;   // 1 for a memfd; 0: the entry and all after it have never been used
  uint64_t bytes;  // 0: the entry is free
  int64_t file;    // the memfd, or -1
  uint64_t inode;
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

// The list of a process; empty if it cannot be read.
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
  return found;
}

// Bytes that [start, end) shares with ranges in the order of their addresses.
uint64_t overlap(const std::vector<Range>& ranges, uint64_t start, uint64_t end) {
  uint64_t shared = 0;
  auto range = std::partition_point(ranges.begin(), ranges.end(),
                                    [start](const Range& each) { return each.base + each.bytes <= start; });
  for (; range != ranges.end() && range->base < end; ++range) {
    shared += std::min(end, range->base + range->bytes) - std::max(start, range->base);
  }
  return shared;
}

// Gives each line of a file to `work`, until that returns false. No more of the file is read than that needs.
template <typename Work>
void forEachLine(const std::string& path, Work work) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::string text;
  char block[4096];
  ssize_t length;
  bool goOn = true;
  while (goOn && ((length = read(file, block, sizeof block)) > 0 || (length < 0 && errno == EINTR))) {
    if (length > 0) text.append(block, static_cast<size_t>(length));
    size_t start = 0;
    for (size_t end; goOn && (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
      text[end] = '\0';
      goOn = work(text.c_str() + start);
    }
    text.erase(0, start);
  }
  close(file);
}

}  // namespace

RangesFile ownRanges() {
  List& all = list();
  const std::lock_guard<std::mutex> lock(all.mutex);
  openList(all);
  return all.file;
}

namespace {

uint32_t addToList(const Range& range) {
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
  all.entries[entry] = range;
  return entry;
}

}  // namespace

uint32_t listRange(uintptr_t base, size_t bytes) { return addToList({base, bytes, -1, 0}); }

uint32_t listMemfd(int file, size_t bytes) { return addToList({1, bytes, file, fileFacts(file).inode}); }

void unlist(uint32_t entry) {
  if (entry == kUnlisted) return;
  List& all = list();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.pid != getpid() || all.entries == nullptr) return;
  all.entries[entry].bytes = 0;
  all.unused.push_back(entry);
}

size_t residentBytes(int64_t pid, const RangesFile& ranges) {
  std::vector<Range> listed = readRanges(pid, ranges);
  const std::string process = "/proc/" + std::to_string(pid);
  uint64_t resident = 0;
  for (const Range& range : listed) {
    if (range.file < 0) continue;
    const FileFacts facts = fileFacts(process + "/fd/" + std::to_string(range.file));
    if (facts.inode == range.inode) resident += std::min<uint64_t>(facts.stored, range.bytes);
  }
  listed.erase(std::remove_if(listed.begin(), listed.end(), [](const Range& range) { return range.file >= 0; }),
               listed.end());
  if (listed.empty()) return resident;
  std::sort(listed.begin(), listed.end(), [](const Range& a, const Range& b) { return a.base < b.base; });
  // Read line by line, and not beyond the last range: the pages of a program's libraries take the kernel long to count,
  // and they lie above what is mapped after them.
  uint64_t shared = 0;  // of the mapping that is being read
  forEachLine(process + "/smaps", [&](const char* line) {
    // A mapping begins with its addresses, in small hexadecimal digits; the names of its counters with a capital.
    if (*line < 'A' || *line > 'Z') {
      char* rest = nullptr;
      const uint64_t first = std::strtoull(line, &rest, 16);
      const uint64_t last = *rest == '-' ? std::strtoull(rest + 1, nullptr, 16) : 0;
      if (first >= listed.back().base + listed.back().bytes) return false;
      shared = overlap(listed, first, last);
    } else if (shared != 0 && std::strncmp(line, "Rss:", 4) == 0) {
      resident += std::min<uint64_t>(shared, std::strtoull(line + 4, nullptr, 10) << 10);
    }
    return true;
  });
  return resident;
}

}  // namespace mc
