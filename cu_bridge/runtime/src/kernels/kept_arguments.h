// Copies of a kernel's arguments, for work that runs after the call that gave them.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "mc_kernel.h"

namespace mc {

class KeptArguments {
 public:
  // False: the host has no memory.
  bool add(const void* value, size_t bytes) {
    constexpr size_t kLine = 64;  // at least the alignment of any parameter
    void* const kept = std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
    if (kept == nullptr) return false;
    values_.emplace_back(kept, &std::free);
    pointers_.push_back(std::memcpy(kept, value, bytes));
    return true;
  }
  // All arguments of a kernel, by the sizes that its facts have.
  bool addAll(const mcKernelEntry& kernel, void** arguments) {
    for (const unsigned* fact = kernel.facts + 2; *fact != 0; fact += 2) {
      if (!add(*arguments++, *fact)) return false;
    }
    return true;
  }
  void** pointers() { return pointers_.data(); }

 private:
  std::vector<std::unique_ptr<void, void (*)(void*)>> values_;
  std::vector<void*> pointers_;
};

}  // namespace mc
