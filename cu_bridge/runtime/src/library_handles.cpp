// Handles of the libraries on top of the runtime, which may give each other theirs: a set with a kind for each. Objects
// that only one library knows lie in a HandleTable of its own.

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "mc_runtime.h"

namespace {

struct Handles {
  std::shared_mutex mutex;
  std::unordered_map<const void*, int> kinds;
};

Handles& handles() {
  static auto* const instance = new Handles;
  return *instance;
}

}  // namespace

void mcHandleAdd(const void* handle, int kind) {
  Handles& all = handles();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  all.kinds[handle] = kind;
}

int mcHandleRemove(const void* handle, int kind) {
  Handles& all = handles();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.kinds.find(handle);
  if (found == all.kinds.end() || found->second != kind) return 0;
  all.kinds.erase(found);
  return 1;
}

int mcHandleIs(const void* handle, int kind) {
  Handles& all = handles();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.kinds.find(handle);
  return found != all.kinds.end() && found->second == kind;
}
