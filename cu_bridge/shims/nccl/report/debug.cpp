#include "report/debug.h"

#include <strings.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

extern char** environ;

namespace nccl {
namespace {

constexpr const char* kLevels[] = {"NONE", "VERSION", "WARN", "INFO", "TRACE"};

DebugLevel wantedLevel() {
  const char* const text = std::getenv("NCCL_DEBUG");
  for (int level = 0; text != nullptr && level < 5; ++level) {
    if (strcasecmp(text, kLevels[level]) == 0) return static_cast<DebugLevel>(level);
  }
  return DebugLevel::None;
}

std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::FILE* openTarget() {
  const char* const pattern = std::getenv("NCCL_DEBUG_FILE");
  if (pattern == nullptr || *pattern == '\0') return stdout;
  std::string path;
  for (const char* at = pattern; *at != '\0'; ++at) {
    if (at[0] == '%' && (at[1] == 'h' || at[1] == 'p' || at[1] == '%')) {
      ++at;
      path += *at == 'h' ? hostName() : *at == 'p' ? std::to_string(getpid()) : "%";
    } else {
      path += *at;
    }
  }
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr)
    std::fprintf(stderr, "libnccl: cannot write NCCL_DEBUG_FILE %s: %s\n", path.c_str(), std::strerror(errno));
  return file != nullptr ? file : stdout;
}

}  // namespace

void debugLine(DebugLevel level, const std::string& text) {
  static const DebugLevel wanted = wantedLevel();
  if (wanted < level) return;
  static std::FILE* const target = openTarget();
  static const std::string host = hostName();
  const int place = level >= DebugLevel::Info ? static_cast<int>(DebugLevel::Info) : static_cast<int>(level);
  const char* const label = level == DebugLevel::Version ? "" : kLevels[place];
  std::fprintf(target, "%s:%d NCCL %s%s%s\n", host.c_str(), static_cast<int>(getpid()), label,
               *label != '\0' ? " " : "", text.c_str());
  std::fflush(target);
}

void debugBegin(int version) {
  static std::once_flag once;
  std::call_once(once, [version] {
    debugLine(DebugLevel::Version, "version " + std::to_string(version / 10000) + "." +
                                       std::to_string(version / 100 % 100) + "." + std::to_string(version % 100) +
                                       " of the simulated MXMACA device");
    std::string ignored;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const char* const end = std::strchr(*entry, '=');
      const std::string name(*entry, end == nullptr ? std::strlen(*entry) : static_cast<size_t>(end - *entry));
      const bool used = name == "NCCL_DEBUG" || name == "NCCL_DEBUG_FILE" || name == "NCCL_SOCKET_IFNAME";
      if (name.rfind("NCCL_", 0) == 0 && !used) {
        ignored += (ignored.empty() ? "" : ", ") + name;
      }
    }
    if (!ignored.empty()) debugLine(DebugLevel::Warn, "without an effect on the simulated device: " + ignored);
  });
}

}  // namespace nccl
