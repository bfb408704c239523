// Bytes that libraries keep with what is theirs, each under a number of the library's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "mc_runtime.h"

namespace mc {

class KeptBytes {
 public:
  void set(int number, const void* bytes, size_t count) {
    const auto* const first = static_cast<const unsigned char*>(bytes);
    if (count == 0) {
      all_.erase(number);
    } else {
      all_[number].assign(first, first + count);
    }
  }
  // NotSupported is no error of the program's: the caller knows what stands where nothing was set.
  mcError_t get(int number, void* bytes, size_t count) const {
    const auto found = all_.find(number);
    if (found == all_.end() || found->second.size() != count) return mcErrorNotSupported;
    std::copy(found->second.begin(), found->second.end(), static_cast<unsigned char*>(bytes));
    return mcSuccess;
  }

 private:
  std::map<int, std::vector<unsigned char>> all_;
};

}  // namespace mc
