// NVTX's marks and ranges to the runtime. NVTX 3 is headers alone: each library that was compiled with them looks for a
// tool at its first call, by NVTX_INJECTION64_PATH. This library is that tool. Where the runtime is not loaded, as in a
// child process with another torch, it declines, and NVTX goes on without one.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cwchar>
#include <mutex>
#include <set>
#include <string>

#include "mc_runtime.h"

namespace {

// NVTX_NO_PUSH_POP_TRACKING is -2; a pop of nothing is any other negative number.
using MarkFunction = int64_t (*)(mcMarkKind, const char*, const char*, unsigned long long);
MarkFunction markOfRuntime = nullptr;

using Handle = const char*;  // domains and registered strings are their text, which lives as long as the process

Handle registered(const std::string& text) {
  static auto* const mutex = new std::mutex;
  static auto* const texts = new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(*mutex);
  return texts->insert(text).first->c_str();
}

std::string narrow(const wchar_t* text) {
  if (text == nullptr) return "";
  std::string result;
  for (; *text != L'\0'; ++text) {
    const auto point = static_cast<uint32_t>(*text);
    const auto add = [&result](uint32_t byte) { result += static_cast<char>(byte); };
    if (point < 0x80) {
      add(point);
    } else if (point < 0x800) {
      add(0xc0 | point >> 6), add(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
      add(0xe0 | point >> 12), add(0x80 | (point >> 6 & 0x3f)), add(0x80 | (point & 0x3f));
    } else {
      add(0xf0 | (point >> 18 & 7)), add(0x80 | (point >> 12 & 0x3f));
      add(0x80 | (point >> 6 & 0x3f)), add(0x80 | (point & 0x3f));
    }
  }
  return result;
}

// nvtxEventAttributes_t, as far as it is read: a message in one of three forms.
struct Attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType, reserved;
  uint64_t payload;
  int32_t messageType;
  const void* message;
};
static_assert(sizeof(Attributes) == 48 && offsetof(Attributes, message) == 40, "NVTX's layout");

std::string messageOf(const Attributes* attributes) {
  enum { kText = 1, kWideText = 2, kRegistered = 3 };
  if (attributes == nullptr || attributes->message == nullptr) return "";
  switch (attributes->messageType) {
    case kText:
    case kRegistered: return static_cast<const char*>(attributes->message);
    case kWideText: return narrow(static_cast<const wchar_t*>(attributes->message));
    default: return "";
  }
}

int64_t mark(mcMarkKind kind, Handle domain, const std::string& name, uint64_t range = 0) {
  return markOfRuntime(kind, domain, name.c_str(), range);
}
const char* orEmpty(const char* text) { return text == nullptr ? "" : text; }

// ---- The functions of NVTX, in the order of its tables: the default domain's, and those of domains ------------------
void markEx(const Attributes* what) { mark(mcMarkInstant, nullptr, messageOf(what)); }
void markA(const char* text) { mark(mcMarkInstant, nullptr, orEmpty(text)); }
void markW(const wchar_t* text) { mark(mcMarkInstant, nullptr, narrow(text)); }
uint64_t startEx(const Attributes* what) { return static_cast<uint64_t>(mark(mcMarkStart, nullptr, messageOf(what))); }
uint64_t startA(const char* text) { return static_cast<uint64_t>(mark(mcMarkStart, nullptr, orEmpty(text))); }
uint64_t startW(const wchar_t* text) { return static_cast<uint64_t>(mark(mcMarkStart, nullptr, narrow(text))); }
void end(uint64_t range) { markOfRuntime(mcMarkEnd, nullptr, nullptr, range); }
int pushEx(const Attributes* what) { return static_cast<int>(mark(mcMarkPush, nullptr, messageOf(what))); }
int pushA(const char* text) { return static_cast<int>(mark(mcMarkPush, nullptr, orEmpty(text))); }
int pushW(const wchar_t* text) { return static_cast<int>(mark(mcMarkPush, nullptr, narrow(text))); }
int pop() { return static_cast<int>(markOfRuntime(mcMarkPop, nullptr, nullptr, 0)); }

void domainMark(Handle domain, const Attributes* what) { mark(mcMarkInstant, domain, messageOf(what)); }
uint64_t domainStart(Handle domain, const Attributes* what) {
  return static_cast<uint64_t>(mark(mcMarkStart, domain, messageOf(what)));
}
void domainEnd(Handle domain, uint64_t range) { markOfRuntime(mcMarkEnd, domain, nullptr, range); }
int domainPush(Handle domain, const Attributes* what) {
  return static_cast<int>(mark(mcMarkPush, domain, messageOf(what)));
}
int domainPop(Handle domain) { return static_cast<int>(markOfRuntime(mcMarkPop, domain, nullptr, 0)); }
Handle registerA(Handle, const char* text) { return registered(orEmpty(text)); }
Handle registerW(Handle, const wchar_t* text) { return registered(narrow(text)); }
Handle createA(const char* name) { return registered(orEmpty(name)); }
Handle createW(const wchar_t* name) { return registered(narrow(name)); }
void destroy(Handle) {}  // its text stays: records name it

using Function = void (*)();
using ModuleTable = int (*)(int module, Function*** table, unsigned int* size);
struct Callbacks {
  size_t size;
  ModuleTable moduleTable;
};
using GetExportTable = const void* (*)(uint32_t);

template <class F>
Function erased(F* function) {
  return reinterpret_cast<Function>(function);
}

// Puts functions into the places of NVTX's table that it has, and nothing into the others: names of categories and
// threads, and resources, are nothing that anybody asks for here.
struct Place {
  unsigned int index;
  Function function;
};
template <size_t count>
void fill(const Callbacks* callbacks, int module, const Place (&places)[count]) {
  Function** table = nullptr;
  unsigned int size = 0;
  if (callbacks->moduleTable(module, &table, &size) == 0 || table == nullptr) return;
  for (const Place& place : places) {
    if (place.index < size && table[place.index] != nullptr) *table[place.index] = place.function;
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(GetExportTable exportTable) {
  constexpr uint32_t kCallbacks = 1;
  constexpr int kCore = 1, kDomains = 5;
  void* const runtime = dlopen("libmcruntime.so", RTLD_NOLOAD | RTLD_LAZY);
  if (runtime == nullptr || exportTable == nullptr) return 0;
  markOfRuntime = reinterpret_cast<MarkFunction>(dlsym(runtime, "mcProfileMark"));
  const auto* const callbacks = static_cast<const Callbacks*>(exportTable(kCallbacks));
  if (markOfRuntime == nullptr || callbacks == nullptr || callbacks->size < sizeof *callbacks) return 0;
  const Place core[] = {{1, erased(markEx)}, {2, erased(markA)},  {3, erased(markW)}, {4, erased(startEx)},
                        {5, erased(startA)}, {6, erased(startW)}, {7, erased(end)},   {8, erased(pushEx)},
                        {9, erased(pushA)},  {10, erased(pushW)}, {11, erased(pop)}};
  const Place domains[] = {{1, erased(domainMark)}, {2, erased(domainStart)}, {3, erased(domainEnd)},
                           {4, erased(domainPush)}, {5, erased(domainPop)},   {10, erased(registerA)},
                           {11, erased(registerW)}, {12, erased(createA)},    {13, erased(createW)},
                           {14, erased(destroy)}};
  fill(callbacks, kCore, core);
  fill(callbacks, kDomains, domains);
  return 1;
}
