// Copies of a kernel's arguments, for work that runs after the call that gave them.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "mc_kernel.h"
#include "mc_runtime.h"

namespace mc {

class KeptArguments {
 public:
  // False: the host has no memory.
  bool add(const void* value, size_t bytes) {
    constexpr size_t kLine = 64;  // at least the alignment of any parameter
    void* const kept = std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
    if (kept == nullptr) return false;
    values_.emplace_back(kept, &std::free);
    sizes_.push_back(bytes);
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
  bool addAll(const KeptArguments& others) {
    for (size_t i = 0; i < others.values_.size(); ++i) {
      if (!add(others.values_[i].get(), others.sizes_[i])) return false;
    }
    return true;
  }
  // Takes the values of others, at the addresses where its own have been. False: they are of another kernel.
  bool assign(const KeptArguments& others) {
    if (sizes_ != others.sizes_) return false;
    for (size_t i = 0; i < values_.size(); ++i) {
      pointers_[i] = std::memcpy(values_[i].get(), others.values_[i].get(), sizes_[i]);
    }
    return true;
  }
  void** pointers() { return pointers_.data(); }

 private:
  std::vector<std::unique_ptr<void, void (*)(void*)>> values_;
  std::vector<size_t> sizes_;
  std::vector<void*> pointers_;
};

// What a kernel's node of a graph launches.
struct KernelLaunch {
  const void* hostFunction;
  mcDim3 grid, block;
  size_t sharedBytes;
  bool cooperative;
  std::shared_ptr<KeptArguments> arguments;
};

}  // namespace mc
