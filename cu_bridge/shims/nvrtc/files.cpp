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

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "mc_runtime.h"

extern char** environ;

namespace mxmaca {
namespace {

[[noreturn]] void fail(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }

bool status(int folder, const char* path, int flags, struct statx* facts) {
  // The system call itself: the C library's stat functions have no form that old and new systems share.
  constexpr unsigned kWanted = STATX_TYPE | STATX_MODE | STATX_UID | STATX_MTIME | STATX_CTIME | STATX_SIZE;
  return syscall(SYS_statx, folder, path, flags, kWanted, facts) == 0;
}

int64_t nanoseconds(const struct statx_timestamp& time) { return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec; }

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + " " + why);
}

std::string modeText(unsigned mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", mode & 07777);
  return text;
}

void checkOwner(const std::string& path, const struct statx& facts) {
  if (facts.stx_uid == geteuid()) return;
  refuse(path, "belongs to user " + std::to_string(facts.stx_uid) + " and not to user " + std::to_string(geteuid()));
}

// The folder and those that are missing above it, and the folder's descriptor.
int openFolder(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash != 0) makeFolders(path.substr(0, slash));
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail(path);
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) fail(path);
  return folder;
}

void writeAll(int file, const std::string& path, const std::string& content) {
  for (size_t done = 0; done < content.size();) {
    const ssize_t wrote = write(file, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(path);
    done += static_cast<size_t>(wrote);
  }
}

std::string readAll(int file, const std::string& path) {
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path);
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

std::string variable(const char* key) {
  const char* value = std::getenv(key);
  return value != nullptr ? value : "";
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

PrivateFolder::PrivateFolder(const std::string& path) : path_(path), folder_(openFolder(path)) {
  struct statx facts;
  if (!status(folder_.get(), "", AT_EMPTY_PATH, &facts)) fail(path);
  checkOwner(path, facts);
  if ((facts.stx_mode & kOthersWrite) != 0) {
    refuse(path, "can be written by others (mode " + modeText(facts.stx_mode) + "); chmod 700 makes it private");
  }
  // Who can write to a folder above may put another one in this one's place, unless that folder is sticky.
  for (size_t slash = path.find_last_of('/'); slash != std::string::npos && slash != 0;
       slash = path.find_last_of('/', slash - 1)) {
    const std::string above = path.substr(0, slash);
    if (!status(AT_FDCWD, above.c_str(), 0, &facts)) fail(above);
    if ((facts.stx_mode & S_IWOTH) != 0 && (facts.stx_mode & S_ISVTX) == 0) {
      refuse(above, "can be written by everybody (mode " + modeText(facts.stx_mode) + ")");
    }
  }
}

bool PrivateFolder::read(const std::string& name, unsigned forbidden, std::string* content) const {
  const std::string path = path_ + "/" + name;
  const Descriptor file(openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return false;
  if (file.get() < 0 && errno == ELOOP) refuse(path, "is a symbolic link");
  if (file.get() < 0) fail(path);
  struct statx facts;
  if (!status(file.get(), "", AT_EMPTY_PATH, &facts)) fail(path);
  if ((facts.stx_mode & S_IFMT) != S_IFREG) refuse(path, "is no file");
  checkOwner(path, facts);
  if ((facts.stx_mode & forbidden) != 0) {
    refuse(path, "is open to others (mode " + modeText(facts.stx_mode) + ")");
  }
  *content = readAll(file.get(), path);
  return true;
}

std::string PrivateFolder::unfinished(const std::string& content) const {
  static std::atomic<unsigned> number{0};
  for (;;) {
    const std::string name = "part." + std::to_string(getpid()) + "." + std::to_string(number++);
    const Descriptor file(
        openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.get() < 0 && errno == EEXIST) continue;  // of a process that was killed
    if (file.get() < 0) fail(path_);
    try {
      writeAll(file.get(), path_ + "/" + name, content);
    } catch (...) {
      unlinkat(folder_.get(), name.c_str(), 0);
      throw;
    }
    return name;
  }
}

void PrivateFolder::write(const std::string& name, const std::string& content) const {
  const std::string part = unfinished(content);
  if (renameat(folder_.get(), part.c_str(), folder_.get(), name.c_str()) == 0) return;
  const int error = errno;
  unlinkat(folder_.get(), part.c_str(), 0);
  errno = error;
  fail(path_ + "/" + name);
}

void PrivateFolder::writeNew(const std::string& name, const std::string& content) const {
  const std::string part = unfinished(content);
  const bool linked = linkat(folder_.get(), part.c_str(), folder_.get(), name.c_str(), 0) == 0;
  const int error = errno;
  unlinkat(folder_.get(), part.c_str(), 0);
  errno = error;
  if (!linked && error != EEXIST) fail(path_ + "/" + name);
}

std::string readFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path);
  return readAll(file.get(), path);
}

void writeFile(const std::string& path, const std::string& content) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) fail(path);
  writeAll(file.get(), path, content);
}

void makeFolders(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    if (mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST) fail(path);
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

std::vector<std::string> filesIn(const std::string& path, const std::string& ending) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (folder == nullptr) fail(path);
  std::vector<std::string> found;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    const bool ends =
        name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
    if (ends) found.push_back(path + "/" + name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool fileState(const std::string& path, FileState* state) {
  struct statx facts;
  if (!status(AT_FDCWD, path.c_str(), 0, &facts)) return false;
  state->modified = nanoseconds(facts.stx_mtime);
  state->changed = nanoseconds(facts.stx_ctime);
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
  std::string folder = variable("MACA_CACHE_DIR");
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty()) folder = variable("XDG_CACHE_HOME") + "/mxmaca";
  if (folder.empty()) folder = variable("HOME") + "/.cache/mxmaca";
  return folder + "/" + name;
}

std::string stateFolder() {
  const std::string folder = variable("XDG_STATE_HOME");
  return (folder.empty() ? variable("HOME") + "/.local/state" : folder) + "/mxmaca";
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
