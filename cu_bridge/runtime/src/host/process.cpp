#include "host/process.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "host/files.h"

namespace mc {
namespace {

// The fields of /proc/PID/stat from the state on; empty if there is no such process.
std::string stateAndOn(int64_t pid) {
  const std::string text = readFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t name = text.rfind(')');  // the command name may hold spaces and brackets
  return name == std::string::npos || name + 2 >= text.size() ? "" : text.substr(name + 2);
}

}  // namespace

uint64_t startTime(int64_t pid) {
  const std::string text = stateAndOn(pid);
  if (text.empty() || text[0] == 'Z' || text[0] == 'X') return 0;
  size_t position = 0;
  for (int field = 3; field < 22; ++field) {
    position = text.find(' ', position);
    if (position == std::string::npos) return 0;
    ++position;
  }
  return std::strtoull(text.c_str() + position, nullptr, 10);
}

bool isLiving(int64_t pid, uint64_t start) {
  if (pid <= 0) return false;
  const uint64_t now = startTime(pid);
  if (now != 0) return now == start;
  // Without /proc nobody has a start time, and the pid alone must do.
  return start == 0 && startTime(getpid()) == 0 && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

bool isStopped(int64_t pid) {
  const std::string text = stateAndOn(pid);
  return !text.empty() && (text[0] == 'T' || text[0] == 't');
}

int64_t lockHolder(uint64_t inode) {
  const std::string locks = readFile("/proc/locks");
  for (size_t start = 0; start < locks.size();) {
    size_t end = locks.find('\n', start);
    if (end == std::string::npos) end = locks.size();
    const std::string line = locks.substr(start, end - start);
    start = end + 1;
    long long pid = 0;
    unsigned int major = 0;
    unsigned int minor = 0;
    unsigned long long found = 0;
    // Those that wait have an arrow before the kind of lock.
    if (std::sscanf(line.c_str(), "%*d: FLOCK %*s %*s %lld %x:%x:%llu", &pid, &major, &minor, &found) != 4) continue;
    if (found == inode && pid > 0) return pid;
  }
  return 0;
}

}  // namespace mc
