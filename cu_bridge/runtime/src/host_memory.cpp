#include "host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ledger.h"
#include "memory.h"

namespace mc {
namespace {

std::string readFile(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char block[4096];
  ssize_t length;
  while ((length = read(file, block, sizeof block)) > 0) text.append(block, static_cast<size_t>(length));
  close(file);
  return text;
}

// The number behind `label` at the start of a line; 0 if there is none.
size_t field(const std::string& text, const std::string& label) {
  size_t position = text.compare(0, label.size(), label) == 0 ? 0 : text.find("\n" + label);
  if (position == std::string::npos) return 0;
  position += text[position] == '\n' ? 1 : 0;
  return std::strtoull(text.c_str() + position + label.size(), nullptr, 10);
}

// A control group with a limit, version 1 or 2.
struct ControlGroup {
  std::string limit, usage, statistics, reclaimable;
};

// The limited groups that this process is in, innermost first.
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
      const ControlGroup group =
          unified ? ControlGroup{folder + "/memory.max", folder + "/memory.current", folder + "/memory.stat",
                                 "inactive_file "}
                  : ControlGroup{folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes",
                                 folder + "/memory.stat", "total_inactive_file "};
      const std::string limit = readFile(group.limit);
      if (!limit.empty() && limit.compare(0, 3, "max") != 0 && limit.size() < 19) groups.push_back(group);
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return groups;
}

// Free for new pages right now, in bytes, and the headroom to leave.
size_t availableNow() {
  const std::string info = readFile("/proc/meminfo");
  const size_t total = field(info, "MemTotal:") << 10;
  size_t available = field(info, "MemAvailable:") << 10;
  if (total == 0) return SIZE_MAX;  // no /proc: nothing to judge by
  size_t smallest = total;
  static const auto* const groups = new std::vector<ControlGroup>(findControlGroups());
  for (const ControlGroup& group : *groups) {
    const size_t limit = std::strtoull(readFile(group.limit).c_str(), nullptr, 10);
    const size_t usage = std::strtoull(readFile(group.usage).c_str(), nullptr, 10);
    const size_t reclaimable = field(readFile(group.statistics), group.reclaimable);
    const size_t taken = usage > reclaimable ? usage - reclaimable : 0;
    available = std::min(available, limit > taken ? limit - taken : 0);
    smallest = std::min(smallest, limit);
  }
  const size_t headroom = std::clamp<size_t>(smallest / 32, size_t{64} << 20, size_t{1} << 30);
  return available > headroom ? available - headroom : 0;
}

}  // namespace

bool hostCanBack(size_t bytes) {
  const size_t now = availableNow();
  if (bytes > now) return false;
  size_t untouched = ledger().untouchedByOthers();
  if (untouched + bytes > now) return false;
  // First as if nothing of ours had been written; only when that does not fit is it worth looking at the pages.
  if (untouched + ledger().ownBytes() + bytes <= now) return true;
  untouched += untouchedBytes();
  return untouched + bytes <= now;
}

size_t hostAvailable() {
  const size_t now = availableNow();
  const size_t untouched = ledger().untouchedByOthers() + untouchedBytes();
  return now > untouched ? now - untouched : 0;
}

}  // namespace mc
