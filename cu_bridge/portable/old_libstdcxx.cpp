// As in old_glibc.cpp, for libraries that use the system's C++ runtime: functions that headers of GCC 11 and later call
// and libstdc++ of GCC 8 does not export.

#include <dlfcn.h>

#include <exception>
#include <new>

#define LOCAL __attribute__((visibility("hidden")))

namespace {

// The runtime's own function. By its name alone the linker could find an inline copy of it in any library, which calls
// what is defined here.
void* ofRuntime(const char* name) {
  void* const library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) std::terminate();
  return found;
}

}  // namespace

// Under names of their own here, since the headers declare them as members or without this visibility.
extern "C" {
LOCAL void addReference(void* pointer) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
LOCAL void releaseReference(void* pointer) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
[[noreturn]] LOCAL void badLength() __asm__("_ZSt28__throw_bad_array_new_lengthv");

// What all versions export counts the references: the functions that copy and end an exception_ptr.
LOCAL void addReference(void* pointer) {
  using Copy = void (*)(void* copy, const void* pointer);
  static const auto copy = reinterpret_cast<Copy>(ofRuntime("_ZNSt15__exception_ptr13exception_ptrC1ERKS0_"));
  // The copy is not ended: its reference is the one that was asked for.
  alignas(std::exception_ptr) unsigned char place[sizeof(std::exception_ptr)];
  copy(place, pointer);
}

LOCAL void releaseReference(void* pointer) {
  using End = void (*)(void* pointer);
  static const auto end = reinterpret_cast<End>(ofRuntime("_ZNSt15__exception_ptr13exception_ptrD1Ev"));
  end(pointer);
  *static_cast<void**>(pointer) = nullptr;
}

[[noreturn]] LOCAL void badLength() { throw std::bad_array_new_length(); }
}
static_assert(sizeof(std::exception_ptr) == sizeof(void*), "one pointer");
