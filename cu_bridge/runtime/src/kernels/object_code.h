// Relocatable object files of the host, as a compiler without a linker leaves them: placed in memory, and their
// references filled in. See Note [Object code].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mc {

class ObjectCode {
 public:
  // Null where the bytes are no object file of this processor, or refer to what is not there; `problem` says why.
  static std::unique_ptr<ObjectCode> load(const void* image, size_t bytes, std::string* problem);
  // The addresses stay taken, so that no later code comes to stand for this one's kernels.
  ~ObjectCode();
  ObjectCode(const ObjectCode&) = delete;
  ObjectCode& operator=(const ObjectCode&) = delete;

  // The address of a symbol that the file defines, or null.
  void* symbol(const char* name) const;

 private:
  struct Symbol {
    std::string name;
    uintptr_t address;
  };

  ObjectCode() = default;

  char* memory_ = nullptr;
  size_t mapped_ = 0;
  std::vector<Symbol> symbols_;

  friend class ObjectLoader;
};

}  // namespace mc
