#include "files.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "mc_runtime.h"

extern char** environ;

namespace mxmaca {
namespace {

[[noreturn]] void fail(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::string readFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path);
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path);
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

void writeFile(const std::string& path, const std::string& content) {
  std::string part = path + ".XXXXXX";
  const Descriptor file(mkostemp(part.data(), O_CLOEXEC));
  if (file.get() < 0) fail(path);
  for (size_t done = 0; done < content.size();) {
    const ssize_t wrote = write(file.get(), content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      unlink(part.c_str());
      errno = error;
      fail(path);
    }
    done += static_cast<size_t>(wrote);
  }
  if (rename(part.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(part.c_str());
    errno = error;
    fail(path);
  }
}

void makeFolders(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    if (mkdir(path.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST) fail(path);
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) fail(path);
}

void removeFolder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    const std::string inside = path + "/" + entry->d_name;
    if (unlink(inside.c_str()) != 0) removeFolder(inside);
  }
  closedir(folder);
  rmdir(path.c_str());
}

bool fileState(const std::string& path, FileState* state) {
  // The system call itself: the C library's stat functions have no form that old and new systems share.
  struct statx facts;
  if (syscall(SYS_statx, AT_FDCWD, path.c_str(), 0, STATX_MTIME | STATX_SIZE, &facts) != 0) return false;
  state->modified = static_cast<int64_t>(facts.stx_mtime.tv_sec) * 1000000000 + facts.stx_mtime.tv_nsec;
  state->bytes = facts.stx_size;
  return true;
}

BuildFolder::BuildFolder(const std::string& parent) : path_(parent + "/build.XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) fail(parent);
}
BuildFolder::~BuildFolder() { removeFolder(path_); }

std::string sdkRoot() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&mcGetDeviceCount), &info) == 0) return "";
  const std::unique_ptr<char, void (*)(void*)> real(realpath(info.dli_fname, nullptr), std::free);
  std::string path = real != nullptr ? real.get() : info.dli_fname;
  for (int levels = 0; levels < 2; ++levels)
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  return path;
}

std::string cacheFolder(const std::string& name) {
  const auto variable = [](const char* key) {
    const char* value = std::getenv(key);
    return std::string(value != nullptr ? value : "");
  };
  std::string folder = variable("MACA_CACHE_DIR");
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty()) folder = variable("XDG_CACHE_HOME") + "/mxmaca";
  if (folder.empty()) folder = variable("HOME") + "/.cache/mxmaca";
  return folder + "/" + name;
}

int runProgram(const std::vector<std::string>& command, const std::vector<std::string>& environment,
               const std::string& output) {
  std::vector<char*> arguments, variables;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto replaced = [&](const char* entry) {
    for (const std::string& own : environment) {
      if (own.compare(0, own.find('=') + 1, entry, 0, own.find('=') + 1) == 0) return true;
    }
    return false;
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!replaced(*entry)) variables.push_back(*entry);
  }
  for (const std::string& own : environment) variables.push_back(const_cast<char*>(own.c_str()));
  variables.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int problem = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace mxmaca
