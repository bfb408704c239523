#include "host/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "host/files.h"
#include "host/ledger.h"
#include "host/residency.h"

namespace mc {
namespace {

// The number behind `label` at the start of a line; 0 if there is none.
size_t field(const std::string& text, const std::string& label) {
  size_t position = text.compare(0, label.size(), label) == 0 ? 0 : text.find("\n" + label);
  if (position == std::string::npos) return 0;
  position += text[position] == '\n' ? 1 : 0;
  return std::strtoull(text.c_str() + position + label.size(), nullptr, 10);
}

// A control group that may limit memory, version 1 or 2.
struct ControlGroup {
  std::string membership;  // how a line of /proc/PID/cgroup begins for its members
  std::vector<std::string> limits;
  std::string usage, statistics, reclaimable;
};

// The groups that this process is in, innermost first.
std::vector<ControlGroup> findControlGroups() {
  std::vector<ControlGroup> groups;
  const std::string membership = readFile("/proc/self/cgroup");
  size_t start = 0;
  while (start < membership.size()) {
    size_t end = membership.find('\n', start);
    if (end == std::string::npos) end = membership.size();
    const std::string line = membership.substr(start, end - start);
    start = end + 1;
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string path = line.substr(second + 1);
    while (true) {
      const std::string folder = root + (path == "/" ? "" : path);
      const std::string members = line.substr(0, second + 1) + path;
      const std::string statistics = folder + "/memory.stat";
      // Above memory.high the kernel slows a group down until it stands still.
      if (unified && access((folder + "/memory.current").c_str(), R_OK) == 0) {
        groups.push_back({members,
                          {folder + "/memory.max", folder + "/memory.high"},
                          folder + "/memory.current",
                          statistics,
                          "inactive_file "});
      } else if (!unified && access((folder + "/memory.usage_in_bytes").c_str(), R_OK) == 0) {
        groups.push_back({members,
                          {folder + "/memory.limit_in_bytes"},
                          folder + "/memory.usage_in_bytes",
                          statistics,
                          "total_inactive_file "});
      }
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return groups;
}

// How much new memory somebody may take: the host, or a control group for its members.
struct Bound {
  const ControlGroup* group;  // nullptr: the host
  int64_t available;
};

// The smallest limit that is set; 0 if none is.
size_t limitOf(const ControlGroup& group) {
  size_t smallest = 0;
  for (const std::string& path : group.limits) {
    const std::string text = readFile(path);
    const bool none = text.empty() || text.compare(0, 3, "max") == 0 || text.size() >= 19;
    const size_t limit = none ? 0 : std::strtoull(text.c_str(), nullptr, 10);
    if (!none && (smallest == 0 || limit < smallest)) smallest = limit;
  }
  return smallest;
}

int64_t withoutHeadroom(size_t available, size_t whole) {
  const auto headroom = std::clamp<int64_t>(static_cast<int64_t>(whole / 32), 64 << 20, 1 << 30);
  return std::max<int64_t>(static_cast<int64_t>(available) - headroom, 0);
}

// What is free for new pages right now, less the headroom to leave.
std::vector<Bound> boundsNow() {
  std::vector<Bound> bounds;
  std::string info;
  if (!readFile("/proc/meminfo", &info)) {
    // No /proc is nothing to judge by. No descriptor left is no reason to grant everything.
    const bool noProc = errno == ENOENT || errno == EACCES || errno == EPERM;
    return {{nullptr, noProc ? INT64_MAX : 0}};
  }
  const size_t total = field(info, "MemTotal:") << 10;
  bounds.push_back({nullptr, withoutHeadroom(field(info, "MemAvailable:") << 10, total)});
  static const auto* const groups = new std::vector<ControlGroup>(findControlGroups());
  for (const ControlGroup& group : *groups) {
    const size_t limit = limitOf(group);
    if (limit == 0 || limit >= total) continue;
    const size_t usage = std::strtoull(readFile(group.usage).c_str(), nullptr, 10);
    const size_t reclaimable = field(readFile(group.statistics), group.reclaimable);
    const size_t taken = usage > reclaimable ? usage - reclaimable : 0;
    bounds.push_back({&group, withoutHeadroom(limit > taken ? limit - taken : 0, limit)});
  }
  return bounds;
}

// Whether a process is in the group or below it.
bool isMember(int64_t pid, const ControlGroup& group) {
  const std::string text = "\n" + readFile("/proc/" + std::to_string(pid) + "/cgroup");
  const size_t found = text.find("\n" + group.membership);
  if (found == std::string::npos) return false;
  if (group.membership.back() == '/' || group.membership.back() == ':') return true;
  const char next = text[std::min(found + 1 + group.membership.size(), text.size() - 1)];
  return next == '\n' || next == '/';
}

// Whether more may be promised than the host could back if all of it were written.
bool overcommits() {
  static const bool wanted = [] {
    const char* const text = std::getenv("MACA_MEMORY_OVERCOMMIT");
    if (text == nullptr || *text == '\0' || std::strcmp(text, "0") == 0) return false;
    if (std::strcmp(text, "1") == 0) return true;
    std::fprintf(stderr, "mxmaca: MACA_MEMORY_OVERCOMMIT is '%s'; it may be 1, 0 or nothing\n", text);
    return false;
  }();
  return wanted;
}

// How many more bytes everybody could be promised; `wanted` stands for that and all above it. Negative: what has been
// promised already cannot be backed any more.
int64_t room(int64_t wanted) {
  const std::vector<Bound> bounds = boundsNow();
  int64_t least = INT64_MAX;
  for (const Bound& bound : bounds) least = std::min(least, bound.available);
  // Memory that has been written still ends what is granted.
  if (overcommits()) return least > 0 ? wanted : -1;
  // First as if nothing had been written; only when that does not fit is it worth looking at the pages.
  if (least - static_cast<int64_t>(std::min<uint64_t>(ledger().heldByAll(), INT64_MAX)) >= wanted) return wanted;
  std::vector<int64_t> left;
  for (const Bound& bound : bounds) left.push_back(bound.available);
  for (const Holder& holder : ledger().holders()) {
    // Looking takes milliseconds in a process with large libraries. Little counts as not written, which is safe.
    const bool little = holder.bytes <= size_t{16} << 20;
    const size_t resident = little ? 0 : residentBytes(holder.pid, {holder.rangesFile, holder.rangesInode});
    for (size_t i = 0; i < bounds.size(); ++i) {
      if (bounds[i].group != nullptr && !isMember(holder.pid, *bounds[i].group)) continue;
      left[i] -= static_cast<int64_t>(holder.bytes - std::min(holder.bytes, resident));
    }
  }
  for (const int64_t each : left) wanted = std::min(wanted, each);
  return wanted;
}

}  // namespace

bool hostCanBack(size_t more) { return room(static_cast<int64_t>(more)) >= static_cast<int64_t>(more); }

size_t hostAvailable(size_t wanted) {
  const auto most = static_cast<int64_t>(std::min<size_t>(wanted, INT64_MAX));
  return static_cast<size_t>(std::max<int64_t>(room(most), 0));
}

}  // namespace mc
