#include "check/place.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "host/demangle.h"

namespace mc {
namespace {

std::atomic<mcPlaceHook> placeHook{nullptr};

const void* ownLibrary() {
  static const void* const base = [] {
    Dl_info info{};
    return dladdr(reinterpret_cast<const void*>(&ownLibrary), &info) == 0 ? nullptr : info.dli_fbase;
  }();
  return base;
}

// Libraries that only hand a call on say nothing about who made it.
bool isGlue(const Dl_info& info) {
  if (info.dli_fbase == ownLibrary()) return true;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const name = slash == nullptr ? info.dli_fname : slash + 1;
  static constexpr const char* kGlue[] = {"libcudart.so", "libcuda.so", "libc10_cuda.so"};
  return std::any_of(std::begin(kGlue), std::end(kGlue),
                     [name](const char* glue) { return std::strncmp(name, glue, std::strlen(glue)) == 0; });
}

// "file.cpp:12" by binutils' addr2line, where it is installed and the library has debug information; else nothing.
std::string sourceLine(const Dl_info& info, uintptr_t address) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  char offset[32];
  std::snprintf(offset, sizeof offset, "0x%zx", address - reinterpret_cast<uintptr_t>(info.dli_fbase));
  char whole[32];
  std::snprintf(whole, sizeof whole, "0x%zx", static_cast<size_t>(address));
  const pid_t child = vfork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    execlp("addr2line", "addr2line", "-s", "-e", info.dli_fname, offset, whole, static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  char text[1024];
  size_t length = 0;
  for (ssize_t more; length < sizeof text - 1 && (more = read(ends[0], text + length, sizeof text - 1 - length)) > 0;) {
    length += static_cast<size_t>(more);
  }
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  text[length] = '\0';
  // Of a program that is not moved the second line is the right one.
  for (char* line = std::strtok(text, "\n"); line != nullptr; line = std::strtok(nullptr, "\n")) {
    if (char* const note = std::strstr(line, " (")) *note = '\0';
    const char* const colon = std::strrchr(line, ':');
    if (std::strncmp(line, "??", 2) != 0 && colon != nullptr && colon[1] != '?' && colon[1] != '0') return line;
  }
  return "";
}

}  // namespace

std::string pythonPlace() {
  const mcPlaceHook hook = placeHook.load(std::memory_order_acquire);
  char text[512] = "";
  if (hook != nullptr) hook(text, sizeof text);
  return text;
}

Place placeOfCaller() {
  Place place;
  place.python = pythonPlace();
  if (!place.python.empty()) return place;
  constexpr int kDepth = 16;
  void* frames[kDepth];
  const int count = backtrace(frames, kDepth);
  int kept = 0;
  for (int i = 0; i < count && kept < Place::kFrames; ++i) {
    Dl_info info{};
    if (dladdr(frames[i], &info) == 0 || isGlue(info)) continue;
    place.frames[kept++] = reinterpret_cast<uintptr_t>(frames[i]);
  }
  return place;
}

std::string describeCode(uintptr_t address) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return "code of no library";
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const std::string library = slash == nullptr ? info.dli_fname : slash + 1;
  // A return address is behind its call.
  const std::string line = sourceLine(info, address - 1);
  const std::string function = info.dli_sname == nullptr ? "" : demangled(info.dli_sname) + " ";
  return function + (line.empty() ? (function.empty() ? "" : "in ") + library : "(" + line + ")");
}

std::string describe(const Place& place) {
  if (!place.python.empty()) return place.python;
  // What CUDA's headers have inline is not the program's.
  std::string text = "an unknown place";
  for (const uintptr_t frame : place.frames) {
    if (frame == 0) break;
    text = describeCode(frame);
    if (text.find("cuda_runtime") == std::string::npos) break;
  }
  return text;
}

}  // namespace mc

void mcSetPlaceHook(mcPlaceHook hook) { mc::placeHook.store(hook, std::memory_order_release); }
