// Where the program was compiled with -fsanitize=address: what lies behind an allocation is poisoned, so that a kernel
// that reads or writes there is reported at its line.
#pragma once

#include <cstddef>

extern "C" {
__attribute__((weak, visibility("default"))) void __asan_poison_memory_region(const volatile void* memory, size_t size);
__attribute__((weak, visibility("default"))) void __asan_unpoison_memory_region(const volatile void* memory,
                                                                                size_t size);
}

namespace mc {

inline bool addressesAreChecked() { return __asan_poison_memory_region != nullptr; }

inline void poison(void* memory, size_t size) {
  if (addressesAreChecked()) __asan_poison_memory_region(memory, size);
}

// Addresses that go back to the system may come again for something else.
inline void unpoison(void* memory, size_t size) {
  if (addressesAreChecked()) __asan_unpoison_memory_region(memory, size);
}

}  // namespace mc
